# The HTTP API before the request handler.

locals {
  # POST admits a turn, GET reads its answer, DELETE cancels it.
  chat_routes = [
    "DELETE /api/v1/chat",
    "GET /api/v1/agents",
    "GET /api/v1/chat",
    "POST /api/v1/chat",
    "POST /api/v1/chat-multipart",
  ]

  own_routes = [for route in var.routes : "${route.method} ${route.path}"]

  # Of the chat, and of what else browsers may call; ANY is every method.
  methods         = distinct(concat(["DELETE", "GET", "POST"], [for route in var.routes : route.method]))
  allowed_methods = contains(local.methods, "ANY") ? ["*"] : sort(local.methods)
}

resource "aws_apigatewayv2_api" "this" {
  name          = var.name
  protocol_type = "HTTP"
  tags          = var.tags

  dynamic "cors_configuration" {
    for_each = length(var.cors_origins) == 0 ? [] : [var.cors_origins]

    content {
      allow_origins = cors_configuration.value
      allow_methods = local.allowed_methods
      allow_headers = ["authorization", "content-type", "idempotency-key", "prefer"]
      max_age       = 3600
    }
  }
}

resource "aws_apigatewayv2_integration" "request_handler" {
  api_id                 = aws_apigatewayv2_api.this.id
  integration_type       = "AWS_PROXY"
  integration_uri        = var.function.invoke_arn
  payload_format_version = "2.0"
  # The longest that API Gateway waits.
  timeout_milliseconds = 30000
}

resource "aws_apigatewayv2_authorizer" "jwt" {
  for_each = var.jwt_authorizer == null ? {} : { jwt = var.jwt_authorizer }

  api_id           = aws_apigatewayv2_api.this.id
  name             = "${var.name}-jwt"
  authorizer_type  = "JWT"
  identity_sources = ["$request.header.Authorization"]

  jwt_configuration {
    issuer   = each.value.issuer
    audience = each.value.audience
  }
}

resource "aws_apigatewayv2_route" "this" {
  for_each = toset(concat(local.chat_routes, local.own_routes))

  api_id             = aws_apigatewayv2_api.this.id
  route_key          = each.value
  target             = "integrations/${aws_apigatewayv2_integration.request_handler.id}"
  authorization_type = var.jwt_authorizer == null ? "NONE" : "JWT"
  authorizer_id      = one([for authorizer in aws_apigatewayv2_authorizer.jwt : authorizer.id])
}

resource "aws_cloudwatch_log_group" "access" {
  name              = "/aws/apigateway/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_apigatewayv2_stage" "default" {
  api_id      = aws_apigatewayv2_api.this.id
  name        = "$default"
  auto_deploy = true
  tags        = var.tags

  default_route_settings {
    throttling_rate_limit  = var.throttling.rate
    throttling_burst_limit = var.throttling.burst
  }

  # No query string: it may hold what is nobody's business.
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.access.arn
    format = jsonencode({
      request_id   = "$context.requestId"
      route        = "$context.routeKey"
      status       = "$context.status"
      latency      = "$context.responseLatency"
      error        = "$context.integrationErrorMessage"
      requested_at = "$context.requestTime"
    })
  }
}

resource "aws_lambda_permission" "api" {
  statement_id  = "AllowApi"
  action        = "lambda:InvokeFunction"
  function_name = var.function.name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.this.execution_arn}/*"
}
