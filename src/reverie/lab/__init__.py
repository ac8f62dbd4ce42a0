"""Measurements on the sessions of the user: `replay` and `survival`. Those of Reverie itself are in `bench/`."""
