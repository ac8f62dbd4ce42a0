"""Layer 4: compaction. What no longer fits is summarised; what matters stands beside the summary, word for word.

Triggers: the context is over the autocompact threshold and the notes cannot do it; a prompt the server finds too long;
a person. Costs one request that shares the conversation's cache (none with notes). Returns a boundary, a new header, a
summary, the working set and what survived, as one block of records. Never: rewrites the file, loses a message of the
person's, trusts a model with the facts (requests, operations and pins are put beside its summary by code), or runs
inside the forks that compact, take notes, extract, dream or answer a side question.
"""
