variable "name" {
  description = "Name of the function; -authorizer is appended for the other one."
  type        = string
}

variable "function" {
  description = "The code and its size: package (see modules/lambda-function), handler, memory_size in MiB, and authorizer_handler: what checks the token of $connect, in the same package. null takes the default."
  type = object({
    package = object({
      filename          = optional(string)
      s3_bucket         = optional(string)
      s3_key            = optional(string)
      s3_object_version = optional(string)
      image_uri         = optional(string)
      hash              = optional(string)
    })
    handler      = optional(string, "app_ws_connection_handler.handler")
    runtime      = optional(string, "python3.11")
    architecture = optional(string, "x86_64")
    memory_size  = optional(number, 512)

    authorizer_handler = optional(string, "app_ws_authorizer.handler")
  })
}

variable "environment" {
  description = "Settings of both functions: modules/settings' and the application's own."
  type        = map(string)
}

variable "handler_environment" {
  description = "Settings of the connection handler alone, such as those of agents in direct mode."
  type        = map(string)
  default     = {}
}

variable "timeout" {
  description = "Seconds the connection handler has: as long as API Gateway waits; in direct mode longer than any turn."
  type        = number
  default     = 29
}

variable "statements" {
  description = "What the connection handler may do: modules/permissions' and what the application adds. The authorizer may write its log only."
  type = list(object({
    sid       = string
    actions   = list(string)
    resources = list(string)
    condition = optional(map(map(string)), {})
  }))
}

variable "network" {
  description = "Subnets and security groups; null: no VPC."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null
}

variable "log_retention_days" {
  description = "Days the log is kept."
  type        = number
  default     = 365
}

variable "kms_key_arn" {
  description = "Key that encrypts variables and log; null: AWS's own."
  type        = string
  default     = null
}

variable "permissions_boundary_arn" {
  description = "Boundary of the role; null: none."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of all that is made."
  type        = map(string)
  default     = {}
}
