"""The library: the layers under anyone's loop (`engine.py`), and a memory directory alone (`memory.py`).

Nothing is imported here: `from reverie import Memory` must stay cheap.
"""
