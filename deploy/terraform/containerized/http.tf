# REST modes: an HTTP API, whose VPC Link (V2) reaches the load balancer itself.

locals {
  http = local.uses_websocket ? {} : { this = true }

  rest_routes = [
    "DELETE /api/v1/chat",
    "GET /api/v1/agents",
    "GET /api/v1/chat",
    "POST /api/v1/chat",
    "POST /api/v1/chat-multipart",
  ]
  own_routes = [for route in var.routes : "${route.method} ${route.path}"]
}

resource "aws_apigatewayv2_vpc_link" "http" {
  for_each = local.http

  name               = var.name
  subnet_ids         = var.subnet_ids
  security_group_ids = [aws_security_group.entrance.id]
  tags               = var.tags
}

resource "aws_apigatewayv2_api" "http" {
  for_each = local.http

  name          = "${var.name}-http"
  protocol_type = "HTTP"
  tags          = var.tags
}

resource "aws_apigatewayv2_integration" "http" {
  for_each = local.http

  api_id             = aws_apigatewayv2_api.http[each.key].id
  integration_type   = "HTTP_PROXY"
  integration_method = "ANY"
  integration_uri    = aws_lb_listener.internal.arn
  connection_type    = "VPC_LINK"
  connection_id      = aws_apigatewayv2_vpc_link.http[each.key].id
  # The longest that API Gateway waits.
  timeout_milliseconds = 30000

  dynamic "tls_config" {
    for_each = var.internal_tls[*]

    content {
      server_name_to_verify = tls_config.value.server_name
    }
  }
}

resource "aws_apigatewayv2_authorizer" "jwt" {
  for_each = var.jwt_authorizer == null ? {} : local.http

  api_id           = aws_apigatewayv2_api.http[each.key].id
  name             = "${var.name}-jwt"
  authorizer_type  = "JWT"
  identity_sources = ["$request.header.Authorization"]

  jwt_configuration {
    issuer   = var.jwt_authorizer.issuer
    audience = var.jwt_authorizer.audience
  }
}

resource "aws_apigatewayv2_route" "http" {
  for_each = local.uses_websocket ? [] : toset(concat(local.rest_routes, local.own_routes))

  api_id             = aws_apigatewayv2_api.http["this"].id
  route_key          = each.value
  target             = "integrations/${aws_apigatewayv2_integration.http["this"].id}"
  authorization_type = var.jwt_authorizer == null ? "NONE" : "JWT"
  authorizer_id      = one([for authorizer in aws_apigatewayv2_authorizer.jwt : authorizer.id])
}

resource "aws_apigatewayv2_stage" "http" {
  for_each = local.http

  api_id      = aws_apigatewayv2_api.http[each.key].id
  name        = "$default"
  auto_deploy = true
  tags        = var.tags

  default_route_settings {
    throttling_rate_limit  = 100
    throttling_burst_limit = 200
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

resource "aws_cloudwatch_log_group" "access" {
  name              = "/aws/apigateway/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}
