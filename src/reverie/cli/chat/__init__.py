"""`reverie chat` on a terminal or a pipe, and its slash commands."""
