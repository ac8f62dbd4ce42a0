"""Extraction without a model: what a person said in the new messages that is worth keeping, found by speech acts.

`task.py` is what the embedded model calls: a look at the memories that may have to change, then the writes, then done.
It keeps people's own words and adds none, so what it writes rests on what they typed. Precision before recall: where
it is in doubt, it writes nothing. It never acts but by tool calls.
"""
