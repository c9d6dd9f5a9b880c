output "rest_url" {
  description = "POST, GET and DELETE <rest_url>/api/v1/chat."
  value       = module.rest.url
}

output "websocket_url" {
  description = "Connect to <websocket_url>?token=..."
  value       = module.websocket.url
}
