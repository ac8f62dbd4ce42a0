"""Layer 7: agents that fork, share the prompt cache, start others and write to each other.

`fork.py` is the fork, and `spawn.py` says who may start whom.
"""
