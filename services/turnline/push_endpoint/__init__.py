"""The push endpoint: authenticated push to a user, whichever pods hold their sockets."""
