"""`reverie chat --full-screen`: the chat as a Textual app, on the same controller as the line mode.

Nothing outside this folder imports Textual, so other commands start without it.
"""
