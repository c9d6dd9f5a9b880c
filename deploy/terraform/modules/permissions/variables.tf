variable "arns" {
  description = "What the services work on. connections and execute_api (of the API's stage) are null without a WebSocket API; kms_keys are those that encrypt queues and tables."
  type = object({
    input_queue         = string
    input_dead_letters  = string
    output_queue        = string
    output_dead_letters = string
    responses           = string
    sessions            = string
    connections         = optional(string)
    execute_api         = optional(string)
    kms_keys            = optional(list(string), [])
  })
}
