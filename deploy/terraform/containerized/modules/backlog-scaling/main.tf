# How many runners there are: as the backlog asks, none below those at work, one as soon as there is
# work and none. A value that is missing changes nothing.

locals {
  namespace  = "Custom/ECS"
  enabled    = var.scaling_config.enabled
  may_sleep  = local.enabled && var.scaling_config.min_count == 0
  dimensions = { ClusterName = var.cluster_name, ServiceName = var.service.name }
}

resource "aws_appautoscaling_target" "this" {
  service_namespace  = "ecs"
  scalable_dimension = "ecs:service:DesiredCount"
  resource_id        = "service/${var.cluster_name}/${var.service.name}"
  min_capacity       = var.scaling_config.min_count
  max_capacity       = local.enabled ? var.scaling_config.max_count : var.scaling_config.min_count
  tags               = var.tags
}

# Tasks x tracked / target is the size that is asked for. The backlog alone would take tasks away from
# turns that run while few wait; each of those may be on a task of its own.
resource "aws_appautoscaling_policy" "backlog" {
  count = local.enabled ? 1 : 0

  name               = "${var.name}-backlog-per-task"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension
  resource_id        = aws_appautoscaling_target.this.resource_id

  target_tracking_scaling_policy_configuration {
    target_value       = var.scaling_config.backlog_target
    scale_in_cooldown  = var.scaling_config.scale_in_cooldown
    scale_out_cooldown = var.scaling_config.scale_out_cooldown

    customized_metric_specification {
      dynamic "metrics" {
        for_each = { backlog = "BacklogPerTask", busy = "BusyShare" }

        content {
          id          = metrics.key
          return_data = false

          metric_stat {
            stat = "Average"

            metric {
              namespace   = local.namespace
              metric_name = metrics.value

              dynamic "dimensions" {
                for_each = local.dimensions

                content {
                  name  = dimensions.key
                  value = dimensions.value
                }
              }
            }
          }
        }
      }

      metrics {
        id          = "tracked"
        label       = "Backlog per task, at the target while all tasks may be at work"
        expression  = "MAX([backlog, ${var.scaling_config.backlog_target} * busy])"
        return_data = true
      }
    }
  }
}

# A share of the backlog cannot wake a fleet of none: no number of tasks times anything is one, and
# the first message is below any target.
resource "aws_appautoscaling_policy" "wake" {
  count = local.may_sleep ? 1 : 0

  name               = "${var.name}-wake"
  policy_type        = "StepScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension
  resource_id        = aws_appautoscaling_target.this.resource_id

  step_scaling_policy_configuration {
    adjustment_type         = "ChangeInCapacity"
    metric_aggregation_type = "Maximum"
    cooldown                = var.scaling_config.scale_out_cooldown

    step_adjustment {
      metric_interval_lower_bound = 0
      scaling_adjustment          = 1
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "wake" {
  count = local.may_sleep ? 1 : 0

  alarm_name        = "${var.name}-backlog-without-tasks"
  alarm_description = "There is work and no task: wakes one. Part of scaling, no fault."

  namespace   = local.namespace
  metric_name = "BacklogWithoutTasks"
  dimensions  = local.dimensions
  statistic   = "Maximum"
  period      = 60

  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  evaluation_periods  = 1
  treat_missing_data  = "missing"

  alarm_actions = [aws_appautoscaling_policy.wake[0].arn]
  tags          = var.tags
}

resource "aws_cloudwatch_metric_alarm" "not_measured" {
  count = local.enabled ? 1 : 0

  alarm_name        = "${var.name}-backlog-not-measured"
  alarm_description = "No backlog was published for five minutes: the fleet keeps its size, whatever waits. See the log of ${module.function[0].function.name}."

  namespace   = local.namespace
  metric_name = "BacklogPerTask"
  dimensions  = local.dimensions
  statistic   = "SampleCount"
  period      = 60

  comparison_operator = "LessThanThreshold"
  threshold           = 1
  evaluation_periods  = 5
  treat_missing_data  = "breaching"

  alarm_actions = var.alarm_actions
  tags          = var.tags
}

locals {
  source_dir = coalesce(var.source_dir, "${path.module}/../../../../../services/turnline/backlog_metric")
  sources    = [for file in fileset(local.source_dir, "*.py") : file if !endswith(file, "_test.py")]
}

data "archive_file" "function" {
  type        = "zip"
  output_path = "${path.root}/.terraform/${var.name}-backlog-metric.zip"

  dynamic "source" {
    for_each = toset(local.sources)

    content {
      filename = "turnline/backlog_metric/${source.value}"
      content  = file("${local.source_dir}/${source.value}")
    }
  }
}

module "function" {
  source = "../../../modules/lambda-function"
  count  = local.enabled ? 1 : 0

  name        = "${var.name}-backlog-metric"
  description = "Publishes the backlog of each task of ${var.service.name}"
  handler     = "turnline.backlog_metric.handler.handle"
  memory_size = 256
  # Three calls of at most 14 seconds each, with their second try.
  timeout = 45

  package = {
    filename = data.archive_file.function.output_path
    hash     = data.archive_file.function.output_base64sha256
  }

  environment = {
    AK_EXECUTION__QUEUES__INPUT__URL = var.queue.url
    ECS_CLUSTER                      = var.cluster_name
    ECS_SERVICE                      = var.service.name
    METRIC_NAMESPACE                 = local.namespace
  }

  statements = [
    {
      sid       = "CountMessages"
      actions   = ["sqs:GetQueueAttributes"]
      resources = [var.queue.arn]
    },
    {
      sid       = "CountTasks"
      actions   = ["ecs:DescribeServices"]
      resources = [var.service.arn]
    },
    {
      # Metrics have no ARN; their namespace is what can be named.
      sid       = "Publish"
      actions   = ["cloudwatch:PutMetricData"]
      resources = ["*"]
      condition = { StringEquals = { "cloudwatch:namespace" = local.namespace } }
    },
  ]

  log_retention_days       = var.log_retention_days
  kms_key_arn              = var.kms_key_arn
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = var.tags
}

# Counts of a minute ago help nobody.
resource "aws_lambda_function_event_invoke_config" "function" {
  count = local.enabled ? 1 : 0

  function_name                = module.function[0].function.name
  maximum_event_age_in_seconds = 60
  maximum_retry_attempts       = 0
}

resource "aws_cloudwatch_event_rule" "every_minute" {
  count = local.enabled ? 1 : 0

  name                = "${var.name}-backlog-metric"
  description         = "Measures the backlog of ${var.service.name}"
  schedule_expression = "rate(1 minute)"
  tags                = var.tags
}

resource "aws_cloudwatch_event_target" "function" {
  count = local.enabled ? 1 : 0

  rule = aws_cloudwatch_event_rule.every_minute[0].name
  arn  = module.function[0].function.arn

  retry_policy {
    maximum_event_age_in_seconds = 60
    maximum_retry_attempts       = 0
  }
}

resource "aws_lambda_permission" "rule" {
  count = local.enabled ? 1 : 0

  statement_id  = "AllowRule"
  action        = "lambda:InvokeFunction"
  function_name = module.function[0].function.name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.every_minute[0].arn
}
