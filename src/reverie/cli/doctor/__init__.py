"""`reverie doctor`: is everything there, and if not, what to do."""
