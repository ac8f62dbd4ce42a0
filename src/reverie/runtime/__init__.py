"""What runs beside a conversation: background tasks, hooks, live sockets, heartbeat, background log."""
