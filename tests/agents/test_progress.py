"""What a running agent is at: which answers count, and that they reach whoever watches."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.agents.progress import Steps, check_answer, question, steps_of
from reverie.events import TaskChanged
from reverie.session import Session
from reverie.types import Message, Origin, TextBlock, ToolUseBlock
from tests.agents.talk import requests
from tests.sessions import in_session, of_kind, script, turn

MESSAGES = (
    Message("user", (TextBlock("Fix the dates.", Origin.AGENT),)),
    Message(
        "assistant",
        (
            TextBlock("I look at the parser.", Origin.MODEL),
            ToolUseBlock(
                "t1", "Edit", {"file_path": "/src/dates.py", "old_string": "def parse_date(", "new_string": "x"}
            ),
            ToolUseBlock("t2", "Bash", {"command": "pytest -q tests/test_dates.py"}),
        ),
    ),
)
STEPS = steps_of(MESSAGES)


@pytest.mark.parametrize(
    "answer",
    [
        "Fixing parse_date in dates.py",
        "Running pytest on test_dates.py",
        "editing /src/dates.py now",
        '"Fixing parse_date in dates.py."',
        "Testing dates.py with pytest",
    ],
)
def test_answers_that_count(answer: str) -> None:
    assert check_answer(answer, STEPS) is not None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("Fixed parse_date in dates.py", "past"),
        ("Having fixed parse_date today", "past"),
        ("Wrote tests for dates.py", "past"),
        ("Working on the task", "vague"),
        ("Fixing the code now", "vague"),
        ("Reviewing several changed files", "vague"),
        ("Fixing frobnicate in other.py", "nothing it touched"),
        ("Fixing dates.py", "two words"),
        ("Fixing the parse_date function in dates.py", "six words"),
        ("Nothing to say about dates.py", "no verb"),
        ("Fixing parse_date\nin dates.py", "two lines"),
        ("", "nothing"),
    ],
)
def test_answers_that_are_dropped(answer: str, why: str) -> None:
    assert check_answer(answer, STEPS) is None, why


@given(st.text(max_size=200))
def test_whatever_is_answered_is_a_short_line_or_nothing(answer: str) -> None:
    said = check_answer(answer, STEPS)
    assert said is None or (3 <= len(said.split()) <= 5 and "\n" not in said)


def test_the_question_shows_what_was_done_and_no_results() -> None:
    asked = question(STEPS).text
    assert "dates.py" in asked and "I look at the parser." in asked and "Fix the dates." not in asked
    assert steps_of(()) == Steps("", frozenset())


PLAY = """
call Agent {"description": "read", "prompt": "Read it.", "subagent_type": "general"}
---
say Done.

[agent]
call Read {"file_path": "notes.txt"}
---
call Bash {"command": "sleep 0.6"}
---
say Read.

[progress]
say Reading the file notes.txt
"""


def test_a_running_agent_is_looked_at_and_what_it_is_at_is_told(tmp_path: Path, prefix_watch: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        said = [event.progress for event in of_kind(events, TaskChanged)]
        assert "Reading the file notes.txt" in said
        assert "progress" in [one.purpose for one in session.view.fork_usage], "and is booked"

    overrides = {"agents.progress_s": 0.1, "permissions.mode": "accept_all"}
    in_session(work, cwd=tmp_path, model=script(tmp_path, PLAY), overrides=overrides)
    assert not requests(prefix_watch, thread="progress")


def test_a_vague_answer_leaves_the_last_call(tmp_path: Path) -> None:
    play = PLAY.replace("Reading the file notes.txt", "Working on the task")

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        said = {event.progress for event in of_kind(events, TaskChanged)}
        assert said == {"", "Read notes.txt", "Bash sleep 0.6"}

    overrides = {"agents.progress_s": 0.1, "permissions.mode": "accept_all"}
    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides=overrides)


def test_where_background_work_is_kept_from_the_model_the_embedded_one_says_it(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        said = {event.progress for event in of_kind(events, TaskChanged)}
        assert "Running the command sleep 0.6" in said
        asked = [one.model for one in session.view.fork_usage if one.purpose == "progress"]
        assert set(asked) == {"embedded"}

    overrides = {"agents.progress_s": 0.1, "permissions.mode": "accept_all", "background.mind": "embedded"}
    in_session(work, cwd=tmp_path, model=script(tmp_path, PLAY), overrides=overrides)


def test_switched_off_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_FLAG_PROGRESS_SUMMARY", "0")

    async def work(session: Session) -> None:
        await turn(session, "go")
        assert {one.purpose for one in session.view.fork_usage} == {"agent"}

    overrides = {"agents.progress_s": 0.05, "permissions.mode": "accept_all"}
    in_session(work, cwd=tmp_path, model=script(tmp_path, PLAY), overrides=overrides)


def test_the_line_is_not_overwritten_by_the_next_call(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    slow = 'call Bash {"command": "sleep 0.6"}'
    play = PLAY.replace(slow, f'{slow}\n---\ncall Glob {{"pattern": "*"}}')

    async def work(session: Session) -> None:
        said = [event.progress for event in of_kind(await turn(session, "go"), TaskChanged)]
        found = said.index("Reading the file notes.txt")
        assert set(said[found:]) <= {"Reading the file notes.txt", ""}, said

    overrides = {"agents.progress_s": 0.1, "permissions.mode": "accept_all"}
    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides=overrides)
