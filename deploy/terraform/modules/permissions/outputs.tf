output "request_handler" {
  description = "Statements of what admits turns, reads answers and cancels."
  value       = concat(local.sends.input, local.responses, local.sessions, local.connections, local.keys)
}

output "agent_runner" {
  description = "Statements of what runs agents."
  value       = concat(local.takes.input, local.sends.output, local.sessions, local.check_responses, local.keys)
}

output "response_handler" {
  description = "Statements of what brings answers to their callers."
  value = concat(
    local.takes.output, local.responses, local.check_sessions, local.connections, local.pushes, local.keys,
  )
}

output "io_handler" {
  description = "Statements of the container that does the work of both handlers."
  value = concat(
    local.sends.input, local.takes.output, local.responses, local.sessions, local.connections, local.pushes,
    local.keys,
  )
}

output "ws_connection_handler" {
  description = "Statements of what keeps the connections table, takes the sockets' frames and sends them what was held."
  value       = concat(local.sends.input, local.responses, local.sessions, local.connections, local.pushes, local.keys)
}

output "direct" {
  description = "Statements of the one process that takes requests or frames, runs agents and answers (direct mode): no queues."
  value       = concat(local.responses, local.sessions, local.connections, local.pushes, local.keys)
}
