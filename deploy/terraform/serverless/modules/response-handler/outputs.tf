output "function" {
  description = "The function: name, arn, invoke_arn."
  value       = module.function.function
}

output "role_arn" {
  description = "ARN of its role."
  value       = module.function.role_arn
}

output "environment" {
  description = "Its settings."
  value       = module.function.environment
}

output "policy" {
  description = "What its role may do, as JSON."
  value       = module.function.policy
}

output "event_source_mapping_id" {
  description = "What joins queue and function; disabling it stops the work and keeps the messages."
  value       = aws_lambda_event_source_mapping.this.uuid
}
