variable "name" {
  description = "Name of the service, its task definition, roles and log group."
  type        = string
}

variable "cluster_arn" {
  description = "ARN of the cluster."
  type        = string
}

variable "container" {
  description = "What runs: image, command (null: the image's), user (null: the image's), port that serves /health, cpu in units (1024 is one), memory in MiB, architecture X86_64 or ARM64."
  type = object({
    image        = string
    command      = optional(list(string))
    user         = optional(string)
    port         = optional(number, 8000)
    cpu          = optional(number, 512)
    memory       = optional(number, 1024)
    architecture = optional(string, "X86_64")
  })
}

variable "environment" {
  description = "Environment variables."
  type        = map(string)
}

variable "secrets" {
  description = "Variables whose values ECS reads: name -> ARN in Secrets Manager or of an SSM parameter."
  type        = map(string)
  default     = {}
}

variable "statements" {
  description = "What the application may do."
  type = list(object({
    sid       = string
    actions   = list(string)
    resources = list(string)
    condition = optional(map(map(string)), {})
  }))
}

variable "stop_timeout" {
  description = "Seconds from SIGTERM to SIGKILL, 120 at most on Fargate."
  type        = number

  validation {
    condition     = var.stop_timeout >= 2 && var.stop_timeout <= 120
    error_message = "stop_timeout is 2 to 120 seconds (Fargate)."
  }
}

variable "desired_count" {
  description = "Tasks at first; from then on scaling says how many."
  type        = number
}

variable "rebalance_zones" {
  description = "Whether ECS may stop tasks to spread them over availability zones."
  type        = bool
  default     = false
}

variable "subnet_ids" {
  description = "Private subnets of the tasks, with a way to AWS and to the models."
  type        = list(string)
}

variable "security_group_ids" {
  description = "Security groups of the tasks."
  type        = list(string)
}

variable "target_group_arn" {
  description = "Target group that sends requests to the port; null: none."
  type        = string
  default     = null
}

variable "has_target_group" {
  description = "Whether target_group_arn is given; known before it is."
  type        = bool
  default     = false
}

variable "log_retention_days" {
  description = "Days the log is kept."
  type        = number
  default     = 365
}

variable "kms_key_arn" {
  description = "Key that encrypts log and secrets; null: AWS's own. Its policy must let CloudWatch Logs use it."
  type        = string
  default     = null
}

variable "permissions_boundary_arn" {
  description = "Boundary of both roles; null: none."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of all that is made."
  type        = map(string)
  default     = {}
}
