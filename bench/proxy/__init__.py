"""Measures the proxy on recorded sessions: what it saves, and how long it takes."""
