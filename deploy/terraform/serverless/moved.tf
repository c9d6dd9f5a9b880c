# What there was before direct mode keeps its queues and functions.

moved {
  from = module.queues
  to   = module.queues[0]
}

moved {
  from = module.agent_runner
  to   = module.agent_runner[0]
}

moved {
  from = module.response_handler
  to   = module.response_handler[0]
}
