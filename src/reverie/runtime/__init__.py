"""What runs next to a conversation: background tasks, hooks, live sockets, heartbeat, background log."""
