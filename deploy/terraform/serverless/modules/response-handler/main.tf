# Brings answers to their callers: into the response store, or over the WebSocket API.

module "function" {
  source = "../../../modules/lambda-function"

  name                     = var.name
  description              = "Brings answers to their callers"
  package                  = var.function.package
  handler                  = var.function.handler
  runtime                  = var.function.runtime
  architecture             = var.function.architecture
  memory_size              = var.function.memory_size
  timeout                  = var.function.timeout
  reserved_concurrency     = var.reserved_concurrency
  environment              = var.environment
  statements               = var.statements
  network                  = var.network
  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}

resource "aws_lambda_event_source_mapping" "this" {
  event_source_arn = var.queue_arn
  function_name    = module.function.function.arn
  batch_size       = var.batch_size
  tags             = var.tags

  # Only what failed comes back; a session's later messages are reported with it, so that none
  # overtakes.
  function_response_types = ["ReportBatchItemFailures"]

  scaling_config {
    maximum_concurrency = var.maximum_concurrency
  }
}
