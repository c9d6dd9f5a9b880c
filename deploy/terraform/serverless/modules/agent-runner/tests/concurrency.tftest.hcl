mock_provider "aws" {}

variables {
  name               = "chat-agent-runner"
  function           = { package = { s3_bucket = "code", s3_key = "chat.zip", hash = "h" }, timeout = 100 }
  queue_arn          = "arn:aws:sqs:eu-west-1:123456789012:chat-input.fifo"
  visibility_timeout = 600
  environment        = {}
  statements         = []
}

run "the_queue_is_the_limit_and_nothing_is_reserved_below_it" {
  assert {
    condition     = aws_lambda_event_source_mapping.this.scaling_config[0].maximum_concurrency == 50
    error_message = "No maximum concurrency: throttled deliveries count as attempts."
  }

  assert {
    condition     = aws_lambda_event_source_mapping.this.function_response_types == toset(["ReportBatchItemFailures"])
    error_message = "A failure would bring the whole batch back."
  }
}

run "a_reservation_below_the_limit_is_refused" {
  command = plan

  variables {
    reserved_concurrency = 49
  }

  expect_failures = [var.reserved_concurrency]
}

run "a_reservation_at_the_limit_is_taken" {
  command = plan

  variables {
    reserved_concurrency = 50
  }
}

run "a_visibility_timeout_below_six_times_the_functions_is_refused" {
  command = plan

  variables {
    visibility_timeout = 599
  }

  expect_failures = [var.visibility_timeout]
}
