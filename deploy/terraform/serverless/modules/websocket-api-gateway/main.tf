# The WebSocket API: who may connect is decided once, at $connect.

locals {
  answered = setunion(["$default", var.chat_route], var.custom_routes)
  routes   = setunion(["$connect", "$disconnect"], local.answered)
}

resource "aws_apigatewayv2_api" "this" {
  name                       = var.name
  protocol_type              = "WEBSOCKET"
  route_selection_expression = "$request.body.route"
  tags                       = var.tags
}

resource "aws_apigatewayv2_authorizer" "connect" {
  api_id           = aws_apigatewayv2_api.this.id
  name             = "${var.name}-connect"
  authorizer_type  = "REQUEST"
  authorizer_uri   = var.authorizer_function.invoke_arn
  identity_sources = [var.token_source]
}

resource "aws_apigatewayv2_integration" "handler" {
  api_id           = aws_apigatewayv2_api.this.id
  integration_type = "AWS_PROXY"
  integration_uri  = var.function.invoke_arn
}

resource "aws_apigatewayv2_route" "this" {
  #checkov:skip=CKV_AWS_309:API Gateway authorizes $connect alone; frames come over a socket that it let in.
  for_each = local.routes

  api_id             = aws_apigatewayv2_api.this.id
  route_key          = each.value
  target             = "integrations/${aws_apigatewayv2_integration.handler.id}"
  authorization_type = each.value == "$connect" ? "CUSTOM" : "NONE"
  authorizer_id      = each.value == "$connect" ? aws_apigatewayv2_authorizer.connect.id : null

  # What the function returns goes to the client that sent the frame.
  route_response_selection_expression = contains(local.answered, each.value) ? "$default" : null
}

resource "aws_apigatewayv2_route_response" "this" {
  for_each = local.answered

  api_id             = aws_apigatewayv2_api.this.id
  route_id           = aws_apigatewayv2_route.this[each.value].id
  route_response_key = "$default"
}

resource "aws_cloudwatch_log_group" "access" {
  name              = "/aws/apigateway/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_apigatewayv2_stage" "this" {
  #checkov:skip=CKV2_AWS_51:Clients are people with tokens; they have no certificates.
  api_id      = aws_apigatewayv2_api.this.id
  name        = var.stage
  auto_deploy = true
  tags        = var.tags

  default_route_settings {
    throttling_rate_limit  = var.throttling.rate
    throttling_burst_limit = var.throttling.burst
  }

  # The query string of $connect holds the token, so it is not written.
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.access.arn
    format = jsonencode({
      connection_id = "$context.connectionId"
      event         = "$context.eventType"
      route         = "$context.routeKey"
      status        = "$context.status"
      error         = "$context.integrationErrorMessage"
      requested_at  = "$context.requestTime"
    })
  }
}

resource "aws_lambda_permission" "api" {
  for_each = { handler = var.function.name, authorizer = var.authorizer_function.name }

  statement_id  = "AllowWebSocketApi${title(each.key)}"
  action        = "lambda:InvokeFunction"
  function_name = each.value
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.this.execution_arn}/*"
}
