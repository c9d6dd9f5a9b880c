output "url" {
  description = "Where clients go: the HTTP API (https://...), or the WebSocket API (wss://...)."
  value       = local.uses_websocket ? module.websocket_api_gateway[0].url : module.api_gateway[0].url
}

output "queues" {
  description = "Both queues: url, arn, name, dead_letters; null in direct mode."
  value       = var.queue_mode ? { input = module.queues[0].input, output = module.queues[0].output } : null
}

output "tables" {
  description = "The tables: name, arn; those of connections are null over the HTTP API."
  value = {
    responses   = module.tables.responses
    sessions    = module.tables.sessions
    connections = module.tables.connections
  }
}

output "role_arns" {
  description = "ARNs of the functions' roles; null of those that are not there."
  value = {
    request_handler       = one(module.request_handler[*].role_arn)
    agent_runner          = one(module.agent_runner[*].role_arn)
    response_handler      = one(module.response_handler[*].role_arn)
    ws_connection_handler = one(module.ws_connection_handler[*].role_arn)
  }
}

output "environments" {
  description = "The settings of each function."
  value = {
    request_handler       = one(module.request_handler[*].environment)
    agent_runner          = one(module.agent_runner[*].environment)
    response_handler      = one(module.response_handler[*].environment)
    ws_connection_handler = one(module.ws_connection_handler[*].environment)
  }
}

output "policies" {
  description = "What the role of each function may do, as JSON."
  value = {
    request_handler       = one(module.request_handler[*].policy)
    agent_runner          = one(module.agent_runner[*].policy)
    response_handler      = one(module.response_handler[*].policy)
    ws_connection_handler = one(module.ws_connection_handler[*].policy)
  }
}

output "scheduler_role_arn" {
  description = "Role that schedules name; null without enable_scheduling."
  value       = one(module.queues[*].scheduler_role_arn)
}
