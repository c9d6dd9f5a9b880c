# Admits turns, in direct mode to their end: POST, GET and DELETE /api/v1/chat behind API Gateway.

module "function" {
  source = "../../../modules/lambda-function"

  name                     = var.name
  description              = "Admits turns and answers their callers"
  package                  = var.function.package
  handler                  = var.function.handler
  runtime                  = var.function.runtime
  architecture             = var.function.architecture
  memory_size              = var.function.memory_size
  timeout                  = var.timeout
  environment              = var.environment
  statements               = var.statements
  network                  = var.network
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}
