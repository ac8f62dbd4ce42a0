"""Layer 5: what a turn taught us goes to memory, while nobody waits for it.

Triggers: a final answer without a tool call, if memory and the flag are on, in the conversation of a person at the
keyboard. Costs one fork of at most five rounds, which reads the conversation from the cache. Returns memories that
were written, each a version that can be undone, and a cursor: how far it has looked. Never: keeps a turn waiting,
raises into the chat, runs twice at once, stores what only a tool, a page or a recalled memory said, or takes out of
memory what nobody spoke of.
"""
