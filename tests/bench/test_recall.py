"""The recall lab: its figures mean what they say, its data is read as it is written, its command prints its keys."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.recall.data import Query, read_folder, read_locomo
from bench.recall.run import SearchAnswer, figures, measure
from bench.recall.scale import measure_scale, questions, write_notes
from reverie.cli.lab import command
from reverie.errors import UserError
from tests.bench.contract import check_keys

KEYS = {"r@5", "mrr", "shown_r@5", "precision", "silence", "tool_docs", "forbidden"}


def test_the_figures_of_a_small_example_worked_out_by_hand() -> None:
    two = Query(
        "q1", "multi", relevant=frozenset({"a", "b"}), acceptable=frozenset({"ok"}), forbidden=frozenset({"bad"})
    )
    tool = Query("q2", "tool", tools=("mcp__x__y",), relevant=frozenset({"c"}), forbidden=frozenset({"manual"}))
    silent = Query("q3", "none", acceptable=frozenset({"ok"}))
    found = figures(
        [
            SearchAnswer(two, ["x", "a", "ok", "y", "z", "b"], ["a", "ok", "bad"]),
            SearchAnswer(tool, ["c"], ["c", "manual"]),
            SearchAnswer(silent, ["a"], []),
            SearchAnswer(silent, ["ok"], ["ok"]),
        ]
    )
    assert found["r@5"] == 0.75  # one of two, and one of one
    assert found["mrr"] == 0.75  # second place, and first
    assert found["shown_r@5"] == 0.75
    assert found["precision"] == 0.5  # a and c of a, bad, c, manual; what is acceptable does not count
    assert found["silence"] == 0.5  # an acceptable file is not silence
    assert found["tool_docs"] == found["forbidden"] == 0.25
    assert figures([])["r@5"] is None


def folder_with_queries(folder: Path) -> Path:
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "a.md").write_text("---\nname: Boiler\ndescription: replaced in March\n---\n")
    (folder / "memory" / "b.md").write_text("---\nname: Roof\ndescription: slates are loose\n---\n")
    (folder / "memory" / "MEMORY.md").write_text("- [Boiler](a.md)\n")
    (folder / "mtimes.json").write_text(json.dumps({"a.md": "2025-01-02T03:04:05Z"}))
    queries = [
        {"id": "1", "query": "when is our boiler replaced?", "relevant": ["a.md"], "note": "[lexical] x"},
        {"id": "2", "query": "loose slates", "recent_tools": ["Bash"], "relevant": ["b.md"], "note": "short"},
        {
            "id": "3",
            "query": "who wrote Faust?",
            "relevant": [],
            "acceptable": [],
            "forbidden": ["a.md"],
            "note": "[none]",
        },
    ]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)) + "\n\n")
    return folder


def test_a_folder_is_copied_with_its_mtimes_and_left_alone(tmp_path: Path) -> None:
    folder = folder_with_queries(tmp_path / "set")
    for path in (folder / "memory").iterdir():
        path.chmod(0o400)
    (tmp_path / "scratch").mkdir()
    found = read_folder(folder, tmp_path / "scratch")
    assert os.stat(found.memory / "a.md").st_mtime == 1735787045  # noqa: PTH116
    (found.memory / "a.md").write_text("writable")
    assert [query.kind for query in found.queries] == ["lexical", "short", "none"]
    assert found.queries[1].tools == ("Bash",)


def test_every_search_is_measured_in_one_run(tmp_path: Path) -> None:
    found = measure(folder_with_queries(tmp_path / "set"), None, None).report().figures
    check_keys("recall", found)
    assert found["queries"] == 3
    for search in ("ranker", "bm25", "fts5"):
        assert found[search].keys() >= KEYS
        assert found[search]["r@5"] == 1.0
        assert found[search]["by_kind"].keys() == {"lexical", "short", "none"}
    assert "semantic" not in found
    assert found["ranker"]["silence"] == 1.0
    assert "reverie models add" in found["notes"][0]


def test_the_command_prints_one_json_object(tmp_path: Path) -> None:
    folder = folder_with_queries(tmp_path / "set")
    args = ["recall", str(folder), "--models", str(tmp_path / "none")]
    printed: dict[str, Any] = json.loads(CliRunner().invoke(command, [*args, "--json"], catch_exceptions=False).output)
    assert printed["ranker"].keys() >= KEYS
    assert "lexical" in CliRunner().invoke(command, args, catch_exceptions=False).output


def test_prompts_that_have_nothing_to_do_with_the_memories(tmp_path: Path) -> None:
    lines = [
        {"directory": "house", "file": "a.md", "text": "---\nname: Boiler\ndescription: replaced in March\n---\n"},
        {"directory": "house", "prompt": "when was our boiler replaced?"},
        {"directory": "house", "prompt": "who wrote Faust?"},
    ]
    path = tmp_path / "unrelated.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    args = ["recall", "--unrelated", str(path), "--models", str(tmp_path / "none")]
    printed: dict[str, Any] = json.loads(CliRunner().invoke(command, [*args, "--json"], catch_exceptions=False).output)
    assert printed["directories"] == {"house": {"prompts": 2, "ranker": 1}}
    assert printed["shown"]["house"]["ranker"] == [{"prompt": "when was our boiler replaced?", "files": ["a.md"]}]
    assert "1 of 2 prompts" in CliRunner().invoke(command, args, catch_exceptions=False).output
    path.write_text('{"directory": "..", "prompt": "x"}')
    with pytest.raises(UserError, match=r"unrelated\.jsonl:1"):
        CliRunner().invoke(command, args, catch_exceptions=False)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "one thing"),
        (["--scale", "ten"], "--scale ten"),
        (["/tmp", "--scale", "5"], "one thing"),
        (["/tmp"], "needs"),
    ],
)
def test_wrong_use_is_one_clear_sentence(args: list[str], says: str, tmp_path: Path) -> None:
    args = [str(tmp_path) if arg == "/tmp" else arg for arg in args]
    with pytest.raises(UserError, match=says):
        CliRunner().invoke(command, ["recall", *args], catch_exceptions=False)


def test_a_query_that_is_none_names_its_line(tmp_path: Path) -> None:
    folder = folder_with_queries(tmp_path / "set")
    with (folder / "queries.jsonl").open("a") as file:
        file.write('{"id": "no text"}\n')
    (tmp_path / "scratch").mkdir()
    with pytest.raises(UserError, match=r"queries\.jsonl:5"):
        read_folder(folder, tmp_path / "scratch")


def test_conversations_become_directories_of_sessions(tmp_path: Path) -> None:
    turns = [{"speaker": "Ana", "dia_id": "D1:1", "text": "I bought a kayak", "blip_caption": "a red boat"}]
    sessions = {"session_1": turns, "session_1_date_time": "1 May", "session_2": [dict(turns[0], text="Rain again")]}
    talk = {
        "conversation": {"speaker_a": "Ana", **sessions},
        "qa": [
            {"question": "What did Ana buy?", "evidence": ["D1:1"], "category": 4},
            {"question": "Both?", "evidence": ["D1:1; D2:1"], "category": 1},
            {"question": "Adversarial?", "evidence": ["D1:1"], "category": 5},
            {"question": "Of no session?", "evidence": ["D9:1"], "category": 2},
        ],
    }
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([talk]))
    (collection,) = read_locomo(path, tmp_path)
    assert [sorted(query.relevant) for query in collection.queries] == [
        ["session_01.md"],
        ["session_01.md", "session_02.md"],
    ]
    assert "Ana: I bought a kayak (photo: a red boat)" in (collection.memory / "session_01.md").read_text()
    found = measure(None, path, None).report().figures
    assert found["ranker"]["by_kind"].keys() == {"category-4", "category-1"}
    path.write_text('{"not": "a list"}')
    with pytest.raises(UserError, match="not a LoCoMo file"):
        read_locomo(path, tmp_path / "again")


def test_invented_notes_are_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_notes(tmp_path / name, 30)
    one, two = ({p.name: p.read_text() for p in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert len(one) == 30
    assert questions(3) == questions(3)


def test_cost_by_size_has_its_keys() -> None:
    found = measure_scale([40])
    check_keys("recall", found, "scale")
    assert found["40"].keys() >= {"p50_ms", "p99_ms", "cold_ms", "update_ms", "rss_mb"}
    assert 0 < found["40"]["p50_ms"] < found["40"]["cold_ms"]
