# With the provider's schema and Terraform's own mocks: nothing is called.

mock_provider "archive" {}

mock_provider "aws" {
  mock_resource "aws_apigatewayv2_api" {
    defaults = {
      api_endpoint  = "wss://abc.execute-api.eu-west-1.amazonaws.com"
      execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:abc"
    }
  }

  mock_resource "aws_lb" {
    defaults = {
      dns_name = "internal.elb.eu-west-1.amazonaws.com"
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
  name         = "chat"
  vpc_id       = "vpc-1"
  subnet_ids   = ["subnet-1", "subnet-2"]
  io_handler   = { image = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/chat-io:1", secrets = { AK_AUTH__JWT__SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:jwt-AbCdEf" } }
  agent_runner = { image = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/chat-agents:1" }
}

run "rest" {
  assert {
    condition     = output.queues.input.max_receive_count == 100 && output.queues.output.max_receive_count == 100
    error_message = "SQS gives a message up before the application has answered."
  }

  assert {
    condition     = output.queues.input.visibility_timeout == 10
    error_message = "The work of a dead task comes back late: leases are renewed, so they need not outlast turns."
  }

  assert {
    condition     = length(aws_lb.websocket) == 0 && length(aws_apigatewayv2_api.websocket) == 0
    error_message = "A way for sockets that nobody asked for."
  }

  assert {
    condition     = length(setsubtract(["DELETE /api/v1/chat", "GET /api/v1/chat", "POST /api/v1/chat"], keys(aws_apigatewayv2_route.http))) == 0
    error_message = "POST, GET and DELETE /api/v1/chat are not all there."
  }

  assert {
    condition     = tonumber(output.environments.agent_runner["AK_EXECUTION__DRAIN_GRACE"]) < 120
    error_message = "SIGKILL would come before the drain is over."
  }

  assert {
    condition     = !strcontains(output.policies.io_handler, "execute-api")
    error_message = "Rights for a WebSocket API that is not there."
  }
}

run "websocket" {
  variables {
    execution_mode = "async"
    custom_routes  = ["status"]
    scaling_config = { enabled = true, min_count = 0, max_count = 10, backlog_target = 5, scale_in_cooldown = 180, scale_out_cooldown = 60 }
  }

  assert {
    condition     = output.url == "wss://abc.execute-api.eu-west-1.amazonaws.com/live"
    error_message = "Clients would connect elsewhere."
  }

  assert {
    condition = (
      aws_lb_target_group.websocket["this"].target_type == "alb"
      && aws_lb.websocket["this"].load_balancer_type == "network"
      && aws_apigatewayv2_integration.websocket["message"].connection_type == "VPC_LINK"
    )
    error_message = "The way from the WebSocket API to the IO handler is broken."
  }

  assert {
    condition     = aws_apigatewayv2_integration.websocket["connect"].integration_uri == "http://internal.elb.eu-west-1.amazonaws.com/ws/connect"
    error_message = "The WebSocket API posts elsewhere."
  }

  assert {
    condition     = keys(aws_apigatewayv2_route.websocket) == ["$connect", "$default", "$disconnect", "chat", "status"]
    error_message = "Routes are missing."
  }

  assert {
    condition     = [for name, route in aws_apigatewayv2_route.websocket : name if route.route_response_selection_expression == "$default"] == ["$default", "chat", "status"]
    error_message = "Answers to frames would be dropped."
  }

  assert {
    condition     = keys(aws_apigatewayv2_route_response.websocket) == ["$default", "chat", "status"]
    error_message = "Answers to frames would be dropped."
  }

  assert {
    condition     = !contains(keys(aws_apigatewayv2_integration.websocket["message"].request_parameters), "integration.request.querystring.token")
    error_message = "The token travels with every frame."
  }

  assert {
    condition = (
      strcontains(output.policies.io_handler, "arn:aws:execute-api:eu-west-1:123456789012:abc/live/*/@connections/*")
      && !strcontains(output.policies.agent_runner, "execute-api")
    )
    error_message = "Not the IO handler alone may write to clients, or it may write everywhere."
  }
}

run "tls_inside_the_vpc" {
  variables {
    execution_mode = "stream"
    internal_tls   = { certificate_arn = "arn:aws:acm:eu-west-1:123456789012:certificate/1", server_name = "io.example.com" }
  }

  assert {
    condition = (
      aws_lb_listener.internal.protocol == "HTTPS"
      && aws_lb_listener.internal.port == 443
      && aws_apigatewayv2_integration.websocket["connect"].integration_uri == "https://io.example.com/ws/connect"
    )
    error_message = "What was to be encrypted is not."
  }
}

run "a_stop_longer_than_fargate_allows_is_refused" {
  command = plan

  variables {
    stop_timeout = 300
  }

  expect_failures = [var.stop_timeout]
}

run "direct" {
  variables {
    turn_timeout   = 100
    execution_mode = "stream"
    queue_mode     = false
    custom_routes  = ["status"]
    agent_runner   = null

    agent_runner_statements = [{
      sid       = "Model"
      actions   = ["bedrock:InvokeModel"]
      resources = ["arn:aws:bedrock:eu-west-1::foundation-model/m"]
    }]
  }

  assert {
    condition = (
      length(module.queues) == 0 && length(module.agent_runner) == 0 && length(module.backlog_scaling) == 0
      && length(aws_security_group.agent_runner) == 0 && keys(aws_vpc_security_group_egress_rule.tasks) == ["io_handler"]
    )
    error_message = "Queues, or what works on them, are made for nobody."
  }

  assert {
    condition = (
      output.queues == null && output.backlog_metric == null && output.scheduler_role_arn == null
      && output.services == { io_handler = "chat-io-handler", agent_runner = null }
    )
    error_message = "Outputs name what is not there."
  }

  assert {
    condition     = output.tables.connections.name == "chat-connections" && output.url == "wss://abc.execute-api.eu-west-1.amazonaws.com/live"
    error_message = "Sockets have no table, or no way in."
  }

  assert {
    condition     = keys(aws_apigatewayv2_route.websocket) == ["$connect", "$default", "$disconnect", "chat", "status"] && length(aws_lb.websocket) == 1
    error_message = "The way from the WebSocket API to the container is not that of queue mode."
  }

  assert {
    condition = (
      output.environments.io_handler["AK_EXECUTION__QUEUES__TYPE"] == "in_memory"
      && output.environments.io_handler["AK_EXECUTION__MODE"] == "stream"
      && output.environments.io_handler["AK_WEBSOCKET_API__ENDPOINT_URL"] == "https://abc.execute-api.eu-west-1.amazonaws.com/live"
      && output.environments.io_handler["AK_SESSION__CONNECTION_STORE__TABLE_NAME"] == "chat-connections"
    )
    error_message = "The container would not run its agents itself, or would not reach its clients."
  }

  assert {
    condition     = output.environments.io_handler["AK_EXECUTION__DRAIN_GRACE"] == "110"
    error_message = "Turns are cut off like requests: a container that runs agents drains as long as a runner."
  }

  assert {
    condition     = !strcontains(output.policies.io_handler, "sqs:") && output.policies.agent_runner == null
    error_message = "Rights to queues that are not there."
  }

  assert {
    condition = (
      strcontains(output.policies.io_handler, "arn:aws:execute-api:eu-west-1:123456789012:abc/live/*/@connections/*")
      && strcontains(output.policies.io_handler, "bedrock:InvokeModel")
    )
    error_message = "The container may not write to clients, or its agents may not call their model."
  }

  assert {
    condition     = aws_appautoscaling_target.io_handler.min_capacity == 2 && aws_appautoscaling_target.io_handler.max_capacity == 6
    error_message = "Nothing says how many containers there are."
  }
}

run "direct_rest" {
  variables {
    turn_timeout   = 100
    execution_mode = "rest_async"
    queue_mode     = false
    agent_runner   = null
    routes         = [{ method = "GET", path = "/app/status" }]
  }

  assert {
    condition     = length(module.queues) == 0 && length(module.agent_runner) == 0 && length(aws_lb.websocket) == 0
    error_message = "Queues, what works on them, or a way for sockets are made for nobody."
  }

  assert {
    condition = (
      output.environments.io_handler["AK_EXECUTION__QUEUES__TYPE"] == "in_memory"
      && output.environments.io_handler["AK_EXECUTION__MODE"] == "rest_async"
      && output.environments.io_handler["AK_EXECUTION__DRAIN_GRACE"] == "110"
    )
    error_message = "The container would not run its agents itself, or not to their end."
  }

  assert {
    condition     = length(setsubtract(["GET /app/status", "POST /api/v1/chat"], keys(aws_apigatewayv2_route.http))) == 0
    error_message = "There is no way in."
  }

  assert {
    condition     = !strcontains(output.policies.io_handler, "sqs:") && !strcontains(output.policies.io_handler, "execute-api")
    error_message = "Rights to what is not there."
  }
}

run "direct_turns_that_outlast_their_container_are_told" {
  command = plan

  variables {
    turn_timeout   = 111
    execution_mode = "stream"
    queue_mode     = false
    agent_runner   = null
  }

  expect_failures = [check.direct_turns_end_with_their_container]
}

run "sockets_have_no_paths" {
  command = plan

  variables {
    execution_mode = "stream"
    routes         = [{ method = "GET", path = "/app/status" }]
  }

  expect_failures = [var.routes]
}

run "direct_mode_has_no_place_for_a_runner" {
  command = plan

  variables {
    turn_timeout   = 100
    execution_mode = "async"
    queue_mode     = false
  }

  expect_failures = [var.agent_runner]
}

run "queues_need_a_runner" {
  command = plan

  variables {
    agent_runner = null
  }

  expect_failures = [var.agent_runner]
}

run "schedules_need_queues" {
  command = plan

  variables {
    turn_timeout      = 100
    execution_mode    = "async"
    queue_mode        = false
    agent_runner      = null
    enable_scheduling = true
  }

  expect_failures = [var.enable_scheduling]
}
