# With the provider's schema and Terraform's own mocks: nothing is called.

mock_provider "aws" {
  mock_resource "aws_apigatewayv2_api" {
    defaults = {
      api_endpoint  = "wss://abc.execute-api.eu-west-1.amazonaws.com"
      execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:abc"
    }
  }
}

override_resource {
  target = module.queues.aws_sqs_queue.this["input"]
  values = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:chat-input.fifo"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/chat-input.fifo"
  }
}

override_resource {
  target = module.queues.aws_sqs_queue.this["output"]
  values = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:chat-output.fifo"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/chat-output.fifo"
  }
}

variables {
  name             = "chat"
  turn_timeout     = 300
  request_handler  = { package = { s3_bucket = "code", s3_key = "chat.zip", hash = "h" } }
  response_handler = { package = { s3_bucket = "code", s3_key = "chat.zip", hash = "h" } }
  agent_runner     = { package = { s3_bucket = "code", s3_key = "chat.zip", hash = "h" } }
}

run "rest" {
  assert {
    condition = (
      output.queues.input.max_receive_count == 4 && output.queues.output.max_receive_count == 4 + 3 * 9
    )
    error_message = "SQS gives a message up before the application has answered."
  }

  assert {
    condition     = module.queues.input.visibility_timeout == 6 * 330 && module.queues.output.visibility_timeout == 6 * 30
    error_message = "The visibility timeout is not six times the function's timeout."
  }

  assert {
    condition     = output.environments.request_handler["AK_EXECUTION__MODE"] == "rest_sync"
    error_message = "The mode is not handed on."
  }

  assert {
    condition     = output.tables.connections.name == null && output.scheduler_role_arn == null
    error_message = "Something is made that nobody asked for."
  }
}

run "websocket" {
  variables {
    execution_mode        = "stream"
    custom_routes         = ["status"]
    ws_connection_handler = { package = { s3_bucket = "code", s3_key = "chat.zip", hash = "h" } }
  }

  assert {
    condition     = output.url == "wss://abc.execute-api.eu-west-1.amazonaws.com/live"
    error_message = "Clients would connect elsewhere."
  }

  assert {
    condition     = output.environments.response_handler["AK_WEBSOCKET_API__ENDPOINT_URL"] == "https://abc.execute-api.eu-west-1.amazonaws.com/live"
    error_message = "Answers would be posted elsewhere."
  }

  assert {
    condition     = strcontains(output.policies.response_handler, "arn:aws:execute-api:eu-west-1:123456789012:abc/live/*/@connections/*")
    error_message = "The responder may not post, or may post everywhere."
  }
}

run "scheduling_makes_ids_of_contents_on_the_input_queue_alone" {
  variables {
    enable_scheduling = true
  }

  assert {
    condition     = module.queues.content_based_deduplication == { input = true, output = false }
    error_message = "EventBridge Scheduler cannot name a deduplication id."
  }

  assert {
    condition     = output.scheduler_role_arn != null
    error_message = "Schedules have no role to take."
  }
}

run "a_turn_longer_than_an_invocation_is_refused" {
  command = plan

  variables {
    turn_timeout = 900
  }

  expect_failures = [var.turn_timeout]
}
