output "input" {
  description = "The queue of turns: url, arn, name, dead_letters (url, arn), visibility_timeout in seconds, max_receive_count after which SQS gives a message up."
  value = {
    url                = aws_sqs_queue.this["input"].url
    arn                = aws_sqs_queue.this["input"].arn
    name               = aws_sqs_queue.this["input"].name
    visibility_timeout = var.input.visibility_timeout
    max_receive_count  = jsondecode(aws_sqs_queue.this["input"].redrive_policy).maxReceiveCount
    dead_letters = {
      url = aws_sqs_queue.dead_letters["input"].url
      arn = aws_sqs_queue.dead_letters["input"].arn
    }
  }
}

output "output" {
  description = "The queue of answers; as input."
  value = {
    url                = aws_sqs_queue.this["output"].url
    arn                = aws_sqs_queue.this["output"].arn
    name               = aws_sqs_queue.this["output"].name
    visibility_timeout = var.output.visibility_timeout
    max_receive_count  = jsondecode(aws_sqs_queue.this["output"].redrive_policy).maxReceiveCount
    dead_letters = {
      url = aws_sqs_queue.dead_letters["output"].url
      arn = aws_sqs_queue.dead_letters["output"].arn
    }
  }
}

output "scheduler_role_arn" {
  description = "Role that schedules name; null without enable_scheduling."
  value       = one(aws_iam_role.scheduler[*].arn)
}

output "content_based_deduplication" {
  description = "Whether SQS makes deduplication ids of contents, by queue."
  value       = { for name, queue in aws_sqs_queue.this : name => queue.content_based_deduplication }
}
