output "request_handler" {
  description = "Variables of what admits turns and reads answers (Lambda)."
  value       = merge(local.common, local.input_url, local.responses, local.sessions, local.connections)

  precondition {
    condition     = !local.uses_websocket || var.tables.connections != null
    error_message = "stream and async need tables.connections."
  }
}

output "agent_runner" {
  description = "Variables of what runs agents (Lambda and ECS)."
  value = merge(
    local.common, local.drain, local.input_url, local.output_url, local.batches, local.runs_turns, local.leases.input,
    local.responses, local.sessions,
  )
}

output "response_handler" {
  description = "Variables of what brings answers to their callers (Lambda)."
  value = merge(
    local.common, local.output_url, local.batches, local.brings_answers, local.leases.output, local.responses,
    local.sessions, local.connections, local.pushes,
  )

  precondition {
    condition     = !local.uses_websocket || var.tables.connections != null
    error_message = "stream and async need tables.connections."
  }

  precondition {
    condition     = !local.uses_websocket || var.websocket.endpoint_url != null
    error_message = "stream and async need websocket.endpoint_url."
  }
}

output "io_handler" {
  description = "Variables of the container that does the work of both handlers (ECS)."
  value = merge(
    local.common, local.drain, local.input_url, local.output_url, local.batches, local.brings_answers,
    local.leases.output, local.responses, local.sessions, local.connections, local.pushes,
  )

  precondition {
    condition     = !local.uses_websocket || var.tables.connections != null
    error_message = "stream and async need tables.connections."
  }

  precondition {
    condition     = !local.uses_websocket || var.websocket.endpoint_url != null
    error_message = "stream and async need websocket.endpoint_url."
  }
}

output "ws_connection_handler" {
  description = "Variables of what keeps the connections table (Lambda)."
  value = merge(
    local.common, local.input_url, local.responses, local.sessions, local.connections, local.pushes,
  )

  precondition {
    condition     = !local.uses_websocket || var.tables.connections != null
    error_message = "stream and async need tables.connections."
  }

  precondition {
    condition     = !local.uses_websocket || var.websocket.endpoint_url != null
    error_message = "stream and async need websocket.endpoint_url."
  }
}

output "direct" {
  description = "Variables of the one process that takes requests or frames, runs agents and answers: direct mode, Lambda and ECS."
  value = merge(
    local.common, local.drain, local.runs_turns, local.brings_answers, local.responses, local.sessions, local.connections, local.pushes,
  )

  precondition {
    condition     = var.queue_mode || !local.uses_websocket || var.tables.connections != null
    error_message = "stream and async need tables.connections, in direct mode too."
  }

  precondition {
    condition     = var.queue_mode || !local.uses_websocket || var.websocket.endpoint_url != null
    error_message = "stream and async need websocket.endpoint_url, in direct mode too."
  }
}
