"""Finds keys, passwords and other secrets in text, so that they are never stored."""
