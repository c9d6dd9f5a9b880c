# One function with its role and log: it may write its log and do what is listed, nothing else.

locals {
  log = [{
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.this.arn}:*"]
    condition = {}
  }]

  # Neither action can be narrowed to a resource.
  trace = [{
    sid       = "Trace"
    actions   = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]
    resources = ["*"]
    condition = {}
  }]

  # What Lambda itself needs to attach a function to a VPC; no resource can be named.
  attach = var.network == null ? [] : [{
    sid = "AttachToVpc"
    actions = [
      "ec2:CreateNetworkInterface",
      "ec2:DeleteNetworkInterface",
      "ec2:DescribeNetworkInterfaces",
      "ec2:DescribeSubnets",
    ]
    resources = ["*"]
    condition = {}
  }]

  # By its name: the function itself waits for its role.
  self = replace(
    aws_cloudwatch_log_group.this.arn,
    "/^(arn:[^:]+):logs:([^:]+:[^:]+):.*$/",
    "$1:lambda:$2:function:${var.name}",
  )

  call_itself = !var.calls_itself ? [] : [{
    sid       = "CallItself"
    actions   = ["lambda:InvokeFunction"]
    resources = [local.self, "${local.self}:*"]
    condition = {}
  }]

  statements = concat(var.statements, local.log, local.trace, local.attach, local.call_itself)

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [for statement in local.statements : merge(
      {
        Sid      = statement.sid
        Effect   = "Allow"
        Action   = statement.actions
        Resource = statement.resources
      },
      length(statement.condition) == 0 ? {} : { Condition = statement.condition },
    )]
  })
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_iam_role" "this" {
  name                 = var.name
  description          = "Role of the Lambda function ${var.name}"
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "this" {
  name   = "least-privilege"
  role   = aws_iam_role.this.id
  policy = local.policy
}

resource "aws_lambda_function" "this" {
  #checkov:skip=CKV_AWS_116:Invoked by an event source mapping, whose queue has dead letters, while somebody waits, or by itself for what stays in its store.
  #checkov:skip=CKV_AWS_272:Signing is the choice of whoever builds the package.
  function_name = var.name
  description   = var.description
  role          = aws_iam_role.this.arn

  package_type      = var.package.image_uri == null ? "Zip" : "Image"
  filename          = var.package.filename
  s3_bucket         = var.package.s3_bucket
  s3_key            = var.package.s3_key
  s3_object_version = var.package.s3_object_version
  image_uri         = var.package.image_uri
  source_code_hash  = var.package.hash != null || var.package.filename == null ? var.package.hash : filebase64sha256(var.package.filename)
  handler           = var.package.image_uri == null ? var.handler : null
  runtime           = var.package.image_uri == null ? var.runtime : null
  architectures     = [var.architecture]

  memory_size                    = var.memory_size
  timeout                        = var.timeout
  reserved_concurrent_executions = var.reserved_concurrency
  kms_key_arn                    = var.kms_key_arn
  tags                           = var.tags

  environment {
    variables = var.environment
  }

  tracing_config {
    mode = "Active"
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.this.name
  }

  dynamic "image_config" {
    for_each = var.package.image_uri[*]

    content {
      command = [var.handler]
    }
  }

  dynamic "vpc_config" {
    for_each = var.network[*]

    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  # Its first invocation may come as soon as it is there.
  depends_on = [aws_iam_role_policy.this]
}
