"""Applications that tests start as processes."""
