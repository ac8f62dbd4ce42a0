"""A team of agents in processes of their own: its file, its members, and its orderly end."""
