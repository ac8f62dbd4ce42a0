"""`reverie connect` and `reverie disconnect`."""
