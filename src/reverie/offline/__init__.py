"""The default without a key: no weights, deterministic, and honest about its limits. It searches, reads and quotes.

Like any other model it acts only through tool calls and never touches the disk itself.
"""
