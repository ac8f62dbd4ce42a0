"""Floors under how well memories are found: on a directory of our own that no number was fitted on, and on data beside.

The semantic tier is held to its floors where its encoder has been added (REVERIE_TEST_MODELS, or the user's home).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bench.recall.run import measure, measure_collection, measure_unrelated
from tests.memory.greenhouse import write_greenhouse
from tests.shared_data import data

MODELS = Path(os.environ.get("REVERIE_TEST_MODELS", Path.home() / ".reverie" / "models"))
SILENT = Path(__file__).parent / "silent_queries.jsonl"


def test_a_directory_that_no_number_was_fitted_on(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    found = measure_collection(write_greenhouse(memory), tmp_path, MODELS).report().figures
    ours, plain = found["ranker"], found["bm25"]
    assert ours["r@5"] >= plain["r@5"] + 0.08
    assert ours["silence"] >= 0.8
    assert ours["tool_docs"] == ours["forbidden"] == 0
    if "semantic" in found:
        semantic(found)


@pytest.mark.parametrize("file", ["recall-unrelated.jsonl", "recall-unrelated-second.jsonl"])
def test_prompts_about_something_else_show_nothing(tmp_path: Path, file: str) -> None:
    found = measure_unrelated(Path(__file__).parents[3] / "evals" / file, tmp_path).figures["directories"]
    assert {name: of["prompts"] for name, of in found.items()} == {"5": 20, "20": 20, "200": 20}
    assert all(of["ranker"] <= 1 for of in found.values()), found


@pytest.mark.evals
def test_the_queries_beside_the_project(tmp_path: Path) -> None:
    found = measure(data("recall-dev"), None, MODELS, silent=[SILENT]).report().figures
    ours, plain = found["ranker"], found["bm25"]
    assert ours["r@5"] >= plain["r@5"] + 0.08
    assert ours["shown_r@5"] >= 0.5
    assert ours["silence"] >= 0.8
    assert ours["tool_docs"] == 0
    assert ours["forbidden"] <= 0.03
    if "semantic" in found:
        semantic(found)


def semantic(found: dict[str, Any]) -> None:
    ours = found["semantic"]
    assert ours["r@5"] >= 0.8
    assert ours["r@5"] > max(found["bm25"]["r@5"], found["encoder"]["r@5"])
    assert ours["shown_r@5"] >= 0.72
    assert ours["silence"] >= 0.8
    assert ours["tool_docs"] == 0
    assert ours["forbidden"] <= 0.03


@pytest.mark.soak
@pytest.mark.integration
@pytest.mark.skipif(os.environ.get("REVERIE_SOAK") != "1", reason="encodes for minutes; run by `make soak`")
@pytest.mark.skipif(not (MODELS / "minilm").is_dir(), reason="no encoder here (reverie models add minilm)")
def test_long_conversations() -> None:
    found = measure(None, data("locomo/locomo-first5.json"), MODELS).report().figures
    assert found["semantic"]["r@5"] > max(found["bm25"]["r@5"], found["encoder"]["r@5"])
