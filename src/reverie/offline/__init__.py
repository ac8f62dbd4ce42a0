"""The default with no key: no weights, deterministic, honest about what it is. It searches, reads and quotes.

Like any other model it acts through tool calls only and never touches the disk itself.
"""
