"""Shared memory: the team's part, and the memories of kinds of agents."""
