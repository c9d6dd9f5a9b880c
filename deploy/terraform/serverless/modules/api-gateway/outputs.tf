output "url" {
  description = "Where clients send requests; /api/v1/chat follows."
  value       = aws_apigatewayv2_api.this.api_endpoint
}

output "api_id" {
  description = "Id of the API."
  value       = aws_apigatewayv2_api.this.id
}
