# The two FIFO queues, each with one for its dead letters.

locals {
  # The application gives up one delivery before SQS does: on its last attempt it still answers the
  # caller, who would otherwise wait for a message that SQS has put aside. Deliveries that start no
  # attempt, such as those a stopping process hands back, are counted by SQS all the same.
  most = 1000

  queues = {
    input = {
      max_receive_count   = min(local.most, var.input.max_receive_count + 1 + var.input.spare_deliveries)
      visibility_timeout  = var.input.visibility_timeout
      content_based_dedup = var.enable_scheduling
    }
    output = {
      max_receive_count   = min(local.most, var.output.max_receive_count + 1 + var.output.spare_deliveries)
      visibility_timeout  = var.output.visibility_timeout
      content_based_dedup = false
    }
  }

  fourteen_days = 1209600
  longest_poll  = 20
}

resource "aws_sqs_queue" "dead_letters" {
  for_each = local.queues

  name       = "${var.name}-${each.key}-dlq.fifo"
  fifo_queue = true

  deduplication_scope         = "messageGroup"
  fifo_throughput_limit       = "perMessageGroupId"
  content_based_deduplication = false

  message_retention_seconds = local.fourteen_days
  max_message_size          = var.max_message_size
  receive_wait_time_seconds = local.longest_poll

  sqs_managed_sse_enabled = var.kms_key_arn == null ? true : null
  kms_master_key_id       = var.kms_key_arn
  tags                    = var.tags
}

resource "aws_sqs_queue" "this" {
  for_each = local.queues

  name       = "${var.name}-${each.key}.fifo"
  fifo_queue = true

  # Sessions share no limit: each group has its own throughput and its own copies.
  deduplication_scope         = "messageGroup"
  fifo_throughput_limit       = "perMessageGroupId"
  content_based_deduplication = each.value.content_based_dedup

  visibility_timeout_seconds = each.value.visibility_timeout
  message_retention_seconds  = var.message_retention
  max_message_size           = var.max_message_size
  receive_wait_time_seconds  = local.longest_poll

  sqs_managed_sse_enabled = var.kms_key_arn == null ? true : null
  kms_master_key_id       = var.kms_key_arn
  tags                    = var.tags

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters[each.key].arn
    maxReceiveCount     = each.value.max_receive_count
  })
}

resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  for_each = local.queues

  queue_url = aws_sqs_queue.dead_letters[each.key].url

  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.this[each.key].arn]
  })
}

# Nobody reads or writes messages without TLS. Who may at all, the roles say.
resource "aws_sqs_queue_policy" "tls" {
  for_each = merge(
    { for name, queue in aws_sqs_queue.this : name => queue },
    { for name, queue in aws_sqs_queue.dead_letters : "${name}-dlq" => queue },
  )

  queue_url = each.value.url

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "RefuseWithoutTls"
      Effect    = "Deny"
      Principal = "*"
      Action    = "sqs:*"
      Resource  = each.value.arn
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}

resource "aws_cloudwatch_metric_alarm" "dead_letters" {
  for_each = local.queues

  alarm_name        = "${var.name}-${each.key}-dead-letters"
  alarm_description = "A message of the ${each.key} queue was given up; `turnline dlq` lists, shows and redrives."

  namespace   = "AWS/SQS"
  metric_name = "ApproximateNumberOfMessagesVisible"
  dimensions  = { QueueName = aws_sqs_queue.dead_letters[each.key].name }
  statistic   = "Maximum"
  period      = 60

  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"

  alarm_actions = var.alarm_actions
  tags          = var.tags
}

# EventBridge Scheduler takes this role for the schedules that the application makes.
resource "aws_iam_role" "scheduler" {
  count = var.enable_scheduling ? 1 : 0

  name        = "${var.name}-scheduler"
  description = "Lets EventBridge Scheduler send turns to ${var.name}-input.fifo"
  tags        = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      # Not for schedules of other accounts.
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "scheduler" {
  count = var.enable_scheduling ? 1 : 0

  name = "send-input"
  role = aws_iam_role.scheduler[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [{
        Sid      = "SendInput"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [aws_sqs_queue.this["input"].arn]
      }],
      [for key in var.kms_key_arn[*] : {
        Sid      = "Keys"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = [key]
      }],
    )
  })
}

data "aws_caller_identity" "current" {}
