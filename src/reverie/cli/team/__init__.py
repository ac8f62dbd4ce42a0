"""`reverie team`: start, watch and end a team of processes."""
