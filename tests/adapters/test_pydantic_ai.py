"""The layers under an agent of pydantic-ai, over the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.runs import check_compaction, check_kill, check_results_restarts_and_recall

pytestmark = pytest.mark.integration


def test_results_restarts_and_recall(tmp_path: Path) -> None:
    check_results_restarts_and_recall("pydantic_ai", tmp_path)


def test_compaction(tmp_path: Path) -> None:
    check_compaction("pydantic_ai", tmp_path)


def test_kill(tmp_path: Path) -> None:
    check_kill("pydantic_ai", tmp_path)
