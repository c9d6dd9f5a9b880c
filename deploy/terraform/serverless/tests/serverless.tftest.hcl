# With the provider's schema and Terraform's own mocks: nothing is called.

mock_provider "aws" {
  mock_resource "aws_cloudwatch_log_group" {
    defaults = {
      arn = "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/lambda/x"
    }
  }

  mock_resource "aws_apigatewayv2_api" {
    defaults = {
      api_endpoint  = "wss://abc.execute-api.eu-west-1.amazonaws.com"
      execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:abc"
    }
  }
}

override_resource {
  target = module.queues[0].aws_sqs_queue.this["input"]
  values = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:chat-input.fifo"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/chat-input.fifo"
  }
}

override_resource {
  target = module.queues[0].aws_sqs_queue.this["output"]
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
    condition     = module.queues[0].input.visibility_timeout == 6 * 330 && module.queues[0].output.visibility_timeout == 6 * 30
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

  assert {
    condition = (
      output.environments.ws_connection_handler["AK_WEBSOCKET_API__ENDPOINT_URL"] == output.environments.response_handler["AK_WEBSOCKET_API__ENDPOINT_URL"]
      && strcontains(output.policies.ws_connection_handler, "arn:aws:execute-api:eu-west-1:123456789012:abc/live/*/@connections/*")
      && strcontains(output.policies.ws_connection_handler, "\"arn:aws:lambda:eu-west-1:123456789012:function:chat-ws-connection-handler\"")
    )
    error_message = "What is held could not be brought to a socket that came."
  }

  assert {
    condition     = !strcontains(output.policies.response_handler, "lambda:InvokeFunction")
    error_message = "A function may call itself that never does."
  }
}

