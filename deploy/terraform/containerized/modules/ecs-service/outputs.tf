output "name" {
  description = "Name of the service."
  value       = aws_ecs_service.this.name
}

output "arn" {
  description = "ARN of the service."
  value       = aws_ecs_service.this.id
}

output "task_role_arn" {
  description = "ARN of the application's role."
  value       = aws_iam_role.task.arn
}

output "environment" {
  description = "Its environment variables."
  value       = var.environment
}

output "policy" {
  description = "What the application may do, as JSON."
  value       = local.policy
}
