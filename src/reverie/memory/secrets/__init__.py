"""Finds keys, passwords and the like in text, so that they are never stored."""
