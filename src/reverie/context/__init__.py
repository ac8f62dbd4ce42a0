"""The read path: the order of the layers, the request, the prompt cache and its cost. `engine.py` joins them."""
