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
  description = "The application's own paths, as it registers them (Lambda.register): method, or ANY, and path. The request handler answers them past the queue, and only jwt_authorizer checks who calls."
  type = list(object({
    method = string
    path   = string
  }))
  default = []

  validation {
    condition = alltrue([
      for route in var.routes : contains(["ANY", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"], route.method)
    ])
    error_message = "routes: a method is ANY, DELETE, GET, HEAD, OPTIONS, PATCH, POST or PUT."
  }

  validation {
    condition     = alltrue([for route in var.routes : can(regex("^(/[^/\\s]+)+$", route.path))])
    error_message = "routes: a path begins with /, does not end with one, and has no blanks, such as /app/status."
  }

  validation {
    condition     = length(distinct(var.routes)) == length(var.routes)
    error_message = "routes: one is there twice."
  }

  validation {
    condition     = alltrue([for route in var.routes : !contains(["/api/v1/agents", "/api/v1/chat", "/api/v1/chat-multipart"], route.path)])
    error_message = "routes: /api/v1/agents, /api/v1/chat and /api/v1/chat-multipart are the product's own; choose another path."
  }
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
