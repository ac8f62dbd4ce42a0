"""Directories with many memories: our own greenhouse, and the one beside the project where it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory.greenhouse import write_greenhouse
from tests.shared_data import ROOT

SHARED = ROOT / "recall-dev" / "memory"


@pytest.fixture(params=["sample", *(["shared"] if SHARED.is_dir() else [])])
def many_memories(request: pytest.FixtureRequest, scratch: Path) -> Path:
    if request.param == "shared":
        return SHARED
    folder = scratch / "greenhouse"
    folder.mkdir()
    write_greenhouse(folder)
    return folder
