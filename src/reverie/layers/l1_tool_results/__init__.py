"""Layer 1: large tool results go to disk, a preview stays in the conversation.

Triggers: every tool result before it is recorded (the tool's limit), and all results of one round before they are first
sent (the message budget). Costs a file write, no model call and no cache break. Returns a replacement with size and
path, so that the agent can read the whole result or a range of it. Never: changes what was sent already, replaces an
image or a result of Read (the agent would read its own file again), or loses a result that the disk did not take.
"""
