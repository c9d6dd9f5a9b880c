variable "name" {
  description = "What the queues' names begin with."
  type        = string
}

variable "input" {
  description = "The queue of turns: attempts of the application before a turn fails for good, seconds until an unsettled delivery comes back, and deliveries beyond the attempts that start none."
  type = object({
    max_receive_count  = number
    visibility_timeout = number
    spare_deliveries   = optional(number, 0)
  })
}

variable "output" {
  description = "The queue of answers; as input."
  type = object({
    max_receive_count  = number
    visibility_timeout = number
    spare_deliveries   = optional(number, 0)
  })
}

variable "message_retention" {
  description = "Seconds a message waits at most; older ones are gone. It bounds what nobody can process."
  type        = number
  default     = 86400

  validation {
    condition     = var.message_retention >= 60 && var.message_retention <= 1209600
    error_message = "message_retention is 60 seconds to 14 days (SQS)."
  }
}

variable "max_message_size" {
  description = "Bytes of the largest message, at most 1 MiB (SQS)."
  type        = number
  default     = 1048576

  validation {
    condition     = var.max_message_size >= 1024 && var.max_message_size <= 1048576
    error_message = "max_message_size is 1024 to 1048576 bytes (SQS)."
  }
}

variable "enable_scheduling" {
  description = "Let EventBridge Scheduler send turns: it cannot name a deduplication id, so the input queue makes one of the content, and a role for it is made."
  type        = bool
  default     = false
}

variable "kms_key_arn" {
  description = "Key that encrypts the messages; null: SQS's own."
  type        = string
  default     = null
}

variable "alarm_actions" {
  description = "What is told of a dead letter, such as an SNS topic; empty: nobody."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags of all that is made."
  type        = map(string)
  default     = {}
}
