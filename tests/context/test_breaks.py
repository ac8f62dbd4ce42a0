"""Breaks of the cache, provoked in every way we know, over HTTP: each is named by its cause, at the bill's price."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reverie.context.cache_watch import CacheWatch
from reverie.events import Event, Notice
from reverie.layers.base import Break, BreakCause, EffectResult, Now, StageCommit
from reverie.models.base import Request, Response
from reverie.models.catalogue import Catalogue
from reverie.models.registry import model_access, open_model
from reverie.permissions.rules import Allow, Decision, ToolCall
from reverie.session import Session
from reverie.simulator.cache import PromptCache
from reverie.storage.transcript.records import CacheBreak, Clears, CompactBoundary, SessionHeader, from_record
from reverie.storage.transcript.view import View
from reverie.types import ImageBlock, Message, Origin, Purpose, TextBlock, Usage
from tests.sessions import in_session, of_kind, turn
from tests.simulated import ANTHROPIC, OPENAI, Served, files, past_session, served

SCRIPT = (
    'repeat forever\n  call Read {"file_path": "f{loop}.txt"}\n  ---\n  say Read {loop}.\nend\n\n[notes]\nsay Noted.\n'
)
FILE_CHARS = 16_000

Change = Callable[[Session, Served], Awaitable[None]]
unannounced = pytest.mark.breaks_prefix("the watch is shown a break that nobody announced")


@dataclass(frozen=True, slots=True)
class Found:
    notices: list[Notice]
    breaks: list[CacheBreak]
    server: Served

    def the_one(self) -> CacheBreak:
        """The only break; it was told in one line and priced as the server billed it."""
        (broken,), (notice,) = self.breaks, self.notices
        assert broken.announcement is None
        assert "\n" not in notice.text and f"{broken.lost_tokens:,} tokens" in notice.text
        assert f"${broken.cost:.4f}" in notice.text
        assert broken.predicted is (broken.cause != "server")
        (miss,) = [row.miss for row in self.server.rows if row.miss is not None]
        assert broken.lost_tokens == miss.lost_tokens
        assert broken.cost == pytest.approx(miss.cost)
        assert broken.equivalents == pytest.approx(miss.input_equivalents, abs=0.1)
        return broken


def provoke(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, *, rounds: int = 2, **options: Any
) -> Found:
    """Two turns, the change, two turns more; what the watch said."""
    files(tmp_path, 8, FILE_CHARS)
    monkeypatch.setenv("REVERIE_FLAG_SESSION_NOTES", "false")  # its forks would be on the bill as well
    events = list[Event]()

    async def work(session: Session) -> list[CacheBreak]:
        session.listen(events.append)
        for i in range(2):
            events.extend(await turn(session, f"before {i}"))
        await change(session, server)
        for i in range(rounds):
            events.extend(await turn(session, f"after {i}"))
        return breaks_of(session)

    with served(SCRIPT, monkeypatch) as server:
        found = in_session(work, cwd=tmp_path, clock=server.now, **{"model": ANTHROPIC, **options})
    return Found([n for n in of_kind(events, Notice) if n.source == "cache"], found, server)


def breaks_of(session: Session) -> list[CacheBreak]:
    found = [from_record(record) for record in session.log.records]
    return [one for one in found if isinstance(one, CacheBreak)]


def header(session: Session, **fields: Any) -> None:
    """A new header out of the blue, as a careless change of the code would make it."""
    now = session.view.header
    assert now is not None
    session.log.append(replace(now, **fields))


def given(session: Session) -> SessionHeader:
    found = session.view.header
    assert found is not None
    return found


@unannounced
def test_the_order_of_the_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        first, second, *rest = given(session).tools
        header(session, tools=(second, first, *rest))

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == "tools" and "order" in broken.detail and broken.path == "tools[0]"


@unannounced
def test_a_tool_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        tools = list(given(session).tools)
        tools[2] = {**tools[2], "description": "Does something else."}
        header(session, tools=tuple(tools))

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == "tools" and broken.path == "tools[2]"
    assert "changed" in broken.detail and "the tool " in broken.detail


@unannounced
@pytest.mark.parametrize("verb", ["added", "removed"])
def test_a_tool_more_or_less(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        tools = given(session).tools
        extra = {"name": "Weather", "description": "The weather.", "input_schema": {"type": "object"}}
        header(session, tools=(*tools, extra) if verb == "added" else tools[:-1])

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == "tools" and verb in broken.detail
    assert verb == "removed" or "Weather" in broken.detail


@unannounced
def test_a_date_in_the_system_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        *rest, place = given(session).system
        today = given(session).date
        assert today in place
        header(session, system=(*rest, place.replace(today, "1999-12-31")))

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == "system" and broken.path.startswith("system[") and "1999-12-31" in broken.detail


@unannounced
def test_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        other = "anthropic:claude-opus-5-5"
        session.parts.model = open_model(other, model_access(session.parts.settings), Catalogue.load())
        header(session, model=other)

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == "model" and broken.model == "claude-opus-5-5"
    assert "from claude-sonnet-5-5 to claude-opus-5-5" in broken.detail


@unannounced
@pytest.mark.parametrize(
    ("fields", "cause"),
    [({"effort": "high"}, "effort"), ({"thinking": {"type": "enabled", "budget_tokens": 2_000}}, "thinking")],
)
def test_effort_and_thinking(
    fields: dict[str, Any], cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def change(session: Session, _server: Served) -> None:
        header(session, **fields)

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == cause and broken.read > 0, "tools and system stay cached"


@unannounced
def test_beta_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        header(session, betas=("token-efficient-tools-2025-02-19",))

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == "betas" and "token-efficient-tools" in broken.detail


@unannounced
def test_an_edited_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        messages = session.view.messages()
        call = messages[1].tool_uses[0].id
        session.log.append(Clears("by hand", {call: "[cleared]"}))

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == "messages" and broken.path == "messages[2].content[0]"
    assert "the result" in broken.detail and "[cleared]" in broken.detail


@pytest.mark.parametrize(("ttl", "idle", "told"), [("5m", 301, "5 min passed"), ("1h", 3_700, "1 h 1 min passed")])
def test_too_much_time(ttl: str, idle: float, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(_session: Session, server: Served) -> None:
        server.advance(idle)

    if ttl == "1h":
        past_session(tmp_path, gap_s=1_200)
    found = provoke(tmp_path, monkeypatch, change)
    broken = found.the_one()
    assert broken.cause == "expired" and told in broken.detail and broken.read == 0
    assert found.notices[0].level == "info"


def test_an_hour_is_long_enough_for_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(_session: Session, server: Served) -> None:
        server.advance(1_800)

    past_session(tmp_path, gap_s=1_200)
    found = provoke(tmp_path, monkeypatch, change)
    assert found.breaks == [] and all(row.miss is None for row in found.server.rows)


def test_the_server_dropped_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(_session: Session, server: Served) -> None:
        server.simulator.meter.cache = PromptCache()

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == "server" and "server" in broken.detail


def test_the_first_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
        image = ImageBlock(source, Origin.TYPED)
        session.log.append_message(Message("user", (image, TextBlock("look", Origin.TYPED))))

    broken = provoke(tmp_path, monkeypatch, change).the_one()
    assert broken.cause == "images" and "first image" in broken.detail


def test_a_fork_that_misses_its_parents_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def anything(_call: ToolCall) -> Decision:
        return Allow()

    async def change(session: Session, server: Served) -> None:
        server.advance(400)
        await session.fork("Note it.", purpose=Purpose.NOTES, permission=anything, max_rounds=1)

    found = provoke(tmp_path, monkeypatch, change)
    assert [(one.purpose, one.cause) for one in found.breaks] == [("notes", "expired")]
    assert "by notes-" in found.notices[0].text


def test_coming_back_after_an_hour_is_explained_by_the_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path, 8, FILE_CHARS)
    with served(SCRIPT, monkeypatch) as server:
        in_session(lambda s: turn(s, "before"), cwd=tmp_path, model=ANTHROPIC, clock=server.now)
        server.advance(3_600)
        events = in_session(lambda s: turn(s, "after"), cwd=tmp_path, resume="last", clock=server.now)
    (notice,) = [n for n in of_kind(events, Notice) if n.source == "cache"]
    assert "1 h 0 min passed" in notice.text


def test_no_break_is_told_while_the_watch_is_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(_session: Session, server: Served) -> None:
        server.advance(1_000)

    monkeypatch.setenv("REVERIE_FLAG_CACHE_WATCH", "0")
    found = provoke(tmp_path, monkeypatch, change)
    assert found.notices == [] and found.breaks == []


# -- what was announced ---------------------------------------------------------------------------------------------


class Clearing:
    """A layer that clears the first result once, and says so."""

    flag = "compaction.auto"

    def __init__(self) -> None:
        self.due = False

    def plan(self, view: View, now: Now) -> list[Any] | None:
        return [] if self.due else None

    def commit(self, view: View, now: Now, results: list[EffectResult]) -> StageCommit:
        self.due = False
        call = view.messages()[1].tool_uses[0].id
        return StageCommit(
            (Clears("time", {call: "[cleared]"}),), breaks=Break(BreakCause.CLEARED, "old results were cleared")
        )


def test_what_a_layer_announced_is_counted_and_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        layer = Clearing()
        layer.due = True
        session.conversation.pipeline.stages = {**session.conversation.pipeline.stages, "microcompact": layer}

    found = provoke(tmp_path, monkeypatch, change)
    (broken,) = found.breaks
    assert found.notices == []
    assert broken.announcement == "old results were cleared" and broken.cause == "messages"


def test_a_compaction_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, _server: Served) -> None:
        log = session.log
        log.append(CompactBoundary("manual", 20_000, log.head))
        log.append_message(Message("user", (TextBlock("Summary. " * 2_000, Origin.SUMMARY),)), isCompactSummary=True)
        session.conversation.announce(BreakCause.COMPACTED, "the conversation was compacted")

    found = provoke(tmp_path, monkeypatch, change)
    assert found.notices == []
    assert [one.announcement for one in found.breaks] in ([], ["the conversation was compacted"])


def test_another_model_on_resume_is_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path, 8, FILE_CHARS)
    with served(SCRIPT, monkeypatch) as server:
        in_session(lambda s: turn(s, "before"), cwd=tmp_path, model=ANTHROPIC, clock=server.now)
        other = "anthropic:claude-opus-5-5"
        events = in_session(lambda s: turn(s, "x"), cwd=tmp_path, model=other, resume="last", clock=server.now)
    assert [n for n in of_kind(events, Notice) if n.source == "cache"] == []


def test_an_announcement_outlives_the_request_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(session: Session, server: Served) -> None:
        layer = Clearing()
        layer.due = True
        session.conversation.pipeline.stages = {**session.conversation.pipeline.stages, "microcompact": layer}
        server.simulator.fail_next(400)
        await turn(session, "this one is refused")

    found = provoke(tmp_path, monkeypatch, change)
    assert found.notices == []
    assert [one.announcement for one in found.breaks] == ["old results were cleared"]


# -- servers that cache by themselves -------------------------------------------------------------------------------


@unannounced
def test_without_markers_breaks_are_found_by_what_was_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def change(session: Session, server: Served) -> None:
        server.advance(700)
        await turn(session, "after a pause")
        header(session, tools=given(session).tools[1:])

    found = provoke(tmp_path, monkeypatch, change, model=OPENAI)
    assert [one.cause for one in found.breaks] == ["expired", "tools"]
    assert "5 to 10 min" in found.breaks[0].detail and "removed" in found.breaks[1].detail
    billed = [row.miss for row in found.server.rows if row.miss is not None]
    for broken, miss in zip(found.breaks, billed, strict=True):
        assert broken.lost_tokens == miss.lost_tokens and broken.cost == pytest.approx(miss.cost)


def test_the_watch_follows_what_is_new() -> None:
    """A long conversation costs a glance a message: nothing of what two requests share is rendered or compared."""
    watch = CacheWatch(Catalogue.load(), window=200_000)
    old = tuple(Message("user" if i % 2 == 0 else "assistant", (_Loud(f"m{i}"),)) for i in range(1_000))  # type: ignore[arg-type]
    new = (*old, Message("assistant", (TextBlock("hm"),)), Message("user", (TextBlock("go on"),)))
    before, after = (Request(ANTHROPIC, ("s",), (), messages, 10) for messages in (old, new))
    now = datetime(2026, 5, 1, tzinfo=UTC)
    read = Response("m", "claude-sonnet-5-5", (), "end_turn", Usage(0, 1, 50_000))
    assert watch.finished(before, read, now) is None
    assert watch.predict(after, now).causes == ()
    assert watch.finished(after, read, now) is None


class _Loud:
    """A block that does not want to be looked at."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        raise AssertionError(f"{self.name} was compared")

    __hash__ = None  # type: ignore[assignment]

    def wire(self) -> object:
        raise AssertionError(f"{self.name} was rendered")
