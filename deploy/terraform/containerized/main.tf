# The pipeline on ECS: API Gateway -> VPC Link -> load balancer -> IO handler -> input queue ->
# agent runner -> output queue -> IO handler. In direct mode the IO handler runs the agents, and there
# are no queues. What lies before the IO handler: network.tf, http.tf
# (REST modes) and websocket.tf (WebSocket modes).

locals {
  uses_websocket = contains(["stream", "async"], var.execution_mode)

  # SIGKILL comes a little after the application is done with its drain.
  drain_grace = var.stop_timeout - 10
  # Callers are told to come back, they do not wait for turns; those it runs itself may end.
  io_drain_grace = var.queue_mode ? 20 : local.drain_grace

  # As `turnline provision` has it (ADR 0012): a task that stops hands back what it holds.
  spare_deliveries = 96

  cluster = var.cluster == null ? { name = aws_ecs_cluster.this[0].name, arn = aws_ecs_cluster.this[0].arn } : var.cluster
}

# No queue keeps a turn whose container goes.
check "direct_turns_end_with_their_container" {
  assert {
    condition     = var.queue_mode || var.turn_timeout <= local.drain_grace
    error_message = "In direct mode a container that is told to stop cuts its turns off after ${local.drain_grace} s, but turn_timeout lets them take ${var.turn_timeout} s; their callers would have to send them again. Lower turn_timeout, or raise stop_timeout."
  }
}

module "queues" {
  source = "../serverless/modules/queues"
  count  = var.queue_mode ? 1 : 0

  name = var.name

  input = {
    max_receive_count  = var.queues.input.max_receive_count
    visibility_timeout = var.queues.visibility_timeout
    spare_deliveries   = local.spare_deliveries
  }
  output = {
    max_receive_count  = var.queues.output.max_receive_count
    visibility_timeout = var.queues.visibility_timeout
    spare_deliveries   = local.spare_deliveries
  }

  message_retention = var.queues.message_retention
  max_message_size  = var.queues.max_message_size
  enable_scheduling = var.enable_scheduling
  kms_key_arn       = var.kms_key_arn
  alarm_actions     = var.alarm_actions
  tags              = var.tags
}

module "tables" {
  source = "../modules/tables"

  name                = var.name
  with_connections    = local.uses_websocket
  deletion_protection = var.deletion_protection
  kms_key_arn         = var.kms_key_arn
  tags                = var.tags
}

module "settings" {
  source   = "../modules/settings"
  for_each = merge({ io_handler = local.io_drain_grace }, var.queue_mode ? { agent_runner = local.drain_grace } : {})

  execution_mode = var.execution_mode
  queue_mode     = var.queue_mode
  turn_timeout   = var.turn_timeout
  batch_size     = var.queues.batch_size
  response_wait  = var.response_wait
  drain_grace    = each.value

  input = {
    url                = one(module.queues[*].input.url)
    max_receive_count  = var.queues.input.max_receive_count
    visibility_timeout = var.queues.visibility_timeout
    no_of_consumers    = var.queues.input.no_of_consumers
  }
  output = {
    url                = one(module.queues[*].output.url)
    max_receive_count  = var.queues.output.max_receive_count
    visibility_timeout = var.queues.visibility_timeout
    no_of_consumers    = var.queues.output.no_of_consumers
  }
  tables = {
    responses   = module.tables.responses.name
    sessions    = module.tables.sessions.name
    connections = module.tables.connections.name
  }
  websocket = {
    endpoint_url = local.websocket_endpoint_url
    chat_route   = var.chat_route
  }
}

module "permissions" {
  source = "../modules/permissions"

  arns = {
    input_queue         = one(module.queues[*].input.arn)
    input_dead_letters  = one(module.queues[*].input.dead_letters.arn)
    output_queue        = one(module.queues[*].output.arn)
    output_dead_letters = one(module.queues[*].output.dead_letters.arn)
    responses           = module.tables.responses.arn
    sessions            = module.tables.sessions.arn
    connections         = module.tables.connections.arn
    execute_api         = local.execute_api_arn
    kms_keys            = var.kms_key_arn[*]
  }
}

