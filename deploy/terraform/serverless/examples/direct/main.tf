# Direct mode: one function takes the frames of the sockets, runs the agents and pushes the answers.

terraform {
  required_version = ">= 1.9"

  required_providers {
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
  execution_mode = "stream"
  queue_mode     = false
  turn_timeout   = 300

  # The package holds the agents and both entry points; the function's timeout follows turn_timeout.
  ws_connection_handler = {
    package     = { s3_bucket = var.package_bucket, s3_key = var.package_key, hash = var.package_hash }
    memory_size = 2048
  }

  environment = {
    AK_AUTH__TYPE = "jwt"
  }

  agent_runner_statements = [{
    sid       = "Model"
    actions   = ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"]
    resources = [var.model_arn]
  }]

  custom_routes = ["status"]

  tags = { application = var.name }
}
