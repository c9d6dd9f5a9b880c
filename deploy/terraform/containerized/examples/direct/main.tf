# Direct mode: one service takes the frames of the sockets, runs the agents and pushes the answers.

terraform {
  required_version = ">= 1.9"

  required_providers {
    archive = {
      source  = "hashicorp/archive"
      version = ">= 2.8, < 3.0"
    }
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.62, < 7.0"
    }
  }
}

provider "aws" {
  region = var.region
}

module "chat" {
  source = "../.."

  name           = var.name
  execution_mode = "async"
  queue_mode     = false
  # No queue keeps a turn whose container goes: none is longer than what a container drains.
  turn_timeout = 100

  vpc_id     = var.vpc_id
  subnet_ids = var.subnet_ids

  # AWSWebsocketAPI.run() after the agents.
  io_handler = {
    image     = var.image
    cpu       = 1024
    memory    = 2048
    min_count = 2
    max_count = 10
    secrets   = { AK_AUTH__JWT__SECRET = var.jwt_secret_arn }
  }

  agent_runner_statements = [{
    sid       = "Model"
    actions   = ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"]
    resources = [var.model_arn]
  }]

  environment = {
    AK_AUTH__TYPE = "jwt"
  }

  custom_routes = ["status"]

  tags = { application = var.name }
}
