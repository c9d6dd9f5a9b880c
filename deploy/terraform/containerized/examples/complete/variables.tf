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

variable "io_image" {
  description = "Image of the IO handler: no agents in it."
  type        = string
}

variable "agent_image" {
  description = "Image of the agent runner, with the agents."
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
