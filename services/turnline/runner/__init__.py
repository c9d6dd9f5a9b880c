"""The runner: claims a turn, runs the agent, commits, publishes."""
