mock_provider "aws" {}

mock_provider "archive" {}

variables {
  name         = "chat-agent-runner"
  cluster_name = "chat"
  service      = { name = "chat-agent-runner", arn = "arn:aws:ecs:eu-west-1:123456789012:service/chat/chat-agent-runner" }
  queue        = { url = "https://sqs/chat-input.fifo", arn = "arn:aws:sqs:eu-west-1:123456789012:chat-input.fifo" }
}

run "a_fleet_that_may_sleep_is_woken_by_the_first_message" {
  variables {
    scaling_config = { min_count = 0, backlog_target = 5 }
  }

  assert {
    condition     = aws_appautoscaling_target.this.min_capacity == 0
    error_message = "The fleet cannot sleep."
  }

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.wake[0].metric_name == "BacklogWithoutTasks"
      && aws_cloudwatch_metric_alarm.wake[0].threshold == 1
      && aws_cloudwatch_metric_alarm.wake[0].evaluation_periods == 1
      && aws_cloudwatch_metric_alarm.wake[0].alarm_actions == toset([aws_appautoscaling_policy.wake[0].arn])
    )
    error_message = "One message does not wake it."
  }

  assert {
    condition     = one(aws_appautoscaling_policy.wake[0].step_scaling_policy_configuration[0].step_adjustment).scaling_adjustment == 1
    error_message = "It is not woken by one task."
  }
}

run "a_fleet_that_never_sleeps_has_one_policy" {
  variables {
    scaling_config = { min_count = 1 }
  }

  assert {
    condition     = length(aws_appautoscaling_policy.wake) == 0 && length(aws_appautoscaling_policy.backlog) == 1
    error_message = "Two policies where one is enough."
  }
}

run "busy_tasks_are_counted_and_the_target_is_the_callers" {
  variables {
    scaling_config = { backlog_target = 3, scale_in_cooldown = 200, scale_out_cooldown = 30 }
  }

  assert {
    condition = (
      aws_appautoscaling_policy.backlog[0].target_tracking_scaling_policy_configuration[0].target_value == 3
      && aws_appautoscaling_policy.backlog[0].target_tracking_scaling_policy_configuration[0].scale_in_cooldown == 200
      && aws_appautoscaling_policy.backlog[0].target_tracking_scaling_policy_configuration[0].scale_out_cooldown == 30
    )
    error_message = "The policy is not what was asked for."
  }

  assert {
    condition = [
      for metric in aws_appautoscaling_policy.backlog[0].target_tracking_scaling_policy_configuration[0].customized_metric_specification[0].metrics :
      metric.expression if metric.return_data
    ] == ["MAX([backlog, 3 * busy])"]
    error_message = "Busy tasks are not held."
  }
}

run "a_missing_value_changes_nothing_and_is_told" {
  variables {
    scaling_config = { min_count = 0 }
    alarm_actions  = ["arn:aws:sns:eu-west-1:123456789012:alarms"]
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.wake[0].treat_missing_data == "missing"
    error_message = "A missing value wakes the fleet, or puts an alarm to rest."
  }

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.not_measured[0].treat_missing_data == "breaching"
      && aws_cloudwatch_metric_alarm.not_measured[0].alarm_actions == toset(["arn:aws:sns:eu-west-1:123456789012:alarms"])
    )
    error_message = "Nobody is told that the backlog is not measured."
  }
}

run "without_scaling_the_fleet_is_of_one_size" {
  variables {
    scaling_config = { enabled = false, min_count = 3 }
  }

  assert {
    condition     = aws_appautoscaling_target.this.min_capacity == 3 && aws_appautoscaling_target.this.max_capacity == 3
    error_message = "The fleet may change."
  }

  assert {
    condition     = output.function_name == null
    error_message = "A function that nobody needs."
  }
}

run "nothing_would_wake_a_sleeping_fleet_without_scaling" {
  command = plan

  variables {
    scaling_config = { enabled = false, min_count = 0 }
  }

  expect_failures = [var.scaling_config]
}

run "more_than_the_most_is_refused" {
  command = plan

  variables {
    scaling_config = { min_count = 11 }
  }

  expect_failures = [var.scaling_config]
}
