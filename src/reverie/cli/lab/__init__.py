"""`reverie lab`: the measurements as commands."""
