mock_provider "aws" {}

variables {
  name     = "chat-http"
  function = { name = "chat-request-handler", invoke_arn = "arn:aws:apigateway:eu-west-1:lambda:path/rest" }
}

run "the_chat_is_there_without_being_asked_for" {
  assert {
    condition = output.routes == tolist([
      "DELETE /api/v1/chat", "GET /api/v1/agents", "GET /api/v1/chat", "POST /api/v1/chat", "POST /api/v1/chat-multipart",
    ])
    error_message = "The product's paths are not all there, or others are."
  }
}

run "an_applications_paths_reach_the_request_handler_beside_the_chat" {
  variables {
    routes       = [{ method = "GET", path = "/app" }, { method = "PUT", path = "/app/{name}" }]
    cors_origins = ["https://chat.example.com"]
    jwt_authorizer = {
      issuer   = "https://login.example.com"
      audience = ["chat"]
    }
  }

  assert {
    condition     = length(setsubtract(["GET /app", "PUT /app/{name}", "POST /api/v1/chat"], output.routes)) == 0
    error_message = "A path is missing."
  }

  assert {
    condition = alltrue([
      for route in aws_apigatewayv2_route.this :
      route.target == "integrations/${aws_apigatewayv2_integration.request_handler.id}" && route.authorization_type == "JWT"
    ])
    error_message = "A path leads elsewhere, or past the authorizer."
  }

  assert {
    condition     = aws_apigatewayv2_api.this.cors_configuration[0].allow_methods == toset(["DELETE", "GET", "POST", "PUT"])
    error_message = "Browsers may not call the application's paths."
  }
}

run "browsers_may_use_any_method_where_a_path_takes_any" {
  variables {
    routes       = [{ method = "ANY", path = "/app" }]
    cors_origins = ["https://chat.example.com"]
  }

  assert {
    condition     = aws_apigatewayv2_api.this.cors_configuration[0].allow_methods == toset(["*"])
    error_message = "Browsers may not call the application's path."
  }
}

run "the_chats_own_paths_are_not_the_applications" {
  command = plan

  variables {
    routes = [{ method = "PUT", path = "/api/v1/chat" }]
  }

  expect_failures = [var.routes]
}

run "a_method_that_http_does_not_have_is_refused" {
  command = plan

  variables {
    routes = [{ method = "get", path = "/app" }]
  }

  expect_failures = [var.routes]
}

run "a_path_without_a_slash_is_refused" {
  command = plan

  variables {
    routes = [{ method = "GET", path = "app" }]
  }

  expect_failures = [var.routes]
}

run "a_path_that_is_there_twice_is_refused" {
  command = plan

  variables {
    routes = [{ method = "GET", path = "/app" }, { method = "GET", path = "/app" }]
  }

  expect_failures = [var.routes]
}
