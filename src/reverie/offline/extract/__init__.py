"""Extraction without a model: finds by speech acts what the user said in the new messages that is worth keeping.

The offline mind calls `task.py`: it reads the memories that may change, writes, and ends. It keeps the user's own words
and does not add any. Precision before recall: in doubt it writes nothing. It acts only through tool calls.
"""
