"""Which memories fit a message, and how the model sees them."""
