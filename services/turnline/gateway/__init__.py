"""The gateway: holds client sockets, enqueues chat frames, answers custom routes."""
