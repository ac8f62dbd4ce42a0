"""Layer 2: old tool results are cleared, with no model call and no summary.

Triggers: before every request of the main thread, the first of four ways that has something to do. After an hour's
pause (the cache is gone anyway); when it pays (`economic.py`); by edits inside the server's cache, where an endpoint
has them; by the server itself. Costs a break of the prefix in the first two ways, announced and weighed. Returns
the marker that stands for a result and says how to get it back; its bytes are recorded, so a decision never flips.
Never: touches what the model has not seen yet, what people or the model said, thinking, or results of MCP, agent and
custom tools; acts in a fork.
"""
