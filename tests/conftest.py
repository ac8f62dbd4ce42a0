"""Fixtures every test shares."""
