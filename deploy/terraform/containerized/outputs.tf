output "url" {
  description = "Where clients go: the HTTP API (https://...), or the WebSocket API (wss://...)."
  value       = local.uses_websocket ? local.websocket_url : aws_apigatewayv2_api.http["this"].api_endpoint
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

output "cluster" {
  description = "The cluster: name, arn."
  value       = local.cluster
}

output "services" {
  description = "Names of the services; no agent_runner in direct mode (null, as everywhere here)."
  value       = { io_handler = module.io_handler.name, agent_runner = one(module.agent_runner[*].name) }
}

output "security_group_ids" {
  description = "Security groups of the tasks, for what they are to reach."
  value       = { io_handler = aws_security_group.io_handler.id, agent_runner = one(aws_security_group.agent_runner[*].id) }
}

output "role_arns" {
  description = "ARNs of the applications' roles."
  value       = { io_handler = module.io_handler.task_role_arn, agent_runner = one(module.agent_runner[*].task_role_arn) }
}

output "environments" {
  description = "The settings of each service."
  value       = { io_handler = module.io_handler.environment, agent_runner = one(module.agent_runner[*].environment) }
}

output "policies" {
  description = "What the role of each service may do, as JSON."
  value = {
    io_handler     = module.io_handler.policy
    agent_runner   = one(module.agent_runner[*].policy)
    backlog_metric = one(module.backlog_scaling[*].policy)
  }
}

output "backlog_metric" {
  description = "What measures the backlog: function name, environment, files in its package; null in direct mode."
  value = var.queue_mode ? {
    name        = module.backlog_scaling[0].function_name
    environment = module.backlog_scaling[0].environment
    packed      = module.backlog_scaling[0].packed
  } : null
}

output "scheduler_role_arn" {
  description = "Role that schedules name; null without enable_scheduling."
  value       = one(module.queues[*].scheduler_role_arn)
}
