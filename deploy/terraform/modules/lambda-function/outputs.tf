output "function" {
  description = "The function: name, arn, invoke_arn."
  value = {
    name       = aws_lambda_function.this.function_name
    arn        = aws_lambda_function.this.arn
    invoke_arn = aws_lambda_function.this.invoke_arn
  }

  # Whoever invokes it finds it allowed to work.
  depends_on = [aws_iam_role_policy.this]
}

output "role_arn" {
  description = "ARN of its role."
  value       = aws_iam_role.this.arn
}

output "environment" {
  description = "Its environment variables."
  value       = var.environment
}

output "policy" {
  description = "What its role may do, as JSON."
  value       = local.policy
}
