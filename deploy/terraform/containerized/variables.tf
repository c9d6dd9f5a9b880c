variable "name" {
  description = "What all names begin with, such as chat-prod; letters, digits and -, at most 20 (load balancers take 32)."
  type        = string

  validation {
    condition     = can(regex("^[a-zA-Z][a-zA-Z0-9-]{1,19}$", var.name))
    error_message = "name is 2 to 20 letters, digits and -, beginning with a letter."
  }
}

variable "execution_mode" {
  description = "How answers reach callers: rest_sync and rest_async over an HTTP API, stream and async over a WebSocket API."
  type        = string
  default     = "rest_sync"
}

variable "queue_mode" {
  description = "Whether queues lie between the API and the agents. false is direct mode: io_handler holds the agents (AWSRestAPI.run or AWSWebsocketAPI.run), and there are no queues, no agent runner and no scaling by backlog. A turn is lost with its container: keep turn_timeout 10 s below stop_timeout."
  type        = bool
  default     = true
}

variable "turn_timeout" {
  description = "Seconds a turn may take, retries included."
  type        = number
  default     = 600
}

variable "vpc_id" {
  description = "The VPC."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of two availability zones or more, with a way to AWS and to the models (NAT or endpoints)."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) >= 2
    error_message = "subnet_ids names two subnets at least: load balancers span availability zones."
  }
}

variable "cluster" {
  description = "An existing cluster: name, arn; null makes one."
  type = object({
    name = string
    arn  = string
  })
  default = null
}

variable "io_handler" {
  description = "The container that takes requests and brings answers, and in direct mode runs the agents: image and size (see modules/ecs-service), its variables and secrets, and count: tasks at least and at most, between which processor load decides."
  type = object({
    image        = string
    command      = optional(list(string))
    user         = optional(string)
    port         = optional(number, 8000)
    cpu          = optional(number, 512)
    memory       = optional(number, 1024)
    architecture = optional(string, "X86_64")
    environment  = optional(map(string), {})
    secrets      = optional(map(string), {})
    min_count    = optional(number, 2)
    max_count    = optional(number, 6)
    cpu_target   = optional(number, 60)
  })

  validation {
    condition     = var.io_handler.min_count >= 1 && var.io_handler.max_count >= var.io_handler.min_count
    error_message = "io_handler needs 1 <= min_count <= max_count."
  }
}

variable "agent_runner" {
  description = "The container that runs agents: image and size (see modules/ecs-service), its variables and secrets. None in direct mode, where io_handler holds the agents."
  type = object({
    image        = string
    command      = optional(list(string))
    user         = optional(string)
    port         = optional(number, 8000)
    cpu          = optional(number, 1024)
    memory       = optional(number, 2048)
    architecture = optional(string, "X86_64")
    environment  = optional(map(string), {})
    secrets      = optional(map(string), {})
  })
  default = null

  validation {
    condition     = var.queue_mode == (var.agent_runner != null)
    error_message = "agent_runner is needed where there are queues, and left out in direct mode (queue_mode = false): io_handler runs the agents there."
  }
}

variable "agent_runner_statements" {
  description = "What agents may do besides, such as bedrock:InvokeModel."
  type = list(object({
    sid       = string
    actions   = list(string)
    resources = list(string)
    condition = optional(map(map(string)), {})
  }))
  default = []
}

variable "scaling_config" {
  description = "How the fleet of runners follows its backlog, where there are queues; see modules/backlog-scaling. backlog_target trades latency for cost: 5 to 10 tolerates a queue, 1 starts tasks at once."
  type = object({
    enabled            = optional(bool, true)
    min_count          = optional(number, 1)
    max_count          = optional(number, 10)
    backlog_target     = optional(number, 5)
    scale_in_cooldown  = optional(number, 180)
    scale_out_cooldown = optional(number, 60)
  })
  default = {}
}

