"""Commands about what is remembered: look, change, import, purge, recall."""
