output "url" {
  description = "Where clients send requests; /api/v1/chat follows."
  value       = aws_apigatewayv2_api.this.api_endpoint
}

output "api_id" {
  description = "Id of the API."
  value       = aws_apigatewayv2_api.this.id
}

output "routes" {
  description = "What reaches the request handler, as METHOD /path."
  value       = sort([for route in aws_apigatewayv2_route.this : route.route_key])
}
