# A fleet of runners that sleeps when there is nothing to do, behind a WebSocket API.

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

resource "aws_sns_topic" "alarms" {
  name              = "${var.name}-alarms"
  kms_master_key_id = "alias/aws/sns"
}

module "chat" {
  source = "../.."

  name           = var.name
  execution_mode = "stream"
  queue_mode     = true
  turn_timeout   = 900

  vpc_id     = var.vpc_id
  subnet_ids = var.subnet_ids

  io_handler = {
    image   = var.io_image
    secrets = { AK_AUTH__JWT__SECRET = var.jwt_secret_arn }
  }

  agent_runner = {
    image  = var.agent_image
    cpu    = 1024
    memory = 2048
  }

  agent_runner_statements = [{
    sid       = "Model"
    actions   = ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"]
    resources = [var.model_arn]
  }]

  scaling_config = {
    enabled            = true
    min_count          = 0
    max_count          = 10
    backlog_target     = 5
    scale_in_cooldown  = 180
    scale_out_cooldown = 60
  }

  queues = {
    input  = { max_receive_count = 3, no_of_consumers = 5 }
    output = { max_receive_count = 3, no_of_consumers = 2 }
  }

  environment = {
    AK_AUTH__TYPE = "jwt"
  }

  custom_routes = ["status"]
  alarm_actions = [aws_sns_topic.alarms.arn]

  tags = { application = var.name }
}
