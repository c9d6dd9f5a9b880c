"""Real servers on random loopback ports."""
