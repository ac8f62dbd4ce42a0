"""Fixtures of the tool tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.tools.base import ToolContext
from tests.tools.calls import make_context


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_context(tmp_path)
