"""Proves that a shell command only reads, or gives the reason why it cannot."""
