# The pipeline on Lambda:
# API Gateway -> request handler -> input queue -> agent runner -> output queue -> response handler.
# In direct mode what takes requests or frames does it all, and there are no queues.

locals {
  uses_websocket = contains(["stream", "async"], var.execution_mode)

  # What runs agents itself.
  direct_statements = concat(module.permissions.direct, var.agent_runner_statements)

  # Above the deadline of the turn, and below what Lambda allows.
  runner_timeout    = var.turn_timeout + 30
  responder_timeout = try(var.response_handler.timeout, null) == null ? 30 : var.response_handler.timeout
}

module "queues" {
  source = "./modules/queues"
  count  = var.queue_mode ? 1 : 0

  name = var.name

  # What AWS advises for event source mappings: six times the function's timeout. Of a batch, what
  # stands behind a failure of its session is handed back untouched, each time it fails.
  input = {
    max_receive_count  = var.queues.input.max_receive_count
    visibility_timeout = 6 * local.runner_timeout
    spare_deliveries   = var.queues.input.max_receive_count * (var.queues.input.batch_size - 1)
  }
  output = {
    max_receive_count  = var.queues.output.max_receive_count
    visibility_timeout = 6 * local.responder_timeout
    spare_deliveries   = var.queues.output.max_receive_count * (var.queues.output.batch_size - 1)
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
  source = "../modules/settings"

  execution_mode = var.execution_mode
  queue_mode     = var.queue_mode
  turn_timeout   = var.turn_timeout
  batch_size     = var.queues.input.batch_size
  response_wait  = var.response_wait

  input = {
    url               = one(module.queues[*].input.url)
    max_receive_count = var.queues.input.max_receive_count
  }
  output = {
    url               = one(module.queues[*].output.url)
    max_receive_count = var.queues.output.max_receive_count
  }
  tables = {
    responses   = module.tables.responses.name
    sessions    = module.tables.sessions.name
    connections = module.tables.connections.name
  }
  websocket = {
    # By index: a splat would wait for the whole module, which waits for its handler's settings.
    endpoint_url = local.uses_websocket ? module.websocket_api_gateway[0].endpoint_url : null
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
    execute_api         = local.uses_websocket ? module.websocket_api_gateway[0].execute_api_arn : null
    kms_keys            = var.kms_key_arn[*]
  }
}

module "request_handler" {
  source = "./modules/request-handler"
  count  = local.uses_websocket ? 0 : 1

  name     = "${var.name}-request-handler"
  function = var.request_handler
  # A turn that it runs is stopped 8 seconds before, and no caller waits for longer than 28.
  timeout     = var.queue_mode ? 30 : 40
  environment = merge(var.queue_mode ? module.settings.request_handler : merge(module.settings.direct, var.agent_runner_environment), var.environment)
  statements = concat(
    [for statement in module.permissions.request_handler : statement if var.queue_mode],
    [for statement in local.direct_statements : statement if !var.queue_mode],
  )
  network                  = var.network
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}

module "api_gateway" {
  source = "./modules/api-gateway"
  count  = local.uses_websocket ? 0 : 1

  name               = "${var.name}-http"
  function           = module.request_handler[0].function
  routes             = var.routes
  jwt_authorizer     = var.jwt_authorizer
  cors_origins       = var.cors_origins
  log_retention_days = var.log_retention_days
  kms_key_arn        = var.kms_key_arn
  tags               = var.tags
}

module "ws_connection_handler" {
  source = "./modules/ws-connection-handler"
  count  = local.uses_websocket ? 1 : 0

  name                = "${var.name}-ws-connection-handler"
  function            = var.ws_connection_handler
  timeout             = var.queue_mode ? 29 : local.runner_timeout
  environment         = merge(var.queue_mode ? module.settings.ws_connection_handler : module.settings.direct, var.environment)
  handler_environment = var.queue_mode ? {} : var.agent_runner_environment
  statements = concat(
    [for statement in module.permissions.ws_connection_handler : statement if var.queue_mode],
    [for statement in local.direct_statements : statement if !var.queue_mode],
  )
  network                  = var.network
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}

module "websocket_api_gateway" {
  source = "./modules/websocket-api-gateway"
  count  = local.uses_websocket ? 1 : 0

  name                = "${var.name}-websocket"
  function            = module.ws_connection_handler[0].function
  authorizer_function = module.ws_connection_handler[0].authorizer_function
  chat_route          = var.chat_route
  custom_routes       = var.custom_routes
  log_retention_days  = var.log_retention_days
  kms_key_arn         = var.kms_key_arn
  tags                = var.tags
}

module "agent_runner" {
  source = "./modules/agent-runner"
  count  = var.queue_mode ? 1 : 0

  name                     = "${var.name}-agent-runner"
  function                 = merge(var.agent_runner, { timeout = local.runner_timeout })
  queue_arn                = module.queues[0].input.arn
  visibility_timeout       = module.queues[0].input.visibility_timeout
  batch_size               = var.queues.input.batch_size
  maximum_concurrency      = var.queues.input.maximum_concurrency
  reserved_concurrency     = var.queues.input.reserved_concurrency
  environment              = merge(module.settings.agent_runner, var.environment, var.agent_runner_environment)
  statements               = concat(module.permissions.agent_runner, var.agent_runner_statements)
  network                  = var.network
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}

module "response_handler" {
  source = "./modules/response-handler"
  count  = var.queue_mode ? 1 : 0

  name                     = "${var.name}-response-handler"
  function                 = merge(var.response_handler, { timeout = local.responder_timeout })
  queue_arn                = module.queues[0].output.arn
  visibility_timeout       = module.queues[0].output.visibility_timeout
  batch_size               = var.queues.output.batch_size
  maximum_concurrency      = var.queues.output.maximum_concurrency
  reserved_concurrency     = var.queues.output.reserved_concurrency
  environment              = merge(module.settings.response_handler, var.environment)
  statements               = module.permissions.response_handler
  network                  = var.network
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}
