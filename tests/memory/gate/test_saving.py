"""What a person asks to remember is stored in their words: only an equal text is already there, and nothing takes the
place of another statement unless they choose so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.sync import Memory as SyncMemory
from tests.shared_data import ROOT

PAIRS = [
    ("Ask Maria before deploying.", "Ask Maria after deploying."),
    ("Server alpha listens on 8100.", "Server bravo listens on 8101."),
    ("The cluster has three replicas.", "The cluster has five replicas."),
    ("Delete branches with -d.", "Delete branches with -D."),
    ("Alert when n<5.", "Alert when n>5."),
    ("We write it in C.", "We write it in C++."),
    ("The limit is 8.100 requests.", "The limit is 8100 requests."),
    ("the base is e", "The base is e"),
    ("Deploy on Tuesdays, never alone.", "Deploy on Tuesdays never, alone."),
    ("Use tabs because Mia likes them.", "Use tabs because mia likes them."),
]
"""Two statements of one person, in order."""


def shared_pairs() -> list[tuple[str, str]]:
    folder, found = ROOT / "quotes", list[tuple[str, str]]()
    for file, first, second in (("pairs.jsonl", "first", "second"), ("flips.jsonl", "typed", "flipped")):
        if (folder / file).exists():
            rows = [json.loads(line) for line in (folder / file).read_text().splitlines()]
            found += [(row[first], row[second]) for row in rows]
    return found


def bodies(memory: SyncMemory) -> list[str]:
    return sorted(memory.read(one.name).text.strip() for one in memory.list())


@pytest.mark.parametrize("pair", [*PAIRS, *shared_pairs()], ids=lambda pair: pair[1][:40])
@pytest.mark.parametrize("origin", ["typed", "entered", "piped"])
def test_a_statement_that_differs_is_stored_too(tmp_path: Path, pair: tuple[str, str], origin: str) -> None:
    first, second = pair
    with SyncMemory.open(tmp_path) as memory:
        one = memory.remember(first, origin="typed")
        other = memory.remember(second, origin=origin)
        assert (one.action, other.action) == ("added", "added") and one.name != other.name
        said = "\n".join(bodies(memory))
        assert first.partition(" because ")[0].rstrip(".") in said
        assert all(part.rstrip(".") in said for part in second.split(" because "))


def test_an_equal_text_is_already_there_and_typing_it_confirms_it(tmp_path: Path) -> None:
    with SyncMemory.open(tmp_path) as memory:
        memory.remember("Ask Maria before deploying.")
        assert memory.remember("Ask  Maria\nbefore deploying").action == "unchanged"
        assert memory.remember("Ask Maria before deploying", origin="typed").action == "confirmed"
        assert len(memory.list()) == 1


def test_another_memory_about_the_same_is_named(tmp_path: Path) -> None:
    with SyncMemory.open(tmp_path) as memory:
        first = memory.remember("Ask Maria before deploying.", origin="typed")
        (warning,) = memory.remember("Ask Maria after deploying.", origin="typed").warnings
        assert first.name in warning and "Both are kept" in warning and "Ask Maria before deploying" in warning


def test_a_text_of_an_agent_that_the_user_said_never_replaces_another_memory(tmp_path: Path) -> None:
    with SyncMemory.open(tmp_path) as memory:
        memory.remember("Server alpha listens on 8100.", origin="typed")
        said = ["Server bravo listens on 8101."]
        saved = memory.remember("Server bravo listens on 8101.", origin="model", said=said)
        assert saved.action == "added"
        assert bodies(memory) == ["Server alpha listens on 8100.", "Server bravo listens on 8101."]


TEAM = """---
name: Squash
description: Squash pull requests
type: feedback
---

Squash my pull requests into one commit.

**Why:** the history stays readable.
"""


@pytest.mark.parametrize("start", ["Do not squash", "Squash"])
def test_a_private_statement_never_changes_a_file_of_the_team(tmp_path: Path, start: str) -> None:
    text = f"{start} my pull requests into one commit."
    (tmp_path / "team").mkdir()
    file = tmp_path / "team" / "feedback_squash.md"
    file.write_text(TEAM)
    with SyncMemory.open(tmp_path) as memory:
        for number in range(6):
            memory.remember(f"The greenhouse number {number} is watered by Ivo.")
        saved = memory.remember(text, origin="typed", type="feedback")
        assert saved.action == "added" and not saved.name.startswith("team/") and saved.trust == "confirmed"
        assert file.read_text() == TEAM
        found = {one.name for one in memory.recall("shall I squash my pull requests?")}
        assert found == {saved.name, "team/feedback_squash.md"}
        is_against = text.startswith("Do not")
        assert ("team/feedback_squash.md" in memory.read(saved.name).statements[0].evidence) is is_against


def test_a_statement_in_another_case_has_a_trust_of_its_own(tmp_path: Path) -> None:
    with SyncMemory.open(tmp_path) as memory:
        typed = memory.remember("Delete branches with -d.", origin="typed")
        piped = memory.remember("Delete branches with -D.", origin="piped")
        assert (typed.trust, piped.trust) == ("confirmed", "inferred")
        assert memory.read(typed.name).trust == "confirmed"
