# REST with polling, and WebSocket streaming, side by side in one account.

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

resource "aws_sns_topic" "alarms" {
  name              = "${var.name}-alarms"
  kms_master_key_id = "alias/aws/sns"
}

locals {
  # One zip holds all entry points; deploy/terraform/serverless/README.md says how it is made.
  package = {
    s3_bucket = var.package_bucket
    s3_key    = var.package_key
    hash      = var.package_hash
  }
}

module "rest" {
  source = "../.."

  name           = "${var.name}-rest"
  execution_mode = "rest_async"
  turn_timeout   = 300

  request_handler  = { package = local.package }
  response_handler = { package = local.package }
  agent_runner     = { package = local.package, memory_size = 2048 }

  queues = {
    input = { max_receive_count = 3, batch_size = 1, maximum_concurrency = 20 }
  }

  enable_scheduling = true
  alarm_actions     = [aws_sns_topic.alarms.arn]

  environment = {
    AK_AUTH__TYPE = "jwt"
  }

  agent_runner_statements = [{
    sid       = "Model"
    actions   = ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"]
    resources = [var.model_arn]
  }]

  tags = { application = var.name }
}

module "websocket" {
  source = "../.."

  name           = "${var.name}-ws"
  execution_mode = "stream"

  request_handler       = { package = local.package }
  response_handler      = { package = local.package }
  agent_runner          = { package = local.package, memory_size = 2048 }
  ws_connection_handler = { package = local.package }

  custom_routes = ["status"]
  alarm_actions = [aws_sns_topic.alarms.arn]

  agent_runner_statements = [{
    sid       = "Model"
    actions   = ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"]
    resources = [var.model_arn]
  }]

  tags = { application = var.name }
}
