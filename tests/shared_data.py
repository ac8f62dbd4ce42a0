"""Finds the measuring data that lives beside the project; a test that needs it skips with a reason when it is away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("REVERIE_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def data(relative: str) -> Path:
    """The path of a data file or folder; skips the calling test when the data is not on this machine."""
    path = ROOT / relative
    if not path.exists():
        pytest.skip(f"measuring data {relative} is not on this machine (set REVERIE_TEST_DATA to its folder)")
    return path
