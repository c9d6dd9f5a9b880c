# One Fargate service. Two roles: ECS starts the task with one (image, log, secrets), the
# application works with the other.

data "aws_caller_identity" "current" {}

data "aws_region" "current" {}

locals {
  account = data.aws_caller_identity.current.account_id

  trust = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })

  # An image elsewhere than in ECR needs no rights.
  repository = try(regex("^(?P<account>[0-9]{12})\\.dkr\\.ecr\\.(?P<region>[a-z0-9-]+)\\.amazonaws\\.com/(?P<name>[^:@]+)", var.container.image), null)

  pull = [for repository in local.repository[*] : [
    {
      Sid      = "Image"
      Effect   = "Allow"
      Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
      Resource = ["arn:aws:ecr:${repository.region}:${repository.account}:repository/${repository.name}"]
    },
    {
      # Cannot be narrowed to a resource.
      Sid      = "LogIn"
      Effect   = "Allow"
      Action   = ["ecr:GetAuthorizationToken"]
      Resource = ["*"]
    },
  ]]

  log = [{
    Sid      = "Log"
    Effect   = "Allow"
    Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    Resource = ["${aws_cloudwatch_log_group.this.arn}:*"]
  }]

  parameters = [for arn in values(var.secrets) : arn if strcontains(arn, ":ssm:")]
  # A secret's ARN may go on with :key:stage:version.
  secret_arns = [
    for arn in values(var.secrets) : join(":", slice(split(":", arn), 0, 7)) if strcontains(arn, ":secretsmanager:")
  ]

  reads = concat(
    length(local.secret_arns) == 0 ? [] : [{
      Sid      = "Secrets"
      Effect   = "Allow"
      Action   = ["secretsmanager:GetSecretValue"]
      Resource = distinct(local.secret_arns)
    }],
    length(local.parameters) == 0 ? [] : [{
      Sid      = "Parameters"
      Effect   = "Allow"
      Action   = ["ssm:GetParameters"]
      Resource = distinct(local.parameters)
    }],
    [for key in length(var.secrets) == 0 ? [] : var.kms_key_arn[*] : {
      Sid      = "Keys"
      Effect   = "Allow"
      Action   = ["kms:Decrypt"]
      Resource = [key]
    }],
  )

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [for statement in var.statements : merge(
      {
        Sid      = statement.sid
        Effect   = "Allow"
        Action   = statement.actions
        Resource = statement.resources
      },
      length(statement.condition) == 0 ? {} : { Condition = statement.condition },
    )]
  })

  container = merge(
    {
      name      = "main"
      image     = var.container.image
      essential = true

      # The image stays as it was built; /tmp is the task's own.
      readonlyRootFilesystem = true
      mountPoints            = [{ sourceVolume = "scratch", containerPath = "/tmp", readOnly = false }]
      linuxParameters        = { initProcessEnabled = true, capabilities = { drop = ["ALL"] } }

      stopTimeout  = var.stop_timeout
      portMappings = [{ containerPort = var.container.port, protocol = "tcp" }]
      environment  = [for name in sort(keys(var.environment)) : { name = name, value = var.environment[name] }]
      secrets      = [for name in sort(keys(var.secrets)) : { name = name, valueFrom = var.secrets[name] }]

      # Whether a restart would help, not whether a dependency is there: that is /ready.
      healthCheck = {
        command = [
          "CMD", "python", "-c",
          "from urllib.request import urlopen; urlopen('http://127.0.0.1:${var.container.port}/health', timeout=4)",
        ]
        interval    = 10
        timeout     = 5
        retries     = 3
        startPeriod = 60
      }

      logConfiguration = {
        logDriver = "awslogs"
        options = {
          awslogs-group         = aws_cloudwatch_log_group.this.name
          awslogs-region        = data.aws_region.current.region
          awslogs-stream-prefix = "ecs"
          # A log that cannot be written holds no turn up.
          mode            = "non-blocking"
          max-buffer-size = "4m"
        }
      }
    },
    var.container.command == null ? {} : { command = var.container.command },
    var.container.user == null ? {} : { user = var.container.user },
  )
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/aws/ecs/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_iam_role" "execution" {
  name                 = "${var.name}-execution"
  description          = "ECS starts the tasks of ${var.name} with this role"
  assume_role_policy   = local.trust
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags
}

resource "aws_iam_role_policy" "execution" {
  name = "start"
  role = aws_iam_role.execution.id

  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = concat(flatten(local.pull), local.log, local.reads)
  })
}

resource "aws_iam_role" "task" {
  name                 = "${var.name}-task"
  description          = "The application in ${var.name} works with this role"
  assume_role_policy   = local.trust
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags
}

resource "aws_iam_role_policy" "task" {
  name   = "least-privilege"
  role   = aws_iam_role.task.id
  policy = local.policy
}

resource "aws_ecs_task_definition" "this" {
  family                   = var.name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.container.cpu
  memory                   = var.container.memory
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn
  container_definitions    = jsonencode([local.container])
  tags                     = var.tags

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = var.container.architecture
  }

  volume {
    name = "scratch"
  }
}

resource "aws_ecs_service" "this" {
  name            = var.name
  cluster         = var.cluster_arn
  task_definition = aws_ecs_task_definition.this.arn
  desired_count   = var.desired_count
  launch_type     = "FARGATE"
  tags            = var.tags

  availability_zone_rebalancing      = var.rebalance_zones ? "ENABLED" : "DISABLED"
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  enable_ecs_managed_tags            = true
  enable_execute_command             = false
  propagate_tags                     = "SERVICE"
  health_check_grace_period_seconds  = var.has_target_group ? 60 : null

  # A version that does not come up is taken back.
  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = var.subnet_ids
    security_groups  = var.security_group_ids
    assign_public_ip = false
  }

  dynamic "load_balancer" {
    for_each = var.has_target_group ? [var.target_group_arn] : []

    content {
      target_group_arn = load_balancer.value
      container_name   = local.container.name
      container_port   = var.container.port
    }
  }

  lifecycle {
    # Scaling says how many.
    ignore_changes = [desired_count]
  }

  # Its first tasks find themselves allowed to start and to work.
  depends_on = [aws_iam_role_policy.execution, aws_iam_role_policy.task]
}
