"""Decides what may run and which paths may be used, each time with a reason. Nothing here writes or runs anything."""
