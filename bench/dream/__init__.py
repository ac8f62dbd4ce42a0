"""How well a mind puts memory in order, and what asking for a dream costs."""
