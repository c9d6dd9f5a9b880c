# Keeps the table of client sockets ($connect, $disconnect) and takes their frames, in direct mode to
# the end of their turns; beside it, what checks the token of $connect.

module "function" {
  source = "../../../modules/lambda-function"

  name                     = var.name
  description              = "Keeps the table of client sockets and takes their frames"
  package                  = var.function.package
  handler                  = var.function.handler
  runtime                  = var.function.runtime
  architecture             = var.function.architecture
  memory_size              = var.function.memory_size
  timeout                  = var.timeout
  environment              = merge(var.environment, var.handler_environment)
  statements               = var.statements
  calls_itself             = true
  network                  = var.network
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}

module "authorizer" {
  source = "../../../modules/lambda-function"

  name                     = "${var.name}-authorizer"
  description              = "Checks the token of a client that connects"
  package                  = var.function.package
  handler                  = var.function.authorizer_handler
  runtime                  = var.function.runtime
  architecture             = var.function.architecture
  memory_size              = var.function.memory_size
  timeout                  = 29
  environment              = var.environment
  network                  = var.network
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}
