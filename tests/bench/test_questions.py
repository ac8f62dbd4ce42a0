"""Questions on compacted sessions: two tiny recordings, and a model that remembers only what its context says."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from bench.questions.contexts import CADENCES
from bench.questions.run import (
    MeasuredQuestions,
    QuestionPlan,
    find_sessions,
    measure,
    open_answers,
    read_questions,
    report,
)
from reverie.errors import UserError
from reverie.models.base import Capabilities, Finished, ModelEvent, Request, Response
from reverie.types import Block, Purpose, TextBlock, ToolUseBlock, Usage
from tests.bench.contract import check_keys

_ROUNDS = 12
_REASONS = {"aaaa1111": "the licence forbids violet", "bbbb2222": "the pumps rust in orange paint"}


class _Mind:
    """Writes the reason into the notes once it was said, answers with what it finds, and counts what it is told."""

    name = "scripted:mind"
    capabilities = Capabilities()

    def __init__(self, fails_at: int = 0) -> None:
        self.requests = list[Request]()
        self._fails_at = fails_at

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent]:
        self.requests.append(request)
        if len(self.requests) == self._fails_at:
            raise UserError("the line is dead")
        name = f"{len(self.requests)}"
        yield Finished(Response(name, self.name, tuple(self._say(request)), "end_turn", Usage(10, 10)))

    async def close(self) -> None:
        pass

    def _say(self, request: Request) -> list[Block]:
        asked = request.messages[-1].text
        seen = "\n".join(message.text for message in request.messages)
        reasons = [reason for reason in _REASONS.values() if reason in seen]
        if request.purpose is Purpose.NOTES:
            path = re.search(r"They are in the file (\S+)\. ", asked)
            hints = re.findall(r"^_.*_$", asked, re.MULTILINE)
            assert path is not None
            line = f"\n- Round {len(request.messages)}: {' '.join(reasons)}"
            edits = [{"file_path": path[1], "old_string": hint, "new_string": hint + line} for hint in hints[:2]]
            return [ToolUseBlock(f"toolu_{len(self.requests)}_{i}", "Edit", edit) for i, edit in enumerate(edits)]
        if "Grade the answers" in asked:
            said = re.findall(r"The answer:\n(.*)", asked)
            return [TextBlock(json.dumps({str(i): int(text != "not known") for i, text in enumerate(said, 1)}))]
        if "Question:" in asked:
            return [TextBlock(reasons[0] if reasons else "not known")]
        return [TextBlock(f"<summary>{' '.join(reasons)}</summary>")]


def _record(folder: Path, name: str, reason: str) -> None:
    """A session in which the model gives a reason early, and then talks until the window is full."""
    lines, before = list[str](), None
    for number in range(2 * _ROUNDS):
        role = "assistant" if number % 2 else "user"
        text = f"In part {number} we go on. " + (f"So we decide: {reason}. " if number == 3 else "")
        text += f"The keeper of lighthouse {number} writes down the wind and the ships. " * (60 if number % 2 else 1)
        message: dict[str, object] = {"role": role, "content": [{"type": "text", "text": text}]}
        if role == "assistant":
            message |= {"id": f"msg_{number}", "model": "claude-opus-4-5", "usage": {"input_tokens": 1}}
        uuid = f"{name}-0000-4000-8000-{number:012}"
        line = {"type": role, "uuid": uuid, "parentUuid": before, "message": message, "sessionId": name}
        lines.append(json.dumps({**line, "timestamp": f"2026-05-01T10:{number:02}:00Z"}))
        before = uuid
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    asked = list[str]()
    for name, reason in _REASONS.items():
        _record(folder, name, reason)
        asked.append(json.dumps({"session": name[:4], "question": "Why was that decided?", "points": [reason]}))
    (tmp_path / "questions.jsonl").write_text("\n".join(asked))
    return folder


def _run(recordings: Path, mind: _Mind, plan: QuestionPlan | None = None) -> MeasuredQuestions:
    questions = read_questions(recordings.parent / "questions.jsonl")
    answers = open_answers(recordings.parent / "answers", mind)
    plan = plan or QuestionPlan(16_000, 1, CADENCES)
    return asyncio.run(measure(questions, find_sessions(questions, [recordings]), answers, plan))


def test_every_cadence_is_compacted_asked_and_graded_and_a_second_run_sends_nothing(recordings: Path) -> None:
    mind = _Mind()
    found = _run(recordings, mind)
    figures = report(found).figures
    check_keys("questions", figures)
    assert list(figures["cadences"]) == ["reference", "economic"] and figures["grades"]["requests"] == 1
    for cadence, one in figures["cadences"].items():
        assert one["questions"] == 2 and one["requests"]["answer"]["requests"] == 2
        assert 0 < one["context_tokens"] < 16_000, cadence
    assert figures["cadences"]["reference"]["points"] == 100, "a model wrote the reason into the notes"
    notes = {name: one["requests"]["notes"]["requests"] for name, one in figures["cadences"].items()}
    assert notes["reference"] > notes["economic"]
    assert all(one["writer"] == "notes" for one in figures["contexts"])
    graded = next(one.messages[0].text for one in mind.requests if "Grade the answers" in one.messages[0].text)
    assert not any(cadence in graded for cadence in CADENCES)
    assert "reference" in "\n".join(report(found).lines())

    again = _Mind()
    assert report(_run(recordings, again)).figures == {**figures, "sent": 0}
    assert not again.requests


def test_a_run_that_failed_goes_on_where_it_was(recordings: Path) -> None:
    whole, broken = _Mind(), _Mind(fails_at=4)
    with pytest.raises(UserError, match="the line is dead"):
        _run(recordings, broken)
    answers = recordings.parent / "answers"
    kept = len(list(answers.glob("*.json")))
    assert kept >= 3
    _run(recordings, whole)
    answers.rename(recordings.parent / "old")
    other = _Mind()
    _run(recordings, other)
    assert len(whole.requests) == len(other.requests) - kept


def test_steps_and_cadences_can_be_run_apart(recordings: Path) -> None:
    first = _Mind()
    contexts = _run(recordings, first, QuestionPlan(16_000, 1, ("reference",), "contexts"))
    assert not contexts.answered and {request.purpose for request in first.requests} == {Purpose.NOTES}
    second = _Mind()
    answered = _run(recordings, second, QuestionPlan(16_000, 1, ("reference",), "answers"))
    assert len(second.requests) == 2 and [one.points for one in answered.answered] == [None, None]


def test_what_cannot_be_measured_is_named(recordings: Path) -> None:
    with pytest.raises(UserError, match=r"not compacted in a window of 200,000 tokens; lower --window"):
        _run(recordings, _Mind(), QuestionPlan(200_000, 1, CADENCES))
    bad = recordings.parent / "bad.jsonl"
    bad.write_text('{"session": "aaaa", "question": "Why?", "points": []}')
    with pytest.raises(UserError, match=r"bad\.jsonl:1: is not a question"):
        read_questions(bad)
    questions = read_questions(recordings.parent / "questions.jsonl")
    with pytest.raises(UserError, match="no recording starts with this name"):
        find_sessions(questions, [recordings / "aaaa1111.jsonl"])