resource "aws_ecs_cluster" "this" {
  count = var.cluster == null ? 1 : 0

  name = var.name
  tags = var.tags

  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

module "io_handler" {
  source = "./modules/ecs-service"

  name        = "${var.name}-io-handler"
  cluster_arn = local.cluster.arn
  container   = var.io_handler
  environment = merge(
    var.queue_mode ? module.settings["io_handler"].io_handler : module.settings["io_handler"].direct,
    { AK_API__PORT = tostring(var.io_handler.port) },
    var.environment,
    var.io_handler.environment,
  )
  secrets = var.io_handler.secrets
  statements = concat(
    [for statement in module.permissions.io_handler : statement if var.queue_mode],
    [for statement in concat(module.permissions.direct, var.agent_runner_statements) : statement if !var.queue_mode],
  )
  stop_timeout  = local.io_drain_grace + 10
  desired_count = var.io_handler.min_count
  # Turns are not moved for the sake of even zones.
  rebalance_zones  = var.queue_mode
  has_target_group = true
  # The group takes no target before a listener has it.
  target_group_arn = aws_lb_listener.internal.default_action[0].target_group_arn

  subnet_ids               = var.subnet_ids
  security_group_ids       = concat([aws_security_group.io_handler.id], var.extra_security_group_ids)
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}

module "agent_runner" {
  source = "./modules/ecs-service"
  count  = var.queue_mode ? 1 : 0

  name        = "${var.name}-agent-runner"
  cluster_arn = local.cluster.arn
  container   = var.agent_runner
  environment = merge(
    module.settings["agent_runner"].agent_runner,
    { AK_API__PORT = tostring(var.agent_runner.port) },
    var.environment,
    var.agent_runner.environment,
  )
  secrets       = var.agent_runner.secrets
  statements    = concat(module.permissions.agent_runner, var.agent_runner_statements)
  stop_timeout  = var.stop_timeout
  desired_count = var.scaling_config.min_count

  subnet_ids               = var.subnet_ids
  security_group_ids       = concat([aws_security_group.agent_runner[0].id], var.extra_security_group_ids)
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}

module "backlog_scaling" {
  source = "./modules/backlog-scaling"
  count  = var.queue_mode ? 1 : 0

  name                     = module.agent_runner[0].name
  cluster_name             = local.cluster.name
  service                  = { name = module.agent_runner[0].name, arn = module.agent_runner[0].arn }
  queue                    = { url = module.queues[0].input.url, arn = module.queues[0].input.arn }
  scaling_config           = var.scaling_config
  alarm_actions            = var.alarm_actions
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}

# The IO handler waits for clients and writes their answers: its processor tells how much. In direct
# mode no queue tells what waits, so the processor speaks for the agents too.
resource "aws_appautoscaling_target" "io_handler" {
  service_namespace  = "ecs"
  scalable_dimension = "ecs:service:DesiredCount"
  resource_id        = "service/${local.cluster.name}/${module.io_handler.name}"
  min_capacity       = var.io_handler.min_count
  max_capacity       = var.io_handler.max_count
  tags               = var.tags
}

resource "aws_appautoscaling_policy" "io_handler" {
  name               = "${var.name}-io-handler-cpu"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.io_handler.service_namespace
  scalable_dimension = aws_appautoscaling_target.io_handler.scalable_dimension
  resource_id        = aws_appautoscaling_target.io_handler.resource_id

  target_tracking_scaling_policy_configuration {
    target_value       = var.io_handler.cpu_target
    scale_in_cooldown  = 300
    scale_out_cooldown = 60

    predefined_metric_specification {
      predefined_metric_type = "ECSServiceAverageCPUUtilization"
    }
  }
}
