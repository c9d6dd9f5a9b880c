output "url" {
  description = "Where clients go: the HTTP API (https://...), or the WebSocket API (wss://...)."
  value       = local.uses_websocket ? local.websocket_url : aws_apigatewayv2_api.http["this"].api_endpoint
}

output "queues" {
  description = "Both queues: url, arn, name, dead_letters."
  value       = { input = module.queues.input, output = module.queues.output }
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
  description = "Names of the services."
  value       = { io_handler = module.io_handler.name, agent_runner = module.agent_runner.name }
}

output "security_group_ids" {
  description = "Security groups of the tasks, for what they are to reach."
  value       = { io_handler = aws_security_group.io_handler.id, agent_runner = aws_security_group.agent_runner.id }
}

output "role_arns" {
  description = "ARNs of the applications' roles."
  value       = { io_handler = module.io_handler.task_role_arn, agent_runner = module.agent_runner.task_role_arn }
}

output "environments" {
  description = "The settings of each service."
  value       = { io_handler = module.io_handler.environment, agent_runner = module.agent_runner.environment }
}

output "policies" {
  description = "What the role of each service may do, as JSON."
  value = {
    io_handler     = module.io_handler.policy
    agent_runner   = module.agent_runner.policy
    backlog_metric = module.backlog_scaling.policy
  }
}

output "backlog_metric" {
  description = "What measures the backlog: function name, environment, files in its package."
  value = {
    name        = module.backlog_scaling.function_name
    environment = module.backlog_scaling.environment
    packed      = module.backlog_scaling.packed
  }
}

output "scheduler_role_arn" {
  description = "Role that schedules name; null without enable_scheduling."
  value       = module.queues.scheduler_role_arn
}
