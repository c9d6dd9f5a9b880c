variable "name" {
  description = "Name of the function, its role and its log group."
  type        = string
}

variable "description" {
  description = "What the function does."
  type        = string
}

variable "package" {
  description = "The code: a zip file here, an object in S3, or a container image. hash: of the object or image's content, so that a change is seen."
  type = object({
    filename          = optional(string)
    s3_bucket         = optional(string)
    s3_key            = optional(string)
    s3_object_version = optional(string)
    image_uri         = optional(string)
    hash              = optional(string)
  })

  validation {
    condition     = length([for place in [var.package.filename, var.package.s3_key, var.package.image_uri] : place if place != null]) == 1
    error_message = "package names exactly one of filename, s3_key and image_uri."
  }

  validation {
    condition     = (var.package.s3_key == null) == (var.package.s3_bucket == null)
    error_message = "package.s3_key and package.s3_bucket go together."
  }
}

variable "handler" {
  description = "module.attribute that Lambda calls; the command of an image."
  type        = string
}

variable "runtime" {
  description = "Lambda runtime of a zip package. Turnline is tested on CPython 3.11."
  type        = string
  default     = "python3.11"
}

variable "architecture" {
  description = "x86_64 or arm64; that of the package's native libraries."
  type        = string
  default     = "x86_64"

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "architecture is x86_64 or arm64."
  }
}

variable "memory_size" {
  description = "MiB; processor time grows with it."
  type        = number
  default     = 512
}

variable "timeout" {
  description = "Seconds one invocation may take, at most 900 (Lambda)."
  type        = number

  validation {
    condition     = var.timeout >= 1 && var.timeout <= 900
    error_message = "timeout is 1 to 900 seconds (Lambda)."
  }
}

variable "environment" {
  description = "Environment variables."
  type        = map(string)
  default     = {}
}

variable "statements" {
  description = "What the function may do besides writing its log."
  type = list(object({
    sid       = string
    actions   = list(string)
    resources = list(string)
    condition = optional(map(map(string)), {})
  }))
  default = []
}

variable "reserved_concurrency" {
  description = "Invocations at once, taken out of the account's; null: none reserved, no limit of its own."
  type        = number
  default     = null
}

variable "network" {
  description = "Subnets and security groups, when the function must reach what is in a VPC; null: none."
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
  description = "Key that encrypts variables and log; null: AWS's own. Its policy must let CloudWatch Logs use it."
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

variable "calls_itself" {
  description = "Whether the function may invoke itself, asynchronously."
  type        = bool
  default     = false
  nullable    = false
}
