# Which settings each service gets. Provider-free: plain values in, plain values out.

locals {
  uses_websocket = contains(["stream", "async"], var.execution_mode)

  common = {
    AK_EXECUTION__MODE         = var.execution_mode
    AK_EXECUTION__QUEUES__TYPE = var.queue_mode ? "sqs" : "in_memory"
    AK_EXECUTION__TURN_TIMEOUT = tostring(var.turn_timeout)
  }

  drain = var.drain_grace == null ? {} : {
    AK_EXECUTION__DRAIN_GRACE = tostring(var.drain_grace)
  }

  input_url = {
    AK_EXECUTION__QUEUES__INPUT__URL = var.input.url
  }

  output_url = {
    AK_EXECUTION__QUEUES__OUTPUT__URL = var.output.url
  }

  batches = {
    AK_EXECUTION__QUEUES__BATCH_SIZE = tostring(var.batch_size)
  }

  runs_turns = {
    AK_EXECUTION__QUEUES__INPUT__MAX_RECEIVE_COUNT = tostring(var.input.max_receive_count)
    AK_EXECUTION__QUEUES__INPUT__NO_OF_CONSUMERS   = tostring(var.input.no_of_consumers)
  }

  brings_answers = {
    AK_EXECUTION__QUEUES__OUTPUT__MAX_RECEIVE_COUNT = tostring(var.output.max_receive_count)
    AK_EXECUTION__QUEUES__OUTPUT__NO_OF_CONSUMERS   = tostring(var.output.no_of_consumers)
  }

  # Without one the application's default is the lease.
  leases = {
    for name, queue in { input = var.input, output = var.output } : name => {
      for seconds in queue.visibility_timeout[*] : "AK_EXECUTION__QUEUES__SQS__VISIBILITY_TIMEOUT" => tostring(seconds)
    }
  }

  responses = {
    AK_EXECUTION__RESPONSE_STORE__TYPE                 = "dynamodb"
    AK_EXECUTION__RESPONSE_STORE__DYNAMODB__TABLE_NAME = var.tables.responses
    AK_EXECUTION__RESPONSE_STORE__RETRY_COUNT          = tostring(var.response_wait.retry_count)
    AK_EXECUTION__RESPONSE_STORE__DELAY                = tostring(var.response_wait.delay)
  }

  sessions = {
    AK_SESSION__TYPE                 = "dynamodb"
    AK_SESSION__DYNAMODB__TABLE_NAME = var.tables.sessions
  }

  connections = local.uses_websocket ? {
    AK_SESSION__CONNECTION_STORE__TABLE_NAME = var.tables.connections
    AK_WEBSOCKET_API__CONNECTION_TABLE       = var.tables.connections
    AK_WEBSOCKET_API__CHAT_ROUTE             = var.websocket.chat_route
  } : {}

  pushes = local.uses_websocket ? {
    AK_WEBSOCKET_API__ENDPOINT_URL = var.websocket.endpoint_url
  } : {}
}
