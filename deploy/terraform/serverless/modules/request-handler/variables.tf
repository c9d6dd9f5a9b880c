variable "name" {
  description = "Name of the function."
  type        = string
}

variable "function" {
  description = "The code and its size: package (see modules/lambda-function), handler, memory_size in MiB. null takes the default."
  type = object({
    package = object({
      filename          = optional(string)
      s3_bucket         = optional(string)
      s3_key            = optional(string)
      s3_object_version = optional(string)
      image_uri         = optional(string)
      hash              = optional(string)
    })
    handler      = optional(string, "app_request_handler.handler")
    runtime      = optional(string, "python3.11")
    architecture = optional(string, "x86_64")
    memory_size  = optional(number, 512)
  })
}

variable "timeout" {
  description = "Seconds an invocation may take; API Gateway waits for 30 of them."
  type        = number
  default     = 30
}

variable "environment" {
  description = "Settings of the function: modules/settings' and the application's own."
  type        = map(string)
}

variable "statements" {
  description = "What the function may do: modules/permissions' and what the application adds."
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
