output "responses" {
  description = "The response store's table: name, arn."
  value       = { name = aws_dynamodb_table.responses.name, arn = aws_dynamodb_table.responses.arn }
}

output "sessions" {
  description = "The session store's table: name, arn."
  value       = { name = aws_dynamodb_table.sessions.name, arn = aws_dynamodb_table.sessions.arn }
}

output "connections" {
  description = "The table of client sockets: name, arn; both null without one."
  value = {
    name = one(aws_dynamodb_table.connections[*].name)
    arn  = one(aws_dynamodb_table.connections[*].arn)
  }
}
