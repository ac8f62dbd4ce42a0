"""The read path: the one order of the layers, the request, the prompt cache and what it costs.

`engine.py` joins the layers to a loop; everything else serves it.
"""
