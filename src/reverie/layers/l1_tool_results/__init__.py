"""Layer 1: large tool results go to disk, a preview stays in the conversation.

Triggers: every tool result, before it is recorded (its tool's limit); all results of one round together, before they
are first sent (the message budget). Costs a file write, no model call, and never breaks the prefix: it decides before
anything is sent. Returns a replacement that names size and path, so that the agent can read the whole back, also by
range. Never: touches what was sent already, replaces what Read returned (it would read its own file again) or an
image, parses its own marker out of a result (decisions are records), or loses a result the disk did not take.
"""
