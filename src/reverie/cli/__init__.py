"""The `reverie` command: one folder per group of commands, listed in `app.py`."""
