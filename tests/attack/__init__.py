"""Attacks that go on for an hour: `make attack`, or `python -m tests.attack`.

One module per class of defect. Each makes new cases from a seed and has an oracle of its own: what must never happen.
"""
