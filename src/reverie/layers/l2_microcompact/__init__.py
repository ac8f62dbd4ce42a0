"""Layer 2: old tool results are cleared, with no model call and no summary.

Triggers: before every request of the main thread, the first of four ways that has something to do: after a pause of an
hour (the cache is gone anyway), when it pays (`economic.py`), by edits inside the server's cache, by the server itself.
The first two cost an announced break of the prefix; what is requested again teaches the session (`lessons.py`).
Returns a marker that says how to get the result back; its bytes are recorded, so a decision never changes. Never:
touches what the model has not seen yet, messages, thinking, or results of MCP, agent and custom tools; acts in a fork.
"""
