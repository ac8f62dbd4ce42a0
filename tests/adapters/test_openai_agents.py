"""The layers under an agent of openai-agents, over the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.minds import Mind, serve
from tests.adapters.runs import check_compaction, check_kill, check_results_restarts_and_recall, misses, start

pytestmark = pytest.mark.integration


def test_results_restarts_and_recall(tmp_path: Path) -> None:
    check_results_restarts_and_recall("openai_agents", tmp_path)


def test_compaction(tmp_path: Path) -> None:
    check_compaction("openai_agents", tmp_path)


def test_kill(tmp_path: Path) -> None:
    check_kill("openai_agents", tmp_path)


def test_sessions_and_agents_as_tools(tmp_path: Path) -> None:
    read = 'call read_kept_result {"path": "/etc/passwd"}'
    mind = Mind(['call ask_helper {"input": "What is it?"}', "say A pear.", read, "say Done."])
    with serve(mind) as server:
        start("tests/adapters/openai_agents_parts.py", tmp_path, server.url)
        assert "Ask somebody" not in mind.sent[1] and "A pear." in mind.sent[2] and "Ask somebody" in mind.sent[2]
    assert misses(server) == []


def test_the_example_runs(tmp_path: Path) -> None:
    assert start("examples/13_openai_agents.py", tmp_path).endswith("knows the harbour: True")
