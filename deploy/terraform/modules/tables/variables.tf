variable "name" {
  description = "What the tables' names begin with."
  type        = string
}

variable "with_connections" {
  description = "Whether to make the table of client sockets."
  type        = bool
}

variable "deletion_protection" {
  description = "Whether AWS refuses to delete the tables."
  type        = bool
  default     = true
}

variable "kms_key_arn" {
  description = "Key that encrypts the tables; null: the one AWS manages for DynamoDB."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of the tables."
  type        = map(string)
  default     = {}
}
