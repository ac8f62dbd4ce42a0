"""Layer 3: notes kept while working, so that a full context can be compacted without asking a model.

Triggers: in every round, first from 10,000 tokens on, then after each 5,000 more with three calls or a pause. Costs
nothing while code writes them; shortly before a compaction one fork, which shares the conversation's cache. Returns a
file of ten sections that the user can read and edit, and a cursor that says how far it goes. Never: blocks the
conversation, changes a heading, runs twice at once, or moves the cursor past a call without a result.
"""
