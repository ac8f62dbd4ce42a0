"""Looks after the directory: check, repair, undo, import, purge."""
