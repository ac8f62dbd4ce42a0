"""What a dream is told: what the user typed in other sessions, and when each statement was written."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from reverie.layers.l6_dreaming.dreamer import MOST_CHARACTERS, narrow, search_patterns
from reverie.layers.l6_dreaming.sources import FILE, TypedMessage, days_written, list_typed
from reverie.memory.changes import Mark, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.marks import Marks
from reverie.memory.gate.write_gate import WriteGate
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import TopicFile
from reverie.models.request_log import read_log
from reverie.offline.consolidate.brief import read_typed
from reverie.paths import Places
from reverie.runtime.tasks import TaskState
from reverie.settings import load_settings
from tests.layers.dreams import House, dream, house

HEAD = "---\nname: {0}\ndescription: {0}\ntype: project\n---\n\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("REVERIE_MEMORY_PATH", str(tmp_path / "memory"))
    return house(tmp_path)


def session(place: House, name: str, said: list[object], at: str = "2026-03-05T10:30:00Z") -> Path:
    folder = Places.of(place.work, load_settings(place.work)).project
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    records = [
        {
            "type": "user",
            "uuid": f"{name}-{number}",
            "timestamp": at,
            "sessionId": name,
            "message": {"role": "user", "content": content},
        }
        for number, content in enumerate(said)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def told(log: Path) -> str:
    """The directive, as it was sent."""
    asked = next(one for one in read_log(log) if one.purpose == "dream")
    part = next(part for part in asked.parts if "It asks you to dream" in part)
    return "\n".join(re.findall(r'"text": ?"((?:[^"\\]|\\.)*)"', part)).replace("\\n", "\n").replace('\\"', '"')


def test_the_dream_sees_what_was_typed_and_nothing_else(place: House, prefix_watch: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "the oven is broken, says the page"}
    session(place, "0a1b2c3d-rest", ["We bake rye only on Fridays now.\nIt sells better.", [result]])
    night = dream(place, "say nothing to do\n")
    assert night.info.state is TaskState.COMPLETED
    text = told(prefix_watch)
    day = datetime(2026, 3, 5, 10, 30, tzinfo=UTC).astimezone()
    assert f"- {day:%A, %Y-%m-%d %H:%M}, session 0a1b2c3d: We bake rye only on Fridays now.\n  It sells better." in text
    assert "the oven is broken" not in text
    assert f"Today is {datetime.now().astimezone():%A, %Y-%m-%d}" in text


def test_older_messages_are_in_a_file_of_the_copy_that_can_be_searched(place: House, prefix_watch: Path) -> None:
    said: list[object] = [f"Loaf number {number} needs more salt. " + "Really. " * 100 for number in range(60)]
    session(place, "0a1b2c3d", said)
    path = place.memory / FILE
    mind = (
        f"call Grep {json.dumps({'pattern': 'number 3 ', 'path': str(path), 'output_mode': 'content'})}\n---\nsay ok\n"
    )
    night = dream(place, mind)
    assert night.info.state is TaskState.COMPLETED
    assert "Loaf number 59" in told(prefix_watch) and "Loaf number 3 " not in told(prefix_watch)
    last = [one for one in read_log(prefix_watch) if one.purpose == "dream"][-1]
    assert any("Loaf number 3 needs more salt" in part for part in last.parts)
    assert not path.exists(), "only the copy has it"


def test_the_offline_mind_reads_the_same_list() -> None:
    messages = [
        TypedMessage("s1", "2026-03-05T12:00:00Z", "one\n\n- two\n</said>"),
        TypedMessage("s2", "2026-03-06T12:00:00Z", "three"),
    ]
    listed, rest = list_typed(messages, "/m/typed.txt")
    assert not rest and listed.count("</said>") == 1
    found = read_typed(listed)
    assert [one.text for one in found] == ["one\n\n- two\n< /said>", "three"]
    assert [one.day for one in found] == [date(2026, 3, 5), date(2026, 3, 6)]


def test_the_day_of_a_statement_is_the_day_it_was_said_whatever_is_edited_later(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    directory = MemoryDirectory.open(root, gate=WriteGate(root))
    user = WriteInfo(Writer.USER, "test")
    body = "The demo is next Monday.\n\nThe room is booked until tomorrow.\n\nThe host is atlas.\n"
    directory.create("project_demo.md", TopicFile.parse(HEAD.format("Demo") + body), user)
    Marks(root).add({"The demo is next Monday.": Mark(Trust.CONFIRMED, "typed", at="2026-02-05T12:00:00Z")})
    past = datetime(2026, 2, 9, 12, tzinfo=UTC).timestamp()
    os.utime(root / "project_demo.md", (past, past))
    assert days_written(directory, ["project_demo.md", "gone.md"]) == {
        "project_demo.md": {
            "The demo is next Monday.": date(2026, 2, 5),
            "The room is booked until tomorrow.": date(2026, 2, 9),
        }
    }


def test_a_search_in_transcripts_shows_the_text_around_the_match() -> None:
    line = f"/home/me/one.jsonl:12:{'x' * 50_000} the oven needs a fuse {'y' * 50_000}"
    shown = narrow("\n".join([line] * 50), "needs a (fuse|bulb)")
    assert shown.count("the oven needs a fuse") == 50
    assert shown.startswith("/home/me/one.jsonl: …") and len(shown) < 2 * MOST_CHARACTERS


@pytest.mark.parametrize("where", ["", "/home/me/one.jsonl:"])
@pytest.mark.parametrize("pattern", ["Fuse", "needs a [Ff]use", "(bulb|fuse)", "n.*a fuse"])
def test_one_long_line_shows_the_text_around_the_match(where: str, pattern: str) -> None:
    line = f"{where}{'x' * 19_000} the oven needs a fuse {'y' * 4_000}"
    shown = narrow(line, pattern)
    assert "the oven needs a fuse" in shown and where.rstrip(":") in shown and len(shown) <= MOST_CHARACTERS + 100


@pytest.mark.parametrize(
    ("command", "patterns"),
    [
        ("grep -h fuse a.jsonl", ["fuse"]),
        ("grep -hi -A 3 -e fuse -e bulb a.jsonl | tail -n 5", ["fuse", "bulb"]),
        ("cat a.jsonl | grep 'a fuse' | grep -v bulb", ["a fuse", "bulb"]),
        ("tail -n 5 a.jsonl", []),
    ],
)
def test_the_patterns_of_a_command_are_known(command: str, patterns: list[str]) -> None:
    assert search_patterns(command) == patterns
