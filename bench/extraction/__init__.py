"""How well a mind learns from conversations, and what a closed gate costs."""
