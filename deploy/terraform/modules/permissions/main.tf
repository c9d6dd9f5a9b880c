# What each role may do. Provider-free: names of resources in, statements out.

locals {
  queues = {
    input  = { arn = var.arns.input_queue, dead_letters = var.arns.input_dead_letters }
    output = { arn = var.arns.output_queue, dead_letters = var.arns.output_dead_letters }
  }

  # The counts are asked for because a full queue refuses work instead of hoarding it.
  sends = {
    for name, queue in local.queues : name => [{
      sid       = "Send${title(name)}"
      actions   = ["sqs:GetQueueAttributes", "sqs:SendMessage"]
      resources = [queue.arn]
    }]
  }

  # What cannot be answered is sent to the dead letters with its reason; where there are too many, the
  # oldest gives way.
  takes = {
    for name, queue in local.queues : name => [
      {
        sid = "Take${title(name)}"
        actions = [
          "sqs:ChangeMessageVisibility",
          "sqs:DeleteMessage",
          "sqs:GetQueueAttributes",
          "sqs:ReceiveMessage",
        ]
        resources = [queue.arn]
      },
      {
        sid = "Bury${title(name)}"
        actions = [
          "sqs:ChangeMessageVisibility",
          "sqs:DeleteMessage",
          "sqs:GetQueueAttributes",
          "sqs:ReceiveMessage",
          "sqs:SendMessage",
        ]
        resources = [queue.dead_letters]
      },
    ]
  }

  items = [
    "dynamodb:DeleteItem",
    "dynamodb:DescribeTable",
    "dynamodb:DescribeTimeToLive",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
  ]

  # Enough for a process that checks at start-up and in /ready that a store answers.
  checks = [
    "dynamodb:DescribeTable",
    "dynamodb:DescribeTimeToLive",
    "dynamodb:GetItem",
  ]

  responses       = [{ sid = "Responses", actions = local.items, resources = [var.arns.responses] }]
  check_responses = [{ sid = "CheckResponses", actions = local.checks, resources = [var.arns.responses] }]
  sessions        = [{ sid = "Sessions", actions = local.items, resources = [var.arns.sessions] }]
  check_sessions  = [{ sid = "CheckSessions", actions = local.checks, resources = [var.arns.sessions] }]

  connections = [for table in var.arns.connections[*] : {
    sid       = "Connections"
    actions   = local.items
    resources = [table, "${table}/index/connection_id-index"]
  }]

  # Only what brings answers back, or what was held, may write to clients.
  pushes = [for stage in var.arns.execute_api[*] : {
    sid       = "Push"
    actions   = ["execute-api:ManageConnections"]
    resources = ["${stage}/*/@connections/*"]
  }]

  keys = length(var.arns.kms_keys) == 0 ? [] : [{
    sid       = "Keys"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = var.arns.kms_keys
  }]
}
