"""Layers 1 to 6, ordered by cost: what a cheap layer takes care of never reaches an expensive one.

Each is a package with its rules and its runner. `context/pipeline.py` has their order; layer 7 is `agents/`.
"""
