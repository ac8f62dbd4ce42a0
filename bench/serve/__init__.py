"""How fast the memory server writes and recalls, with few and with many memories, and beside others."""
