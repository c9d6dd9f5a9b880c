"""The push endpoint: authenticated push to a connection of this pod, or to a user."""
