"""What may become a memory: who said it, how sure that is, and what waits for the user."""
