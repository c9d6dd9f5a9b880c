output "url" {
  description = "Where clients connect: wss://.../<stage>?token=..."
  value       = "${aws_apigatewayv2_api.this.api_endpoint}/${var.stage}"
}

# Made of the API alone: the functions need these two before the stage is there.
output "endpoint_url" {
  description = "Where frames are posted to connections (https)."
  value       = "${replace(aws_apigatewayv2_api.this.api_endpoint, "/^wss:/", "https:")}/${var.stage}"
}

output "execute_api_arn" {
  description = "ARN of the stage, for execute-api:ManageConnections."
  value       = "${aws_apigatewayv2_api.this.execution_arn}/${var.stage}"
}
