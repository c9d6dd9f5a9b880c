mock_provider "aws" {}

variables {
  name                = "chat-websocket"
  function            = { name = "chat-ws", invoke_arn = "arn:aws:apigateway:eu-west-1:lambda:path/ws" }
  authorizer_function = { name = "chat-auth", invoke_arn = "arn:aws:apigateway:eu-west-1:lambda:path/auth" }
  custom_routes       = ["status"]
}

run "what_the_function_returns_goes_to_the_client_that_sent_the_frame" {
  assert {
    condition     = [for name, route in aws_apigatewayv2_route.this : name if route.route_response_selection_expression == "$default"] == ["$default", "chat", "status"]
    error_message = "Answers to frames would be dropped."
  }

  assert {
    condition     = keys(aws_apigatewayv2_route_response.this) == ["$default", "chat", "status"]
    error_message = "Answers to frames would be dropped."
  }
}
