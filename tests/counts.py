"""Counts for crash, race and fuzz tests: reduced in `make test`, full in `make soak`."""

from __future__ import annotations

import os

SOAK = os.environ.get("REVERIE_SOAK") == "1"


def count(reduced: int, full: int) -> int:
    return full if SOAK else reduced
