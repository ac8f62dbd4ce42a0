"""Proves that a shell command only reads, or says why not."""
