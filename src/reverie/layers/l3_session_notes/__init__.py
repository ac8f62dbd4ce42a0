"""Layer 3: notes kept while working, so that a full context can be compacted without asking a model.

Triggers: after every response, at first from 10,000 tokens on, then whenever 5,000 more and three calls (or a pause)
have come together. Costs one fork in the background, which shares the conversation's cache. Returns a file of ten
sections that a person can read and edit, and a cursor: how far it goes. Never: blocks the conversation, changes a
heading, runs twice at once, or moves the cursor past a call that has no result yet.
"""
