# The load balancer before the IO handler, and who may talk to whom.

locals {
  scheme      = var.internal_tls == null ? "http" : "https"
  listen_port = var.internal_tls == null ? 80 : 443
}

resource "aws_security_group" "load_balancer" {
  name        = "${var.name}-load-balancer"
  description = "The load balancer before the IO handler"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_security_group" "io_handler" {
  name        = "${var.name}-io-handler"
  description = "Tasks of the IO handler"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_security_group" "agent_runner" {
  count = var.queue_mode ? 1 : 0

  name        = "${var.name}-agent-runner"
  description = "Tasks of the agent runner: nobody connects to them"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

# What API Gateway comes through: a link of its own (REST), or the network load balancer (WebSocket).
resource "aws_security_group" "entrance" {
  name        = "${var.name}-entrance"
  description = "Where API Gateway enters the VPC"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_vpc_security_group_egress_rule" "entrance" {
  security_group_id            = aws_security_group.entrance.id
  description                  = "To the load balancer"
  referenced_security_group_id = aws_security_group.load_balancer.id
  ip_protocol                  = "tcp"
  from_port                    = local.listen_port
  to_port                      = local.listen_port
}

resource "aws_vpc_security_group_ingress_rule" "load_balancer" {
  security_group_id            = aws_security_group.load_balancer.id
  description                  = "From API Gateway"
  referenced_security_group_id = aws_security_group.entrance.id
  ip_protocol                  = "tcp"
  from_port                    = local.listen_port
  to_port                      = local.listen_port
}

resource "aws_vpc_security_group_egress_rule" "load_balancer" {
  security_group_id            = aws_security_group.load_balancer.id
  description                  = "To the IO handler"
  referenced_security_group_id = aws_security_group.io_handler.id
  ip_protocol                  = "tcp"
  from_port                    = var.io_handler.port
  to_port                      = var.io_handler.port
}

resource "aws_vpc_security_group_ingress_rule" "io_handler" {
  security_group_id            = aws_security_group.io_handler.id
  description                  = "From the load balancer"
  referenced_security_group_id = aws_security_group.load_balancer.id
  ip_protocol                  = "tcp"
  from_port                    = var.io_handler.port
  to_port                      = var.io_handler.port
}

# AWS and the models have no fixed addresses.
resource "aws_vpc_security_group_egress_rule" "tasks" {
  for_each = merge(
    { io_handler = aws_security_group.io_handler.id },
    var.queue_mode ? { agent_runner = aws_security_group.agent_runner[0].id } : {},
  )

  security_group_id = each.value
  description       = "To AWS and to models, over TLS"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_lb" "internal" {
  name                       = "${var.name}-io"
  load_balancer_type         = "application"
  internal                   = true
  subnets                    = var.subnet_ids
  security_groups            = [aws_security_group.load_balancer.id]
  drop_invalid_header_fields = true
  enable_deletion_protection = var.deletion_protection
  # Longer than the longest wait of a caller.
  idle_timeout = 60
  tags         = var.tags

  dynamic "access_logs" {
    for_each = var.access_log_bucket[*]

    content {
      bucket  = access_logs.value
      prefix  = var.name
      enabled = true
    }
  }
}

resource "aws_lb_target_group" "io_handler" {
  name                 = "${var.name}-io"
  target_type          = "ip"
  vpc_id               = var.vpc_id
  port                 = var.io_handler.port
  protocol             = "HTTP"
  deregistration_delay = 30
  tags                 = var.tags

  # Not /ready: ECS replaces what fails here, and no new task mends a store that is away.
  health_check {
    path                = "/health"
    matcher             = "200"
    interval            = 10
    timeout             = 5
    healthy_threshold   = 2
    unhealthy_threshold = 3
  }
}

resource "aws_lb_listener" "internal" {
  #checkov:skip=CKV_AWS_2:Inside the VPC; TLS with internal_tls.
  #checkov:skip=CKV_AWS_103:As above; with internal_tls at least TLS 1.2.
  load_balancer_arn = aws_lb.internal.arn
  port              = local.listen_port
  protocol          = upper(local.scheme)
  certificate_arn   = try(var.internal_tls.certificate_arn, null)
  ssl_policy        = var.internal_tls == null ? null : "ELBSecurityPolicy-TLS13-1-2-2021-06"
  tags              = var.tags

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.io_handler.arn
  }
}
