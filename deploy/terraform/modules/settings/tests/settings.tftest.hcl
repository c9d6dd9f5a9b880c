variables {
  execution_mode = "rest_async"
  turn_timeout   = 300
  input          = { url = "https://sqs/chat-input.fifo", visibility_timeout = 1980, max_receive_count = 4 }
  output         = { url = "https://sqs/chat-output.fifo", visibility_timeout = 180 }
  tables         = { responses = "chat-responses", sessions = "chat-sessions" }
}

run "a_rest_installation_knows_no_sockets" {
  command = plan

  assert {
    condition     = length([for key in keys(output.response_handler) : key if startswith(key, "AK_WEBSOCKET_API")]) == 0
    error_message = "WebSocket settings without a WebSocket API."
  }

  assert {
    condition     = !contains(keys(output.io_handler), "AK_SESSION__CONNECTION_STORE__TABLE_NAME")
    error_message = "A connections table that is not there."
  }
}

run "the_runner_reads_both_queues_and_its_attempts" {
  command = plan

  assert {
    condition = (
      output.agent_runner["AK_EXECUTION__QUEUES__INPUT__URL"] == "https://sqs/chat-input.fifo"
      && output.agent_runner["AK_EXECUTION__QUEUES__OUTPUT__URL"] == "https://sqs/chat-output.fifo"
      && output.agent_runner["AK_EXECUTION__QUEUES__INPUT__MAX_RECEIVE_COUNT"] == "4"
      && output.agent_runner["AK_EXECUTION__QUEUES__INPUT__NO_OF_CONSUMERS"] == "5"
      && output.agent_runner["AK_EXECUTION__QUEUES__SQS__VISIBILITY_TIMEOUT"] == "1980"
    )
    error_message = "The runner's settings differ from what was given."
  }
}

run "the_lease_of_a_service_is_that_of_the_queue_it_takes_from" {
  command = plan

  assert {
    condition     = output.response_handler["AK_EXECUTION__QUEUES__SQS__VISIBILITY_TIMEOUT"] == "180"
    error_message = "The responder's lease is not that of the output queue."
  }
}

run "without_a_lease_the_applications_default_stands" {
  command = plan

  variables {
    input = { url = "https://sqs/chat-input.fifo" }
  }

  assert {
    condition     = !contains(keys(output.agent_runner), "AK_EXECUTION__QUEUES__SQS__VISIBILITY_TIMEOUT")
    error_message = "A lease that nobody asked for."
  }
}

run "a_function_has_no_drain" {
  command = plan

  assert {
    condition     = !contains(keys(output.agent_runner), "AK_EXECUTION__DRAIN_GRACE")
    error_message = "Lambda sends no SIGTERM to drain on."
  }
}

run "a_container_drains" {
  command = plan

  variables {
    drain_grace = 110
  }

  assert {
    condition     = output.agent_runner["AK_EXECUTION__DRAIN_GRACE"] == "110" && output.io_handler["AK_EXECUTION__DRAIN_GRACE"] == "110"
    error_message = "The containers do not know how long they may drain."
  }
}

run "a_websocket_installation_knows_where_to_post" {
  command = plan

  variables {
    execution_mode = "stream"
    tables         = { responses = "chat-responses", sessions = "chat-sessions", connections = "chat-connections" }
    websocket      = { endpoint_url = "https://abc.execute-api.eu-west-1.amazonaws.com/live" }
  }

  assert {
    condition     = output.response_handler["AK_WEBSOCKET_API__ENDPOINT_URL"] == "https://abc.execute-api.eu-west-1.amazonaws.com/live"
    error_message = "The responder does not know where to post."
  }

  assert {
    condition     = output.ws_connection_handler["AK_WEBSOCKET_API__ENDPOINT_URL"] == output.response_handler["AK_WEBSOCKET_API__ENDPOINT_URL"]
    error_message = "What was held would be posted elsewhere than answers are."
  }
}

run "a_websocket_installation_needs_its_table_and_endpoint" {
  command = plan

  variables {
    execution_mode = "async"
  }

  expect_failures = [
    output.request_handler, output.response_handler, output.io_handler, output.ws_connection_handler,
  ]
}

run "an_unknown_mode_is_refused" {
  command = plan

  variables {
    execution_mode = "realtime"
  }

  expect_failures = [var.execution_mode]
}

run "a_wait_that_outlives_api_gateway_is_refused" {
  command = plan

  variables {
    response_wait = { retry_count = 60, delay = 1 }
  }

  expect_failures = [var.response_wait]
}

run "attempts_beyond_the_redrive_policy_are_refused" {
  command = plan

  variables {
    input = { url = "https://sqs/chat-input.fifo", visibility_timeout = 30, max_receive_count = 1000 }
  }

  expect_failures = [var.input]
}

run "without_queues_one_process_has_everything_but_their_urls" {
  command = plan

  variables {
    execution_mode = "stream"
    queue_mode     = false
    drain_grace    = 110
    input          = { max_receive_count = 4, no_of_consumers = 6 }
    output         = {}
    tables         = { responses = "chat-responses", sessions = "chat-sessions", connections = "chat-connections" }
    websocket      = { endpoint_url = "https://abc.execute-api.eu-west-1.amazonaws.com/live" }
  }

  assert {
    condition = (
      output.direct["AK_EXECUTION__QUEUES__TYPE"] == "in_memory"
      && [for key in keys(output.direct) : key if endswith(key, "__URL")] == []
      && !contains(keys(output.direct), "AK_EXECUTION__QUEUES__BATCH_SIZE")
    )
    error_message = "Settings of queues that are not there."
  }

  assert {
    condition = (
      output.direct["AK_EXECUTION__QUEUES__INPUT__MAX_RECEIVE_COUNT"] == "4"
      && output.direct["AK_EXECUTION__QUEUES__INPUT__NO_OF_CONSUMERS"] == "6"
      && output.direct["AK_EXECUTION__DRAIN_GRACE"] == "110"
      && output.direct["AK_SESSION__DYNAMODB__TABLE_NAME"] == "chat-sessions"
      && output.direct["AK_EXECUTION__RESPONSE_STORE__DYNAMODB__TABLE_NAME"] == "chat-responses"
      && output.direct["AK_SESSION__CONNECTION_STORE__TABLE_NAME"] == "chat-connections"
      && output.direct["AK_WEBSOCKET_API__ENDPOINT_URL"] == "https://abc.execute-api.eu-west-1.amazonaws.com/live"
    )
    error_message = "The process lacks a store, its endpoint or its limits."
  }
}

run "direct_mode_over_rest_knows_neither_queues_nor_sockets" {
  command = plan

  variables {
    queue_mode = false
    input      = {}
    output     = {}
  }

  assert {
    condition     = output.direct["AK_EXECUTION__MODE"] == "rest_async" && output.direct["AK_EXECUTION__QUEUES__TYPE"] == "in_memory"
    error_message = "The process would not run its agents itself."
  }

  assert {
    condition     = !anytrue([for name in keys(output.direct) : strcontains(name, "WEBSOCKET") || strcontains(name, "CONNECTION") || strcontains(name, "__URL")])
    error_message = "Variables of what is not there."
  }
}

run "queues_have_urls" {
  command = plan

  variables {
    input  = {}
    output = {}
  }

  expect_failures = [var.input, var.output]
}
