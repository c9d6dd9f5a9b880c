output "url" {
  description = "Connect to <url>?token=..."
  value       = module.chat.url
}
