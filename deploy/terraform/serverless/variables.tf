variable "name" {
  description = "What all names begin with, such as chat-prod; letters, digits and -, at most 32."
  type        = string

  validation {
    condition     = can(regex("^[a-zA-Z][a-zA-Z0-9-]{1,31}$", var.name))
    error_message = "name is 2 to 32 letters, digits and -, beginning with a letter."
  }
}

variable "execution_mode" {
  description = "How answers reach callers: rest_sync and rest_async over the HTTP API, stream and async over the WebSocket API."
  type        = string
  default     = "rest_sync"
}

variable "queue_mode" {
  description = "Whether queues lie between the API and the agents. false is direct mode, all modes but rest_async: the request handler, or the WebSocket connection handler, runs the agents itself, and there are no queues, no agent runner and no response handler."
  type        = bool
  default     = true

  validation {
    condition     = var.queue_mode || var.execution_mode != "rest_async"
    error_message = "queue_mode = false (direct mode) does not go with execution_mode = \"rest_async\": a function runs the agent before it answers, and nothing runs on after it. Set rest_sync, stream or async, or leave queue_mode = true."
  }
}

variable "turn_timeout" {
  description = "Seconds a turn may take, retries included. One attempt runs in one Lambda invocation, 900 seconds at most."
  type        = number
  default     = 600

  validation {
    condition     = var.turn_timeout >= 1 && var.turn_timeout <= 870
    error_message = "turn_timeout is 1 to 870 seconds: 30 below what a Lambda invocation may take, so that the deadline cuts a turn off and Lambda does not."
  }
}

variable "request_handler" {
  description = "Code and size of the request handler (see modules/request-handler); rest_sync and rest_async only. In direct mode its package holds the agents."
  type        = any
  default     = null

  validation {
    condition     = contains(["stream", "async"], var.execution_mode) || var.request_handler != null
    error_message = "request_handler is needed: it takes the requests of the HTTP API."
  }
}

variable "agent_runner" {
  description = "Code and size of the agent runner (see modules/agent-runner); its timeout follows turn_timeout. None in direct mode, where what takes requests or frames holds the agents."
  type        = any
  default     = null

  validation {
    condition     = var.queue_mode == (var.agent_runner != null)
    error_message = "agent_runner is needed where there are queues, and left out in direct mode (queue_mode = false): what takes requests or frames runs the agents there."
  }
}

variable "response_handler" {
  description = "Code and size of the response handler (see modules/response-handler). None in direct mode."
  type        = any
  default     = null

  validation {
    condition     = var.queue_mode == (var.response_handler != null)
    error_message = "response_handler is needed where there are queues, and left out in direct mode (queue_mode = false): what takes requests or frames answers them there."
  }
}

variable "ws_connection_handler" {
  description = "Code and size of the WebSocket connection handler and its authorizer (see modules/ws-connection-handler); stream and async only. In direct mode its package holds the agents, and its timeout follows turn_timeout."
  type        = any
  default     = null

  validation {
    condition     = !contains(["stream", "async"], var.execution_mode) || var.ws_connection_handler != null
    error_message = "ws_connection_handler is needed: it takes the sockets and frames of the WebSocket API."
  }
}

variable "queues" {
  description = "In direct mode max_receive_count alone counts. max_receive_count: attempts before a turn (or the keeping of an answer) fails for good; the queue's own count is one above it, and as many more as a batch may hand back untouched. batch_size: messages of one invocation. maximum_concurrency: invocations a queue may have at once. reserved_concurrency: never below it."
  type = object({
    input = optional(object({
      max_receive_count    = optional(number, 3)
      batch_size           = optional(number, 1)
      maximum_concurrency  = optional(number, 50)
      reserved_concurrency = optional(number)
    }), {})
    output = optional(object({
      max_receive_count    = optional(number, 3)
      batch_size           = optional(number, 10)
      maximum_concurrency  = optional(number, 20)
      reserved_concurrency = optional(number)
    }), {})
    message_retention = optional(number, 86400)
    max_message_size  = optional(number, 1048576)
  })
  default = {}
}

variable "enable_scheduling" {
  description = "Let EventBridge Scheduler send turns."
  type        = bool
  default     = false

  validation {
    condition     = var.queue_mode || !var.enable_scheduling
    error_message = "enable_scheduling needs queue_mode = true: schedules put turns on the input queue, and direct mode has none."
  }
}

variable "response_wait" {
  description = "How long a rest_sync caller waits, as retry_count x delay seconds, at most 28; in direct mode that is what its turn may take."
  type = object({
    retry_count = optional(number, 28)
    delay       = optional(number, 1)
  })
  default = {}
}

variable "chat_route" {
  description = "Route of chat frames on the WebSocket API."
  type        = string
  default     = "chat"
}

variable "custom_routes" {
  description = "The application's own routes of the WebSocket API."
  type        = set(string)
  default     = []
}

variable "routes" {
  description = "The application's own paths of the HTTP API: method, path (see modules/api-gateway)."
  type = list(object({
    method = string
    path   = string
  }))
  default = []

  validation {
    condition     = length(var.routes) == 0 || !contains(["stream", "async"], var.execution_mode)
    error_message = "routes are paths of the HTTP API; a WebSocket API has custom_routes."
  }
}

variable "jwt_authorizer" {
  description = "Tokens that the HTTP API checks itself; null: the application's AuthValidator alone."
  type = object({
    issuer   = string
    audience = list(string)
  })
  default = null
}

variable "cors_origins" {
  description = "Origins of browsers that may call the HTTP API."
  type        = list(string)
  default     = []
}

variable "environment" {
  description = "Further variables of all functions, such as AK_AUTH__...; no secrets, those an application reads itself."
  type        = map(string)
  default     = {}
}

variable "agent_runner_environment" {
  description = "Further variables of what runs agents alone: the agent runner, or in direct mode what takes requests or frames."
  type        = map(string)
  default     = {}
}

variable "agent_runner_statements" {
  description = "What agents may do besides, such as bedrock:InvokeModel or reading one secret."
  type = list(object({
    sid       = string
    actions   = list(string)
    resources = list(string)
    condition = optional(map(map(string)), {})
  }))
  default = []
}

variable "network" {
  description = "Subnets and security groups of the functions; null: no VPC."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null
}

variable "deletion_protection" {
  description = "Whether AWS refuses to delete the tables."
  type        = bool
  default     = true
}

variable "alarm_actions" {
  description = "What is told of dead letters, such as an SNS topic."
  type        = list(string)
  default     = []
}

variable "log_retention_days" {
  description = "Days logs are kept."
  type        = number
  default     = 365
}

variable "kms_key_arn" {
  description = "Key that encrypts queues, tables, variables and logs; null: AWS's own keys. Its policy must let CloudWatch Logs use it."
  type        = string
  default     = null
}

variable "permissions_boundary_arn" {
  description = "Boundary of all roles of functions; null: none."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of all that is made."
  type        = map(string)
  default     = {}
}
