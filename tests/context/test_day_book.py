"""The cap on background work: one book for all processes of a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reverie.context.day_book import BACKGROUND, Caps, DayBook
from reverie.context.ledger import LedgerEntry, make_entry
from reverie.events import Event, Notice
from reverie.models.catalogue import Catalogue
from reverie.models.prices import input_equivalents
from reverie.permissions.rules import Allow, Decision, ToolCall
from reverie.session import Session
from reverie.types import Purpose, Usage
from tests import warm
from tests.counts import count
from tests.sessions import in_session, turn
from tests.simulated import ANTHROPIC, served

CATALOGUE = Catalogue.load()
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def spent(tokens: int, purpose: Purpose = Purpose.NOTES) -> LedgerEntry:
    return make_entry(Usage(tokens), "claude-sonnet-5-5", CATALOGUE, purpose=purpose.value, at=NOON)


def caps(book: DayBook, tokens: float = 0, dollars: float = 0) -> Caps:
    return Caps(book, tokens_per_day=lambda: tokens, dollars_per_day=lambda: dollars)


def test_background_work_stops_at_its_cap_and_goes_on_the_next_day(tmp_path: Path) -> None:
    now = [NOON]
    book = DayBook(tmp_path, clock=lambda: now[0])
    asked = caps(book, tokens=1_000)
    book.add(spent(999))
    assert asked.may_spend(Purpose.NOTES) is None
    book.add(spent(1))
    assert "1,000 of the 1,000" in (asked.may_spend(Purpose.DREAM) or "")
    now[0] += timedelta(days=1)
    assert asked.may_spend(Purpose.DREAM) is None


def test_the_cap_in_currency(tmp_path: Path) -> None:
    book = DayBook(tmp_path, clock=lambda: NOON)
    book.add(spent(1_000_000))
    assert caps(book, dollars=2.5).may_spend(Purpose.NOTES) is None
    assert "$2.00 of the $2.00" in (caps(book, dollars=2.0).may_spend(Purpose.NOTES) or "")


def test_what_people_wait_for_is_neither_counted_nor_stopped(tmp_path: Path) -> None:
    book = DayBook(tmp_path, clock=lambda: NOON)
    asked = caps(book, tokens=10)
    for purpose in set(Purpose) - BACKGROUND:
        book.add(spent(1_000, purpose))
    assert book.today().tokens == 0
    book.add(spent(1_000))
    for purpose in Purpose:
        assert (asked.may_spend(purpose) is None) == (purpose not in BACKGROUND)
    assert caps(book).may_spend(Purpose.NOTES) is None, "0 is no cap"


WRITER = """
import sys
from pathlib import Path
from datetime import UTC, datetime
from reverie.context.day_book import DayBook
from reverie.context.ledger import make_entry
from reverie.models.catalogue import Catalogue
from reverie.types import Usage
book = DayBook(Path(sys.argv[1]), clock=lambda: datetime(2026, 5, 1, 12, tzinfo=UTC))
one = make_entry(Usage(10), "claude-sonnet-5-5", Catalogue.load(), purpose="notes")
for _ in range(int(sys.argv[2])):
    book.add(one)
"""


@pytest.mark.soak
def test_many_processes_share_one_book(tmp_path: Path) -> None:
    processes, lines = count(4, 16), count(200, 2_000)
    book = DayBook(tmp_path, clock=lambda: NOON)
    started = [warm.start(WRITER, str(tmp_path), str(lines), module="-c") for _ in range(processes)]
    seen = 0.0
    while any(process.poll() is None for process in started):
        now = book.today().tokens
        assert now >= seen and now % 10 == 0, "no line is ever read in part or twice"
        seen = now
    assert [process.wait() for process in started] == [0] * processes
    assert book.today().tokens == processes * lines * 10


def test_a_book_that_cannot_be_written_still_caps_its_own_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    book = DayBook(tmp_path / "file" / "ledger", clock=lambda: NOON)
    book.add(spent(50))
    assert book.today().tokens == 50
    assert caps(book, tokens=50).may_spend(Purpose.NOTES)


def test_old_books_are_thrown_away(tmp_path: Path) -> None:
    for name in ("2025-01-01.jsonl", "2026-04-30.jsonl", "notes.txt"):
        (tmp_path / name).write_text("")
    DayBook(tmp_path, clock=lambda: NOON).today()
    assert {path.name for path in tmp_path.iterdir()} == {"2026-04-30.jsonl", "notes.txt"}


def test_two_sessions_of_one_home_share_the_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[Event]()

    async def anything(_call: ToolCall) -> Decision:
        return Allow()

    async def first(session: Session) -> float:
        await turn(session, "go")
        result = await session.fork("Note.", purpose=Purpose.NOTES, permission=anything, max_rounds=1)
        return input_equivalents(result.usage, session.parts.facts)

    async def second(session: Session) -> tuple[str | None, str | None]:
        session.listen(told.append)
        reasons = session.accounts.may_spend(Purpose.NOTES), session.accounts.may_spend(Purpose.COMPACTION)
        session.accounts.may_spend(Purpose.NOTES)
        return reasons

    with served("say Fine.\n\n[notes]\nsay Noted.\n", monkeypatch):
        used = in_session(first, cwd=tmp_path, model=ANTHROPIC)
        overrides = {"budget.background_tokens_per_day": int(used)}
        reason, other = in_session(second, cwd=tmp_path, model=ANTHROPIC, overrides=overrides)
    assert "budget.background_tokens_per_day" in (reason or "") and other is None
    assert len([e for e in told if isinstance(e, Notice) and e.source == "budget"]) == 1, "told once"
