variable "arns" {
  description = "What the services work on. The queues are null in direct mode, which is for the output direct alone; connections and execute_api (of the API's stage) are null without a WebSocket API; kms_keys are those that encrypt queues and tables."
  type = object({
    input_queue         = optional(string)
    input_dead_letters  = optional(string)
    output_queue        = optional(string)
    output_dead_letters = optional(string)
    responses           = string
    sessions            = string
    connections         = optional(string)
    execute_api         = optional(string)
    kms_keys            = optional(list(string), [])
  })
}
