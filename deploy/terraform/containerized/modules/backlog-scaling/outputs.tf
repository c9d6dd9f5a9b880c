output "function_name" {
  description = "What measures; null when scaling is not enabled."
  value       = one(module.function[*].function.name)
}

output "policy" {
  description = "What it may do, as JSON; null when scaling is not enabled."
  value       = one(module.function[*].policy)
}

output "environment" {
  description = "Its environment variables; null when scaling is not enabled."
  value       = one(module.function[*].environment)
}

output "packed" {
  description = "The files in its package."
  value       = sort(local.sources)
}
