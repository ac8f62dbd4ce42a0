"""Layer 5: writes what a turn taught to memory, in the background.

Triggers: a final answer in a conversation with the user, if memory and the flag are on. Costs one fork of at most five
rounds, which reads the conversation from the cache. Returns written memories, each a version that can be undone, and a
cursor that says how far it has looked. Never: delays a turn, raises into the chat, runs twice at once, stores what only
a tool, a page or a recalled memory said, or removes memories that nobody mentioned.
"""
