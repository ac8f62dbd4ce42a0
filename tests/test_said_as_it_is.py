"""Sentences that say what is so: what a command can do, what was switched off, what was paid, how long an output is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reverie.cli.sessions.context import context_text
from reverie.cli.tool_lines import result_note
from reverie.context.cache_watch import CacheWatch
from reverie.context.day_book import Caps, DayBook, Spending
from reverie.layers.l2_microcompact.stage import ECONOMIC, TIME
from reverie.models.base import Request, Response
from reverie.models.catalogue import Catalogue
from reverie.session import Session
from reverie.tools.kept_output import KeptOutput
from reverie.types import Purpose, Usage
from tests.cli.conftest import Command
from tests.sessions import in_session


@pytest.fixture
def reverie(tmp_path: Path) -> Command:
    work = tmp_path / "work"
    work.mkdir()
    return Command(tmp_path / "home", work)


def test_a_dream_that_is_switched_off_is_not_offered(reverie: Command) -> None:
    assert "--now` dreams anyway" in reverie("dream").stdout
    reverie.extra["REVERIE_FLAG_DREAM"] = "0"
    assert "switched off" in (said := reverie("dream").stdout) and "--now" not in said


def test_recall_that_is_switched_off_says_so(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")
    assert "Recall is off" not in reverie("recall", "which port does staging use?").stderr
    reverie.extra["REVERIE_FLAG_RECALL"] = "0"
    assert "nothing is added" in reverie("recall", "which port does staging use?").stderr


def test_amounts_below_a_cent_are_not_zero(tmp_path: Path) -> None:
    book = DayBook(tmp_path)

    class Today(DayBook):
        def today(self) -> Spending:
            return Spending(tokens=10, dollars=0.0042)

    why = Caps(Today(tmp_path), tokens_per_day=lambda: 0, dollars_per_day=lambda: 0.004).may_spend(Purpose.DREAM)
    assert book.today().dollars == 0 and why is not None and "$0.0042 of the $0.004 " in why


def test_an_output_that_is_cut_says_how_many_lines_it_has(tmp_path: Path) -> None:
    kept = KeptOutput(tmp_path, 10_000, lambda _line: None)
    for _ in range(100):
        kept.add(b"line\n" * 1_000)
    kept.close()
    assert result_note(kept.text(), False) == "100,000 lines"


def test_the_window_of_a_new_session_names_its_model(tmp_path: Path) -> None:
    async def look(session: Session) -> str:
        return context_text(session)

    assert "embedded" in in_session(look, cwd=tmp_path, model="embedded")


def test_what_clears_nothing_says_which_way_is_off(tmp_path: Path) -> None:
    async def look(session: Session) -> list[str]:
        stage: Any = session.conversation.pipeline.stages["microcompact"]
        said = list[str]()
        for off in ((), (TIME,), (TIME, ECONOMIC)):
            stage.is_on = lambda flag, off=off: flag not in off
            said.append(stage.why_not(None))
        return said

    every, one, none = in_session(look, cwd=tmp_path, model="embedded")
    assert every == "no clearing pays now" and TIME in one and "no other" in one
    assert TIME in none and ECONOMIC in none and "pays" not in none


def test_another_model_after_a_resume_is_the_cause_and_not_the_server() -> None:
    at = datetime(2026, 3, 2, 9, tzinfo=UTC)
    for model, kind in (("claude-opus-4-1", "model"), ("claude-sonnet-4-5", "server")):
        watch = CacheWatch(Catalogue.load(()), window=200_000)
        watch.resumed(Usage(input_tokens=10, cache_creation_input_tokens=50_000), at, "claude-sonnet-4-5-20250929")
        request = Request(model, (), (), (), 1_000)
        response = Response("m", model, (), "end_turn", Usage(input_tokens=50_000))
        found = watch.finished(request, response, at)
        assert found is not None and found.cause == kind, found
