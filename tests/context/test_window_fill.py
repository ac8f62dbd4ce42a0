"""What fills the window: the parts add up to the count, and everything is booked to its source."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reverie.context.window_fill import NOT_RECORDED, SOURCES, WindowFill, fill
from reverie.models.window import thresholds
from reverie.session import Session
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import View
from reverie.types import Block, ImageBlock, Message, Origin, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from tests.sessions import in_session, script, turn

LIMITS = thresholds(200_000, 32_000)
IMAGE = {"type": "base64", "media_type": "image/png", "data": "aGk="}


def log_with(*messages: Message, reminder: str = "") -> SessionLog:
    log = SessionLog(None, "s", cwd=Path("/w"), version="1")
    log.append(SessionHeader("anthropic:claude-sonnet-5-5", ("Be good. " * 50,), ({"name": "Read"},), reminder))
    for message in messages:
        log.append_message(message)
    return log


def sources(log: SessionLog) -> dict[str, int]:
    return {f"{s.source} {s.tool}".strip(): s.blocks for s in fill(log.view, LIMITS).shares}


def test_everything_is_booked_to_its_source() -> None:
    def text(origin: Origin) -> TextBlock:
        return TextBlock(f"text of {origin} " * 20, origin)

    said: tuple[Block, ...] = (ThinkingBlock("hm", "s"), text(Origin.MODEL), ToolUseBlock("t1", "Grep", {"p": 1}))
    log = log_with(
        Message("user", (text(Origin.SUMMARY), text(Origin.TYPED), text(Origin.PIPED), ImageBlock(IMAGE))),
        Message("assistant", (*said, ToolUseBlock("t2", "Read", {}))),
        Message("user", (ToolResultBlock("t1", "found"), ToolResultBlock("t2", "read"))),
        Message("user", tuple(text(o) for o in (Origin.TOOL, Origin.RECALLED, Origin.HOOK, Origin.CODE, Origin.AGENT))),
        reminder="the instructions " * 10,
    )
    assert sources(log) == {
        "system": 1,
        "tools": 1,
        "instructions": 1,
        "summary": 1,
        "user": 1,
        "material": 1,
        "assistant": 1,
        "thinking": 1,
        "tool_calls": 2,
        "tool_results Grep": 1,
        "tool_results Read": 1,
        "images": 1,
        "restored": 1,
        "recalled": 1,
        "injected": 2,
        "agents": 1,
    }
    assert [name for name in SOURCES if name != NOT_RECORDED] == list(
        dict.fromkeys(name.split()[0] for name in sources(log))
    )


@given(st.lists(st.tuples(st.sampled_from(list(Origin)), st.text(min_size=1, max_size=500)), max_size=8))
def test_the_parts_add_up_to_the_window(said: list[tuple[Origin, str]]) -> None:
    log = log_with(*(Message("user", (TextBlock(text, origin),)) for origin, text in said))
    found = fill(log.view, LIMITS)
    assert sum(share.tokens for share in found.shares) == found.used == log.view.meter.tokens
    assert found.used + found.free + found.buffer + found.reserve == found.window
    assert all(share.tokens >= 0 for share in found.shares)
    assert WindowFill.from_json(found.to_json()) == found


def test_an_overfull_window_has_nothing_left() -> None:
    log = log_with(Message("user", (TextBlock("word " * 300_000, Origin.TYPED),)))
    found = fill(log.view, LIMITS)
    assert (found.free, found.buffer, found.reserve, found.percent_left) == (0, 0, 0, 0)


def test_an_empty_conversation_fills_nothing() -> None:
    found = fill(View(), LIMITS)
    assert found.used == 0 and found.shares == () and found.free + found.buffer + found.reserve == found.window


def test_a_session_and_its_transcript_give_the_same_answer(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n" * 1_900)
    model = script(tmp_path, 'think Hm.\ncall Read {"file_path": "a.txt"}\n---\nsay Done.\n')

    async def work(session: Session) -> tuple[WindowFill, Path]:
        await turn(session, "go")
        return fill(session.view, LIMITS), session.places.transcript(session.id)

    live, path = in_session(work, cwd=tmp_path, model=model)
    assert fill(View.of(conversation(read_records(path).records)), LIMITS) == live
    largest = max(live.shares, key=lambda share: share.tokens)
    assert (largest.source, largest.tool) == ("tool_results", "Read")