variable "queues" {
  description = "In direct mode max_receive_count and no_of_consumers alone count. max_receive_count: attempts before a turn (or the keeping of an answer) fails for good; the queue's own count is above it, by one and by deliveries that start no attempt. no_of_consumers: per task. visibility_timeout: seconds until the work of a dead task comes back; it is renewed while a turn runs, so it may be far below the longest turn."
  type = object({
    input = optional(object({
      max_receive_count = optional(number, 3)
      no_of_consumers   = optional(number, 5)
    }), {})
    output = optional(object({
      max_receive_count = optional(number, 3)
      no_of_consumers   = optional(number, 2)
    }), {})
    batch_size         = optional(number, 1)
    visibility_timeout = optional(number, 10)
    message_retention  = optional(number, 86400)
    max_message_size   = optional(number, 1048576)
  })
  default = {}

  validation {
    condition     = var.queues.visibility_timeout >= 5
    error_message = "queues.visibility_timeout is 5 seconds at least: several renewals have to fit in."
  }
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

variable "stop_timeout" {
  description = "Seconds what runs agents has from SIGTERM to SIGKILL, 120 at most on Fargate. Turns that run then finish within it; the rest is handed back, unspent; in direct mode its callers are told to send it again."
  type        = number
  default     = 120

  validation {
    condition     = var.stop_timeout >= 15 && var.stop_timeout <= 120
    error_message = "stop_timeout is 15 to 120 seconds (Fargate)."
  }
}

variable "response_wait" {
  description = "How long a rest_sync caller waits, as retry_count x delay seconds, at most 28."
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

variable "websocket_paths" {
  description = "Paths of the IO handler that the WebSocket API posts to."
  type = object({
    connect    = optional(string, "/ws/connect")
    disconnect = optional(string, "/ws/disconnect")
    message    = optional(string, "/ws/message")
  })
  default = {}
}

variable "routes" {
  description = "The application's own paths of the HTTP API, as it registers them (AWSRestAPI.register): method, or ANY, and path. io_handler answers them past the queue, and only jwt_authorizer checks who calls."
  type = list(object({
    method = string
    path   = string
  }))
  default = []

  validation {
    condition = alltrue([
      for route in var.routes : contains(["ANY", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"], route.method)
    ])
    error_message = "routes: a method is ANY, DELETE, GET, HEAD, OPTIONS, PATCH, POST or PUT."
  }

  validation {
    condition     = alltrue([for route in var.routes : can(regex("^(/[^/\\s]+)+$", route.path))])
    error_message = "routes: a path begins with /, does not end with one, and has no blanks, such as /app/status."
  }

  validation {
    condition     = length(distinct(var.routes)) == length(var.routes)
    error_message = "routes: one is there twice."
  }

  validation {
    condition     = alltrue([for route in var.routes : !contains(["/api/v1/agents", "/api/v1/chat", "/api/v1/chat-multipart"], route.path)])
    error_message = "routes: /api/v1/agents, /api/v1/chat and /api/v1/chat-multipart are the product's own; choose another path."
  }

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

variable "internal_tls" {
  description = "Encrypts the way from API Gateway to the load balancer: its certificate, and the name in it. null: plain, inside the VPC."
  type = object({
    certificate_arn = string
    server_name     = string
  })
  default = null
}

variable "environment" {
  description = "Further variables of both containers, such as AK_AUTH__...; secrets go into secrets."
  type        = map(string)
  default     = {}
}

variable "extra_security_group_ids" {
  description = "Further security groups of the tasks, such as those a database lets in."
  type        = list(string)
  default     = []
}

variable "access_log_bucket" {
  description = "Bucket of the load balancer's access logs; null: none, API Gateway writes its own."
  type        = string
  default     = null
}

variable "deletion_protection" {
  description = "Whether AWS refuses to delete tables and load balancers."
  type        = bool
  default     = true
}

variable "alarm_actions" {
  description = "What is told of dead letters and of a backlog that is not measured, such as an SNS topic."
  type        = list(string)
  default     = []
}

variable "log_retention_days" {
  description = "Days logs are kept."
  type        = number
  default     = 365
}

variable "kms_key_arn" {
  description = "Key that encrypts queues, tables, logs and secrets; null: AWS's own keys. Its policy must let CloudWatch Logs use it."
  type        = string
  default     = null
}

variable "permissions_boundary_arn" {
  description = "Boundary of all roles of containers and functions; null: none."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of all that is made."
  type        = map(string)
  default     = {}
}
