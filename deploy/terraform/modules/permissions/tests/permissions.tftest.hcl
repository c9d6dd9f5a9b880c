variables {
  arns = {
    input_queue         = "arn:input"
    input_dead_letters  = "arn:input-dlq"
    output_queue        = "arn:output"
    output_dead_letters = "arn:output-dlq"
    responses           = "arn:responses"
    sessions            = "arn:sessions"
    connections         = "arn:connections"
    execute_api         = "arn:api/live"
  }
}

run "only_what_brings_answers_may_write_to_clients" {
  command = plan

  assert {
    condition = alltrue([
      for statements in [output.request_handler, output.agent_runner] :
      !contains(flatten([for statement in statements : statement.actions]), "execute-api:ManageConnections")
    ])
    error_message = "Somebody may write to clients who has nothing for them."
  }

  assert {
    condition = alltrue([
      for statements in [output.response_handler, output.io_handler, output.ws_connection_handler, output.direct] :
      contains(flatten([for statement in statements : statement.actions]), "execute-api:ManageConnections")
    ])
    error_message = "Answers, or what was held, cannot be written to clients."
  }
}

run "every_statement_names_its_resource" {
  command = plan

  assert {
    condition = alltrue(flatten([
      for statements in [
        output.request_handler, output.agent_runner, output.response_handler, output.io_handler,
        output.ws_connection_handler, output.direct,
        ] : [
        for statement in statements : [
          for text in concat(statement.actions, statement.resources) : text != "*" && !endswith(text, ":*")
        ]
      ]
    ]))
    error_message = "A statement names everything."
  }
}

run "the_runner_takes_input_and_sends_output" {
  command = plan

  assert {
    condition = (
      [for statement in output.agent_runner : statement.resources if contains(statement.actions, "sqs:ReceiveMessage")] == [["arn:input"], ["arn:input-dlq"]]
      && [for statement in output.agent_runner : statement.resources if contains(statement.actions, "sqs:SendMessage")] == [["arn:input-dlq"], ["arn:output"]]
    )
    error_message = "The runner takes or sends elsewhere."
  }
}

run "the_request_handler_sends_input_and_takes_nothing" {
  command = plan

  assert {
    condition = (
      [for statement in output.request_handler : statement.resources if contains(statement.actions, "sqs:SendMessage")] == [["arn:input"]]
      && !contains(flatten([for statement in output.request_handler : statement.actions]), "sqs:ReceiveMessage")
    )
    error_message = "The request handler takes messages, or sends elsewhere."
  }
}

run "the_runner_does_not_write_answers_into_the_response_store" {
  command = plan

  assert {
    condition = length([
      for statement in output.agent_runner : statement
      if contains(statement.resources, "arn:responses") && contains(statement.actions, "dynamodb:PutItem")
    ]) == 0
    error_message = "The runner may write answers."
  }
}

run "without_a_websocket_api_nobody_has_its_rights" {
  command = plan

  variables {
    arns = {
      input_queue         = "arn:input"
      input_dead_letters  = "arn:input-dlq"
      output_queue        = "arn:output"
      output_dead_letters = "arn:output-dlq"
      responses           = "arn:responses"
      sessions            = "arn:sessions"
    }
  }

  assert {
    condition = alltrue(flatten([
      for statements in [output.request_handler, output.response_handler, output.io_handler] : [
        for statement in statements : !contains(["Push", "Connections", "Keys"], statement.sid)
      ]
    ]))
    error_message = "Rights for what is not there."
  }
}

run "a_key_of_the_callers_may_be_used_by_everybody_who_reads_or_writes" {
  command = plan

  variables {
    arns = {
      input_queue         = "arn:input"
      input_dead_letters  = "arn:input-dlq"
      output_queue        = "arn:output"
      output_dead_letters = "arn:output-dlq"
      responses           = "arn:responses"
      sessions            = "arn:sessions"
      kms_keys            = ["arn:key"]
    }
  }

  assert {
    condition = alltrue([
      for statements in [output.request_handler, output.agent_runner, output.response_handler, output.io_handler] :
      contains(flatten([for statement in statements : statement.resources]), "arn:key")
    ])
    error_message = "A service cannot read what is encrypted."
  }
}

run "without_queues_there_are_no_rights_to_them" {
  command = plan

  variables {
    arns = {
      responses   = "arn:responses"
      sessions    = "arn:sessions"
      connections = "arn:connections"
      execute_api = "arn:api/live"
    }
  }

  assert {
    condition     = [for statement in output.direct : statement.sid] == ["Responses", "Sessions", "Connections", "Push"]
    error_message = "The process may do more than its stores and sockets need, or less."
  }

  assert {
    condition     = !anytrue([for action in flatten([for statement in output.direct : statement.actions]) : startswith(action, "sqs:")])
    error_message = "Rights to queues."
  }
}
