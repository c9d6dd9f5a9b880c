# WebSocket modes: a WebSocket API takes only a VPC Link of the first kind, and that one only a
# network load balancer, so one stands before the load balancer of the IO handler.

locals {
  websocket = local.uses_websocket ? { this = true } : {}
  stage     = "live"

  # What the IO handler is told besides the frame. The token is looked at once, at $connect.
  told = {
    "integration.request.header.x-ak-connection-id" = "context.connectionId"
    "integration.request.header.x-ak-route"         = "context.routeKey"
  }

  integrations = local.uses_websocket ? {
    connect = {
      path = var.websocket_paths.connect
      told = merge(local.told, { "integration.request.querystring.token" = "route.request.querystring.token" })
    }
    disconnect = { path = var.websocket_paths.disconnect, told = local.told }
    message    = { path = var.websocket_paths.message, told = local.told }
  } : {}

  websocket_routes = local.uses_websocket ? merge(
    { "$connect" = "connect", "$disconnect" = "disconnect", "$default" = "message" },
    { for route in setunion([var.chat_route], var.custom_routes) : route => "message" },
  ) : {}

  answered_routes = [for route, path in local.websocket_routes : route if path == "message"]

  # Made of the API alone: the containers need these two before the stage is there.
  websocket_api          = one([for api in aws_apigatewayv2_api.websocket : api])
  websocket_url          = local.uses_websocket ? "${local.websocket_api.api_endpoint}/${local.stage}" : null
  websocket_endpoint_url = local.uses_websocket ? replace(local.websocket_url, "/^wss:/", "https:") : null
  execute_api_arn        = local.uses_websocket ? "${local.websocket_api.execution_arn}/${local.stage}" : null
}

resource "aws_lb" "websocket" {
  #checkov:skip=CKV_AWS_91:API Gateway writes the access log; this one sees TCP only.
  for_each = local.websocket

  name                             = "${var.name}-ws"
  load_balancer_type               = "network"
  internal                         = true
  subnets                          = var.subnet_ids
  security_groups                  = [aws_security_group.entrance.id]
  enable_cross_zone_load_balancing = true
  enable_deletion_protection       = var.deletion_protection
  tags                             = var.tags

  # The link's traffic has no address that a rule could name; only API Gateway has the link.
  enforce_security_group_inbound_rules_on_private_link_traffic = "off"
}

resource "aws_lb_target_group" "websocket" {
  for_each = local.websocket

  name        = "${var.name}-ws"
  target_type = "alb"
  vpc_id      = var.vpc_id
  port        = local.listen_port
  protocol    = "TCP"
  tags        = var.tags

  health_check {
    path     = "/health"
    protocol = upper(local.scheme)
    matcher  = "200"
  }
}

resource "aws_lb_target_group_attachment" "websocket" {
  for_each = local.websocket

  target_group_arn = aws_lb_target_group.websocket[each.key].arn
  target_id        = aws_lb.internal.arn
  port             = local.listen_port

  # A load balancer is a target only while it listens on that port.
  depends_on = [aws_lb_listener.internal]
}

resource "aws_lb_listener" "websocket" {
  for_each = local.websocket

  load_balancer_arn = aws_lb.websocket[each.key].arn
  port              = local.listen_port
  protocol          = "TCP"
  tags              = var.tags

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.websocket[each.key].arn
  }
}

resource "aws_api_gateway_vpc_link" "websocket" {
  for_each = local.websocket

  name        = "${var.name}-ws"
  description = "From the WebSocket API to the IO handler"
  target_arns = [aws_lb.websocket[each.key].arn]
  tags        = var.tags
}

resource "aws_apigatewayv2_api" "websocket" {
  for_each = local.websocket

  name                       = "${var.name}-websocket"
  protocol_type              = "WEBSOCKET"
  route_selection_expression = "$request.body.route"
  tags                       = var.tags
}

resource "aws_apigatewayv2_integration" "websocket" {
  for_each = local.integrations

  api_id             = aws_apigatewayv2_api.websocket["this"].id
  integration_type   = "HTTP_PROXY"
  integration_method = "POST"
  integration_uri    = "${local.scheme}://${try(var.internal_tls.server_name, aws_lb.websocket["this"].dns_name)}${each.value.path}"
  connection_type    = "VPC_LINK"
  connection_id      = aws_api_gateway_vpc_link.websocket["this"].id
  request_parameters = each.value.told
  # The longest that API Gateway waits.
  timeout_milliseconds = 29000
}

resource "aws_apigatewayv2_route" "websocket" {
  #checkov:skip=CKV_AWS_309:The IO handler's AuthValidator, which is mandatory here, lets $connect in; frames come over a socket that was let in.
  for_each = local.websocket_routes

  api_id             = aws_apigatewayv2_api.websocket["this"].id
  route_key          = each.key
  target             = "integrations/${aws_apigatewayv2_integration.websocket[each.value].id}"
  authorization_type = "NONE"

  # What the IO handler answers goes to the client that sent the frame.
  route_response_selection_expression = contains(local.answered_routes, each.key) ? "$default" : null

  # Who brings no token is turned away before the IO handler is asked.
  dynamic "request_parameter" {
    for_each = each.key == "$connect" ? ["route.request.querystring.token"] : []

    content {
      request_parameter_key = request_parameter.value
      required              = true
    }
  }
}

resource "aws_apigatewayv2_route_response" "websocket" {
  for_each = toset(local.answered_routes)

  api_id             = aws_apigatewayv2_api.websocket["this"].id
  route_id           = aws_apigatewayv2_route.websocket[each.value].id
  route_response_key = "$default"
}

resource "aws_apigatewayv2_stage" "websocket" {
  #checkov:skip=CKV2_AWS_51:Clients are people with tokens; they have no certificates.
  for_each = local.websocket

  api_id      = aws_apigatewayv2_api.websocket[each.key].id
  name        = local.stage
  auto_deploy = true
  tags        = var.tags

  default_route_settings {
    throttling_rate_limit  = 500
    throttling_burst_limit = 1000
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
