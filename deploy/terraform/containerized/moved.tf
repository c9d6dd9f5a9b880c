# What there was before direct mode keeps its queues, runners and their scaling.

moved {
  from = module.queues
  to   = module.queues[0]
}

moved {
  from = module.agent_runner
  to   = module.agent_runner[0]
}

moved {
  from = module.backlog_scaling
  to   = module.backlog_scaling[0]
}

moved {
  from = aws_security_group.agent_runner
  to   = aws_security_group.agent_runner[0]
}
