"""How well memories are found, and how well recall keeps silent."""
