# The tables, as turnline.store.dynamodb.schema describes them; a test compares the two.
# Readers count an item as gone from the second of its expiry_time on; DynamoDB removes it later.

resource "aws_dynamodb_table" "responses" {
  name                        = "${var.name}-responses"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "request_id"
  range_key                   = "part"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "request_id"
    type = "S"
  }

  attribute {
    name = "part"
    type = "S"
  }

  ttl {
    attribute_name = "expiry_time"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = var.kms_key_arn
  }
}

resource "aws_dynamodb_table" "sessions" {
  name                        = "${var.name}-sessions"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "session_id"
  range_key                   = "part"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "session_id"
    type = "S"
  }

  attribute {
    name = "part"
    type = "S"
  }

  ttl {
    attribute_name = "expiry_time"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = var.kms_key_arn
  }
}

resource "aws_dynamodb_table" "connections" {
  count = var.with_connections ? 1 : 0

  name                        = "${var.name}-connections"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "user_id"
  range_key                   = "connection_id"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "user_id"
    type = "S"
  }

  attribute {
    name = "connection_id"
    type = "S"
  }

  global_secondary_index {
    name            = "connection_id-index"
    hash_key        = "connection_id"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "expiry_time"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = var.kms_key_arn
  }
}
