"""What may become a memory: who said it, how sure it is, and what waits for the user."""
