variable "execution_mode" {
  description = "How answers reach callers: rest_sync, rest_async, stream or async."
  type        = string
  default     = "rest_sync"

  validation {
    condition     = contains(["rest_sync", "rest_async", "stream", "async"], var.execution_mode)
    error_message = "execution_mode is rest_sync, rest_async, stream or async."
  }
}

variable "queue_mode" {
  description = "Whether queues lie between what takes requests or frames and what runs agents; false: one process does both (direct mode), and only the output direct is of use."
  type        = bool
  default     = true
}

variable "turn_timeout" {
  description = "Seconds a turn may take from admission to answer, retries included."
  type        = number
  default     = 600

  validation {
    condition     = var.turn_timeout >= 1 && var.turn_timeout <= 86400
    error_message = "turn_timeout is 1 to 86400 seconds."
  }
}

variable "input" {
  description = "The queue of turns: its URL (null in direct mode, where the queue is in memory), attempts before a turn fails for good, the lease in seconds that the service asks for and renews (null: the application's default), and consumers per runner (ECS only)."
  type = object({
    url                = optional(string)
    max_receive_count  = optional(number, 3)
    visibility_timeout = optional(number)
    no_of_consumers    = optional(number, 5)
  })

  validation {
    condition     = !var.queue_mode || var.input.url != null
    error_message = "input.url is needed: only direct mode (queue_mode = false) has no queue of turns."
  }

  validation {
    condition     = var.input.max_receive_count >= 1 && var.input.max_receive_count <= 999
    error_message = "input.max_receive_count is 1 to 999: the queue's own count is one above it, and SQS takes 1000 at most."
  }

  validation {
    condition     = try(var.input.visibility_timeout >= 1 && var.input.visibility_timeout <= 43200, true)
    error_message = "input.visibility_timeout is 1 to 43200 seconds (SQS)."
  }
}

variable "output" {
  description = "The queue of answers; as input, its consumers are those of a responder (ECS only)."
  type = object({
    url                = optional(string)
    max_receive_count  = optional(number, 3)
    visibility_timeout = optional(number)
    no_of_consumers    = optional(number, 2)
  })

  validation {
    condition     = !var.queue_mode || var.output.url != null
    error_message = "output.url is needed: only direct mode (queue_mode = false) has no queue of answers."
  }

  validation {
    condition     = var.output.max_receive_count >= 1 && var.output.max_receive_count <= 999
    error_message = "output.max_receive_count is 1 to 999: the queue's own count is one above it, and SQS takes 1000 at most."
  }

  validation {
    condition     = try(var.output.visibility_timeout >= 1 && var.output.visibility_timeout <= 43200, true)
    error_message = "output.visibility_timeout is 1 to 43200 seconds (SQS)."
  }
}

variable "batch_size" {
  description = "Messages taken at once, 1 to 10."
  type        = number
  default     = 1

  validation {
    condition     = var.batch_size >= 1 && var.batch_size <= 10
    error_message = "batch_size is 1 to 10 (SQS)."
  }
}

variable "tables" {
  description = "Names of the DynamoDB tables; connections only in the WebSocket modes."
  type = object({
    responses   = string
    sessions    = string
    connections = optional(string)
  })
}

variable "response_wait" {
  description = "How long a rest_sync caller waits, as retry_count x delay seconds. API Gateway gives up after 30."
  type = object({
    retry_count = optional(number, 28)
    delay       = optional(number, 1)
  })
  default = {}

  validation {
    condition     = var.response_wait.retry_count * var.response_wait.delay <= 28
    error_message = "response_wait is above 28 seconds: API Gateway answers 503 itself after 30, before the caller is told what became of the turn. Use rest_async or a WebSocket mode for longer turns."
  }
}

variable "websocket" {
  description = "The WebSocket API: its management endpoint (https://...), and the route of chat frames."
  type = object({
    endpoint_url = optional(string)
    chat_route   = optional(string, "chat")
  })
  default = {}
}

variable "drain_grace" {
  description = "Seconds a container has after SIGTERM to finish its work; null in Lambda."
  type        = number
  default     = null
}
