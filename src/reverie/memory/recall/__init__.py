"""Which memories fit a message, and how the model is shown them."""
