variable "name" {
  description = "Name of the function."
  type        = string
}

variable "function" {
  description = "The code and its size: package (see modules/lambda-function), handler, memory_size in MiB, timeout in seconds: above turn_timeout, so that the deadline cuts a turn off and Lambda does not. null takes the default."
  type = object({
    package = object({
      filename          = optional(string)
      s3_bucket         = optional(string)
      s3_key            = optional(string)
      s3_object_version = optional(string)
      image_uri         = optional(string)
      hash              = optional(string)
    })
    handler      = optional(string, "app_agent_runner.handler")
    runtime      = optional(string, "python3.11")
    architecture = optional(string, "x86_64")
    memory_size  = optional(number, 1024)
    timeout      = optional(number, 630)
  })
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

variable "queue_arn" {
  description = "ARN of the input queue."
  type        = string
}

variable "visibility_timeout" {
  description = "Seconds of that queue; at least six times the function's timeout, so that Lambda can retry a batch that was throttled before its messages come back."
  type        = number

  validation {
    condition     = var.visibility_timeout >= 6 * var.function.timeout
    error_message = "visibility_timeout is below six times the function's timeout."
  }
}

variable "batch_size" {
  description = "Messages of one invocation, 1 to 10."
  type        = number
  default     = 1

  validation {
    condition     = var.batch_size >= 1 && var.batch_size <= 10
    error_message = "batch_size is 1 to 10 (FIFO queues)."
  }
}

variable "maximum_concurrency" {
  description = "Invocations the queue may have at once, 2 to 1000. The limit of work: messages wait in the queue, none is spent."
  type        = number
  default     = 50

  validation {
    condition     = var.maximum_concurrency >= 2 && var.maximum_concurrency <= 1000
    error_message = "maximum_concurrency is 2 to 1000 (Lambda)."
  }
}

variable "reserved_concurrency" {
  description = "Invocations reserved of the account's; null: none. Below maximum_concurrency it would throttle deliveries, each of which counts as an attempt."
  type        = number
  default     = null

  validation {
    condition     = var.reserved_concurrency == null || coalesce(var.reserved_concurrency, 0) >= var.maximum_concurrency
    error_message = "reserved_concurrency is below maximum_concurrency: throttled deliveries would send untouched messages to the dead letters."
  }
}
