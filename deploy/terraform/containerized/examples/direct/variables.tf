variable "region" {
  description = "AWS region."
  type        = string
}

variable "name" {
  description = "What all names begin with."
  type        = string
  default     = "chat"
}

variable "vpc_id" {
  description = "The VPC."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of two availability zones or more."
  type        = list(string)
}

variable "image" {
  description = "Image with the agents and AWSWebsocketAPI."
  type        = string
}

variable "jwt_secret_arn" {
  description = "ARN of the secret that tokens are signed with."
  type        = string
}

variable "model_arn" {
  description = "The model that agents may call."
  type        = string
}
