"""The layers under an agent of pydantic-ai, over the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.minds import Mind, serve
from tests.adapters.runs import (
    Agent,
    call,
    check_compaction,
    check_kill,
    check_results_restarts_and_recall,
    misses,
    start,
)

pytestmark = pytest.mark.integration


def test_results_restarts_and_recall(tmp_path: Path) -> None:
    check_results_restarts_and_recall("pydantic_ai", tmp_path)


def test_compaction(tmp_path: Path) -> None:
    check_compaction("pydantic_ai", tmp_path)


def test_kill(tmp_path: Path) -> None:
    check_kill("pydantic_ai", tmp_path)


def test_claude_reads_its_cache(tmp_path: Path) -> None:
    """The cache markers are those of pydantic-ai."""
    mind = Mind([call("small"), call("large-a"), "say Read.", "say Yes."])
    with serve(mind) as server:
        agent = Agent("pydantic_ai", tmp_path, server)
        for text in ("Read two logs.", "Are you sure?"):
            cost = agent.run(text, model="anthropic:claude-sonnet-5-5", stream=text.endswith("?"))["cost"]
        assert "cache_control" in str(mind.bodies[-1]) and str(agent.kept[0]) in mind.sent[-1]
        assert cost["cache_write_tokens"] > 0 and cost["cache_read_tokens"] > cost["cache_write_tokens"]
    assert misses(server) == []


def test_parts(tmp_path: Path) -> None:
    start("tests/adapters/pydantic_ai_parts.py", tmp_path, "")


def test_the_example_runs(tmp_path: Path) -> None:
    assert start("examples/14_pydantic_ai.py", tmp_path).endswith("knows the harbour: True")
