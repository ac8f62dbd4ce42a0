"""`reverie doctor`: checks that Reverie has everything it needs."""
