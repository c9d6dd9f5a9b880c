variable "name" {
  description = "What names begin with: the service's name."
  type        = string
}

variable "cluster_name" {
  description = "Name of the cluster."
  type        = string
}

variable "service" {
  description = "The service of runners: name, arn."
  type = object({
    name = string
    arn  = string
  })
}

variable "queue" {
  description = "The input queue: url, arn."
  type = object({
    url = string
    arn = string
  })
}

variable "scaling_config" {
  description = "enabled: whether the fleet follows its backlog; otherwise it is min_count tasks. min_count: 0 lets it sleep. backlog_target: turns per task, waiting and in flight. Cooldowns in seconds."
  type = object({
    enabled            = optional(bool, true)
    min_count          = optional(number, 1)
    max_count          = optional(number, 10)
    backlog_target     = optional(number, 5)
    scale_in_cooldown  = optional(number, 180)
    scale_out_cooldown = optional(number, 60)
  })

  validation {
    condition     = var.scaling_config.min_count >= 0 && var.scaling_config.max_count >= max(1, var.scaling_config.min_count)
    error_message = "scaling_config needs 0 <= min_count <= max_count, and max_count of 1 at least."
  }

  validation {
    condition     = var.scaling_config.enabled || var.scaling_config.min_count >= 1
    error_message = "scaling_config.min_count is 0 and nothing would ever wake the fleet; enable scaling or keep one task."
  }

  validation {
    condition     = var.scaling_config.backlog_target > 0
    error_message = "scaling_config.backlog_target is above 0."
  }
}

variable "source_dir" {
  description = "Folder of turnline.backlog_metric's sources; null: those beside these modules in the repository."
  type        = string
  default     = null
}

variable "alarm_actions" {
  description = "What is told when the backlog is not measured, such as an SNS topic."
  type        = list(string)
  default     = []
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
  description = "Boundary of the function's role; null: none."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of all that is made."
  type        = map(string)
  default     = {}
}
