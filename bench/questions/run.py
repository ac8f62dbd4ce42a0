"""Asks a model questions about recorded sessions, on what a compaction left of them with each cadence of the notes.

A second request grades the answers by the points that a full answer makes. It sees the answers of all cadences in a
shuffled order and does not know which is which.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import click

from bench.questions.answers import Answers
from bench.questions.contexts import CADENCES, Cadence, CompactedContext, compact_recorded
from bench.scratch import (
    FOLDER,
    count_option,
    file_argument,
    jobs_option,
    model_option,
    open_named_model,
    read_json_lines,
)
from reverie.errors import UserError
from reverie.lab.measurement import Column, Result, Table, measurement, named, paths_argument
from reverie.lab.recordings import find_recordings
from reverie.lab.replay.recorded import RecordedSession, load_session
from reverie.models.base import Model, Request
from reverie.models.sending import RetryPolicy
from reverie.parsing import load_json
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.settings import load_settings
from reverie.types import JsonObject, Message, Origin, Purpose, TextBlock

Step = Literal["contexts", "answers", "grades"]
_PACKAGE = "bench.questions"
_KINDS = ("notes", "compaction", "answer")
_BATCH = 10
_SEED = 20
_ANSWER_TOKENS, _GRADE_TOKENS = 1_000, 2_000
_OBJECT = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `session` is the name of a recording, or how it starts; `points` make a full answer."""

    session: str
    question: str
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """One answer. `points`: from 0 to 1; None if it was not graded."""

    question: Question
    cadence: Cadence
    answer: str
    points: float | None = None


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """What is measured: the window, after how many compactions, for which cadences, and up to which step."""

    window: int
    compactions: int
    cadences: tuple[Cadence, ...]
    until: Step = "grades"


@dataclass(frozen=True, slots=True)
class MeasuredQuestions:
    contexts: tuple[CompactedContext, ...]
    answered: tuple[AnsweredQuestion, ...]
    asked: Answers


@measurement(
    "reverie lab questions evals/questions.jsonl ~/.claude/projects --answers answers --model claude-sonnet-5-5"
)
@file_argument
@paths_argument
@click.option(
    "--answers",
    "folder",
    metavar="DIR",
    required=True,
    type=FOLDER,
    help="Keep every answer of the model here. A second run sends only what is missing.",
)
@model_option("The model for all requests")
@count_option("--window", 40_000, 8_000, "Window in tokens.")
@count_option("--compactions", 1, 1, "Ask after this many compactions.")
@click.option(
    "--cadence",
    "cadences",
    multiple=True,
    type=click.Choice(CADENCES),
    help="Only this value of notes.cadence. Repeatable.",
)
@click.option(
    "--until",
    default="grades",
    show_default=True,
    type=click.Choice(["contexts", "answers", "grades"]),
    help="Stop after this step, for example to let others answer than those who wrote the notes.",
)
@jobs_option("Requests")
def questions(
    file: Path,
    paths: tuple[Path, ...],
    folder: Path,
    model: str | None,
    window: int,
    compactions: int,
    cadences: tuple[Cadence, ...],
    until: Step,
    jobs: int,
) -> Result:
    """Ask a model about decisions in recorded sessions, after a compaction.

    Compares the two values of notes.cadence. FILE has one question per line: its session (the name of a transcript, or
    how the name starts), the question, and the points that a full answer makes. PATH is a transcript, or a folder with
    the transcripts. Each session is replayed in a real session with a small window until it is compacted. The recording
    answers, and the model writes notes and summaries. Then the model gets each question together with the compacted
    conversation. At the end it grades the answers without knowing which cadence they belong to.
    """
    asked = read_questions(file)
    sessions = find_sessions(asked, paths)
    answers = open_answers(folder, model, jobs)
    plan = QuestionPlan(window, compactions, cadences or CADENCES, until)
    return report(asyncio.run(measure(asked, sessions, answers, plan)))


def read_questions(file: Path) -> list[Question]:
    """The questions in a file, one per line. UserError if there is none."""
    found = read_json_lines(file, _parse, "a question with its session and points")
    if not found:
        raise UserError(f"{file} has no questions.")
    return found


def _parse(raw: JsonObject) -> Question:
    points = tuple(str(point) for point in raw["points"])
    if not points:
        raise ValueError("it has no points")
    return Question(str(raw["session"]), str(raw["question"]), points)


def find_sessions(questions: Sequence[Question], paths: Sequence[Path]) -> dict[str, RecordedSession]:
    """The recording of each session that a question names."""
    files = find_recordings(paths)
    found = dict[str, RecordedSession]()
    for name in dict.fromkeys(one.session for one in questions):
        fitting = [path for path in files if path.stem.startswith(name)]
        if len(fitting) != 1:
            many = "several recordings start" if fitting else "no recording starts"
            raise UserError(f"A question is about the session {name}, but {many} with this name.")
        found[name] = load_session(fitting[0])
    return found


def open_answers(folder: Path, model: str | Model | None, jobs: int = 1) -> Answers:
    """The answers of a model in a folder; None: the model of the settings."""
    settings = load_settings(Path.cwd())
    if model is None or isinstance(model, str):
        model, settings = open_named_model(model)
    folder.mkdir(parents=True, exist_ok=True)
    return Answers(folder, model, RetryPolicy.of(settings), jobs)


