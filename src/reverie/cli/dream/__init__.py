"""`reverie dream`: run, watch, review and undo dreams."""
