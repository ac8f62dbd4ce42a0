"""A team of agents in separate processes: its file, its members and its orderly end."""
