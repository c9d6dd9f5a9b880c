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

output "authorizer_function" {
  description = "What checks tokens: name, arn, invoke_arn."
  value       = module.authorizer.function
}
