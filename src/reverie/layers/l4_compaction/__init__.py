"""Layer 4: compaction. A summary replaces what no longer fits; what matters is next to it, word for word.

Triggers: the context is over the autocompact threshold and notes are not enough; the server finds a prompt too long;
the user. Costs one request that shares the conversation's cache (none with notes). Returns a boundary, a new header, a
summary, the working set and a survival report, as one block of records. Never: rewrites the file, loses a message of
the user, relies on a model for facts (code adds requests, operations and pins), or runs in a fork that serves a layer.
"""