run "scheduling_makes_ids_of_contents_on_the_input_queue_alone" {
  variables {
    enable_scheduling = true
  }

  assert {
    condition     = module.queues[0].content_based_deduplication == { input = true, output = false }
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

run "routes" {
  variables {
    routes = [{ method = "GET", path = "/app/status" }]
  }

  assert {
    condition     = contains(module.api_gateway[0].routes, "GET /app/status") && contains(module.api_gateway[0].routes, "POST /api/v1/chat")
    error_message = "The application's own path, or the chat's, does not reach the request handler."
  }
}

run "direct" {
  variables {
    execution_mode        = "async"
    queue_mode            = false
    request_handler       = null
    response_handler      = null
    agent_runner          = null
    ws_connection_handler = { package = { s3_bucket = "code", s3_key = "chat.zip", hash = "h" }, memory_size = 2048 }

    environment              = { AK_AUTH__TYPE = "jwt" }
    agent_runner_environment = { MODEL = "m" }
    agent_runner_statements = [{
      sid       = "Model"
      actions   = ["bedrock:InvokeModel"]
      resources = ["arn:aws:bedrock:eu-west-1::foundation-model/m"]
    }]
  }

  assert {
    condition = (
      length(module.queues) == 0 && length(module.agent_runner) == 0 && length(module.response_handler) == 0
      && length(module.request_handler) == 0 && length(module.api_gateway) == 0
    )
    error_message = "Queues, or functions beside that of the sockets, are made for nobody."
  }

  assert {
    condition     = output.queues == null && output.scheduler_role_arn == null && output.role_arns.agent_runner == null
    error_message = "Outputs name what is not there."
  }

  assert {
    condition     = output.tables.connections.name == "chat-connections" && output.url == "wss://abc.execute-api.eu-west-1.amazonaws.com/live"
    error_message = "Sockets have no table, or no way in."
  }

  assert {
    condition = (
      output.environments.ws_connection_handler["AK_EXECUTION__QUEUES__TYPE"] == "in_memory"
      && output.environments.ws_connection_handler["AK_EXECUTION__MODE"] == "async"
      && output.environments.ws_connection_handler["AK_WEBSOCKET_API__ENDPOINT_URL"] == "https://abc.execute-api.eu-west-1.amazonaws.com/live"
      && output.environments.ws_connection_handler["MODEL"] == "m"
    )
    error_message = "The function would not run its agents itself, or would not reach its clients."
  }

  assert {
    condition     = !contains(keys(output.environments.ws_connection_handler), "AK_EXECUTION__DRAIN_GRACE")
    error_message = "Lambda sends no SIGTERM to drain on."
  }

  assert {
    condition     = !strcontains(output.policies.ws_connection_handler, "sqs:")
    error_message = "Rights to queues that are not there."
  }

  assert {
    condition = (
      strcontains(output.policies.ws_connection_handler, "arn:aws:execute-api:eu-west-1:123456789012:abc/live/*/@connections/*")
      && strcontains(output.policies.ws_connection_handler, "bedrock:InvokeModel")
    )
    error_message = "The function may not write to clients, or its agents may not call their model."
  }
}

run "direct_rest" {
  variables {
    queue_mode       = false
    response_handler = null
    agent_runner     = null
    routes           = [{ method = "GET", path = "/app/status" }]

    agent_runner_environment = { MODEL = "m" }
    agent_runner_statements = [{
      sid       = "Model"
      actions   = ["bedrock:InvokeModel"]
      resources = ["arn:aws:bedrock:eu-west-1::foundation-model/m"]
    }]
  }

  assert {
    condition = (
      length(module.queues) == 0 && length(module.agent_runner) == 0 && length(module.response_handler) == 0
      && length(module.ws_connection_handler) == 0 && length(module.websocket_api_gateway) == 0
    )
    error_message = "Queues, or functions beside the request handler, are made for nobody."
  }

  assert {
    condition = (
      output.environments.request_handler["AK_EXECUTION__QUEUES__TYPE"] == "in_memory"
      && output.environments.request_handler["AK_EXECUTION__MODE"] == "rest_sync"
      && output.environments.request_handler["MODEL"] == "m"
    )
    error_message = "The function would not run its agents itself."
  }

  assert {
    condition     = !strcontains(output.policies.request_handler, "sqs:") && strcontains(output.policies.request_handler, "bedrock:InvokeModel")
    error_message = "Rights to queues that are not there, or none to the model."
  }

  assert {
    condition     = contains(module.api_gateway[0].routes, "POST /api/v1/chat") && contains(module.api_gateway[0].routes, "GET /app/status")
    error_message = "There is no way in."
  }
}

run "direct_mode_cannot_answer_before_it_is_done" {
  command = plan

  variables {
    execution_mode   = "rest_async"
    queue_mode       = false
    response_handler = null
    agent_runner     = null
  }

  expect_failures = [var.queue_mode]
}

run "direct_mode_has_no_place_for_a_runner_and_a_response_handler" {
  command = plan

  variables {
    execution_mode        = "stream"
    queue_mode            = false
    ws_connection_handler = { package = { s3_bucket = "code", s3_key = "chat.zip", hash = "h" } }
  }

  expect_failures = [var.agent_runner, var.response_handler]
}

run "queues_need_a_runner_and_a_response_handler_and_requests_their_handler" {
  command = plan

  variables {
    request_handler  = null
    response_handler = null
    agent_runner     = null
  }

  expect_failures = [var.request_handler, var.agent_runner, var.response_handler]
}

run "sockets_need_their_handler_and_have_no_paths" {
  command = plan

  variables {
    execution_mode = "stream"
    routes         = [{ method = "GET", path = "/app/status" }]
  }

  expect_failures = [var.ws_connection_handler, var.routes]
}

run "schedules_need_queues" {
  command = plan

  variables {
    execution_mode        = "async"
    queue_mode            = false
    response_handler      = null
    agent_runner          = null
    ws_connection_handler = { package = { s3_bucket = "code", s3_key = "chat.zip", hash = "h" } }
    enable_scheduling     = true
  }

  expect_failures = [var.enable_scheduling]
}
