variable "name" {
  description = "Name of the API."
  type        = string
}

variable "function" {
  description = "The request handler: name, invoke_arn."
  type = object({
    name       = string
    invoke_arn = string
  })
}

variable "routes" {
  description = "Routes of the request handler. POST admits a turn, GET reads its answer, DELETE cancels it."
  type        = list(string)
  default = [
    "DELETE /api/v1/chat",
    "GET /api/v1/agents",
    "GET /api/v1/chat",
    "POST /api/v1/chat",
    "POST /api/v1/chat-multipart",
  ]
}

variable "jwt_authorizer" {
  description = "Tokens that API Gateway checks before the request handler does; null: the application's AuthValidator alone."
  type = object({
    issuer   = string
    audience = list(string)
  })
  default = null
}

variable "cors_origins" {
  description = "Origins of browsers that may call; empty: none."
  type        = list(string)
  default     = []
}

variable "throttling" {
  description = "Requests a second, and how many more at once; above it 429."
  type = object({
    rate  = optional(number, 100)
    burst = optional(number, 200)
  })
  default = {}
}

variable "log_retention_days" {
  description = "Days the access log is kept."
  type        = number
  default     = 365
}

variable "kms_key_arn" {
  description = "Key that encrypts the access log; null: CloudWatch's own."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of all that is made."
  type        = map(string)
  default     = {}
}
