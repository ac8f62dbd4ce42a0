"""Who thinks: adapters for models, what is known of each, counting and prices."""
