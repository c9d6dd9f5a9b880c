variable "region" {
  description = "AWS region."
  type        = string
}

variable "name" {
  description = "What all names begin with."
  type        = string
  default     = "chat"
}

variable "package_bucket" {
  description = "Bucket of the zip with the entry points."
  type        = string
}

variable "package_key" {
  description = "Key of the zip."
  type        = string
}

variable "package_hash" {
  description = "base64 of the zip's SHA-256, so that a new one is deployed."
  type        = string
}

variable "model_arn" {
  description = "The model that agents may call."
  type        = string
}
