variable "name" {
  description = "Name of the API."
  type        = string
}

variable "stage" {
  description = "Name of the stage, the last part of the URL."
  type        = string
  default     = "live"
}

variable "function" {
  description = "What takes $connect, $disconnect, $default and the custom routes: name, invoke_arn."
  type = object({
    name       = string
    invoke_arn = string
  })
}

variable "authorizer_function" {
  description = "What checks the token of $connect: name, invoke_arn."
  type = object({
    name       = string
    invoke_arn = string
  })
}

variable "token_source" {
  description = "Where a client puts its token."
  type        = string
  default     = "route.request.querystring.token"
}

variable "chat_route" {
  description = "Route of chat frames; frames without a route go to $default, which is the same."
  type        = string
  default     = "chat"
}

variable "custom_routes" {
  description = "The application's own routes, by the frames' route field."
  type        = set(string)
  default     = []
}

variable "throttling" {
  description = "Frames a second, and how many more at once."
  type = object({
    rate  = optional(number, 500)
    burst = optional(number, 1000)
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