async def measure(
    questions: Sequence[Question], sessions: dict[str, RecordedSession], answers: Answers, plan: QuestionPlan
) -> MeasuredQuestions:
    """Compacts every session with every cadence, asks every question about it, and grades the answers."""
    try:
        pairs: list[tuple[str, Cadence]] = [(name, cadence) for name in sessions for cadence in plan.cadences]
        made = await asyncio.gather(*(_compact(sessions[name], name, to, answers, plan) for name, to in pairs))
        contexts = dict(zip(pairs, made, strict=True))
        answered = list[AnsweredQuestion]()
        if plan.until != "contexts":
            wanted = [(one, contexts[one.session, cadence]) for one in questions for cadence in plan.cadences]
            answered = await asyncio.gather(*(_answer(one, context, answers) for one, context in wanted))
        if plan.until == "grades":
            answered = await _grade(answered, answers)
        return MeasuredQuestions(tuple(made), tuple(answered), answers)
    finally:
        await answers.model.close()


async def _compact(
    recorded: RecordedSession, name: str, cadence: Cadence, answers: Answers, plan: QuestionPlan
) -> CompactedContext:
    folder = (answers.folder / "sessions" / f"{name}-{plan.window}-{cadence[0]}").resolve()
    return await compact_recorded(
        recorded, cadence, answers, folder=folder, window=plan.window, compactions=plan.compactions
    )


async def _answer(question: Question, context: CompactedContext, answers: Answers) -> AnsweredQuestion:
    prompt = render(_PACKAGE, "answer.md", {"context": context.text, "question": question.question})
    text = await _ask(answers, prompt, _ANSWER_TOKENS, "answer", context.cadence)
    return AnsweredQuestion(question, context.cadence, text)


async def _grade(answered: Sequence[AnsweredQuestion], answers: Answers) -> list[AnsweredQuestion]:
    """Grades in small groups, in an order that says nothing about the cadence."""
    order = random.Random(_SEED).sample(answered, len(answered))
    groups = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
    graded = await asyncio.gather(*(_grade_group(group, answers) for group in groups))
    points = {(one.question, one.cadence): one for group in graded for one in group}
    return [points[one.question, one.cadence] for one in answered]


async def _grade_group(group: Sequence[AnsweredQuestion], answers: Answers) -> list[AnsweredQuestion]:
    items = [
        f"## Answer {number}\n\nQuestion: {one.question.question}\n\nPoints:\n"
        + "\n".join(f"- {point}" for point in one.question.points)
        + f"\n\nThe answer:\n{one.answer}"
        for number, one in enumerate(group, 1)
    ]
    prompt = render(_PACKAGE, "grade.md", {"items": "\n\n".join(items), "last": str(len(group))})
    counts = _read_counts(await _ask(answers, prompt, _GRADE_TOKENS, "grade"), len(group))
    return [
        replace(one, points=min(1.0, max(0.0, count / len(one.question.points))))
        for one, count in zip(group, counts, strict=True)
    ]


def _read_counts(text: str, many: int) -> list[float]:
    """The counts of a group. UserError if one of them is missing."""
    try:
        found = load_json(_OBJECT.findall(text)[-1])
        return [float(found[str(number)]) for number in range(1, many + 1)]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UserError(f"The model gave no count for each of {many} answers, but: {text[:200]!r}") from error


async def _ask(answers: Answers, prompt: str, most: int, kind: str, cadence: str = "") -> str:
    message = Message("user", (TextBlock(prompt, Origin.CODE),))
    request = Request("", (), (), (message,), most, purpose=Purpose.SIDE_QUESTION)
    response = await answers.ask(request, kind, cadence)
    return Message("assistant", response.content).text.strip()


def report(found: MeasuredQuestions) -> Result:
    """The figures of each cadence, and every question that lost points with one of them."""
    names: dict[Cadence, None] = dict.fromkeys(one.cadence for one in found.contexts)
    cadences = {cadence: _figures(found, cadence) for cadence in names}
    questions: list[dict[str, Any]] = [
        {
            "session": one.question.session,
            "question": one.question.question,
            "cadence": one.cadence,
            "answer": one.answer,
            "points": one.points,
        }
        for one in found.answered
    ]
    figures = {
        "cadences": cadences,
        "grades": _sizes(found, "grade", ""),
        "sent": found.asked.sent,
        "contexts": [{**asdict(one), "text": None, "tokens": one.tokens} for one in found.contexts],
        "questions": questions,
    }
    lost = [one for one in questions if one["points"] is not None and one["points"] < 1]
    requests = [
        Column(f"requests.{kind}.{what}", f"{kind} {what}") for kind in _KINDS for what in ("requests", "tokens")
    ]
    tables = [Table(named(cadences, "cadence"), ("cadence", "points", "context_tokens", *requests))]
    tables += [Table(lost, ("cadence", "session", "points", "question"))] if lost else []
    return Result(figures, tables)


def _figures(found: MeasuredQuestions, cadence: Cadence) -> dict[str, Any]:
    points = [one.points for one in found.answered if one.cadence == cadence and one.points is not None]
    contexts = [one.tokens for one in found.contexts if one.cadence == cadence]
    return {
        "points": 100 * fmean(points) if points else None,
        "questions": len(points),
        "context_tokens": round(fmean(contexts)),
        "requests": {kind: _sizes(found, kind, cadence) for kind in _KINDS},
    }


def _sizes(found: MeasuredQuestions, kind: str, cadence: str) -> dict[str, int]:
    tokens = [one.tokens for one in found.asked.asked if (one.kind, one.cadence) == (kind, cadence)]
    return {"requests": len(tokens), "tokens": sum(tokens), "largest": max(tokens, default=0)}
