"""Six floors, bottom up, ordered by cost: what a cheap layer takes care of, a dearer one need not.

Each layer is a package of its own and a stage of `context/pipeline.py`; the seventh, `agents/`, stands above the loop.
"""
