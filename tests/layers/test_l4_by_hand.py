"""What a person can do to the context: parts, undo, rewind, clear; and cancelling at every step of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reverie.errors import UserError
from reverie.events import Notice
from reverie.models.request_log import read_log
from reverie.session import Session
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import CompactBoundary, Fold, ForkUsage
from reverie.types import JsonObject
from tests.layers.talks import SESSION, boundaries, compaction_script, context, files, flags, payloads, said, sent
from tests.sessions import ended, in_session, of_kind, script, turn

TALK = 'repeat forever\n  call Read {"file_path": "f{turn}.txt"}\n  ---\n  say I have read file {turn}.\nend\n'


def wire(session: Session) -> list[JsonObject]:
    return [message.wire() for message in session.view.messages()]


def talk(tmp_path: Path, own_home: Path, more: str = "") -> str:
    flags(own_home, "session_notes = false\n" + more)
    files(tmp_path, 30, 3_000)
    return script(tmp_path, TALK + compaction_script())


async def turns(session: Session, count: int, first: int = 1) -> None:
    for number in range(first, first + count):
        assert ended(await turn(session, f"Question number {number}.")).reason == "answered"


def resumed(tmp_path: Path, model: str) -> list[JsonObject]:
    async def look(session: Session) -> list[JsonObject]:
        return wire(session)

    return in_session(look, cwd=tmp_path, model=model, resume=SESSION)


def test_from_a_message_what_is_earlier_stays_and_so_does_the_prefix(
    tmp_path: Path, own_home: Path, prefix_watch: Path
) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> None:
        await turns(session, 5)
        before, header = wire(session), session.view.header
        await session.compact(from_="-2")
        now = wire(session)
        assert now[:12] == before[:12], "three turns stay byte for byte"
        assert len(now) == 13 and "What follows replaces that part" in str(now[12])
        assert "Question number 4." in str(now[12]) and "Question number 3." not in str(now[12])
        assert session.view.header == header and boundaries(session)[0].extent == "from"
        await turns(session, 1, 6)

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    requests = [one for one in read_log(prefix_watch) if one.thread == "main"]
    last, before = requests[-1], requests[-3]
    shared = next(i for i, (a, b) in enumerate(zip(before.parts, last.parts, strict=False)) if a != b)
    assert shared > len(before.parts) // 2, "what is cached of the first turns is read again"
    (asked,) = sent(prefix_watch, "compaction")
    assert "Summarise only what comes after this point" in asked.parts[-1] and "Question number 4." in asked.parts[-1]


def test_from_twice_what_the_first_one_summarised_is_not_forgotten(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> None:
        await turns(session, 4)
        await session.compact(from_="-1")
        await session.compact(from_="-1")
        assert [one.extent for one in boundaries(session)] == ["from", "from"]
        for number in range(1, 5):
            assert f"Question number {number}." in context(session)
        assert "f4.txt" in context(session) and len(wire(session)) == 9, "two turns and one summary"

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_up_to_a_message_what_is_later_stays(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> None:
        await turns(session, 5)
        before = wire(session)
        uuid = session.user_messages()[2].uuid
        assert uuid is not None
        await session.compact(up_to=uuid[:13])
        now = wire(session)
        assert now[1:-1] == before[9:], "all after the third question, but for what was put behind it"
        assert now[-1]["content"][0]["text"].startswith(f"<tool-text>\n{tmp_path}"), (
            "restored files come after what was kept"
        )
        assert [f"Question number {n}." in str(now[0]) for n in range(1, 6)] == [True, True, True, False, False]
        await turns(session, 1, 6)

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    (asked,) = sent(prefix_watch, "compaction")
    assert "Question number 4." not in "".join(asked.parts)


def test_parts_that_make_no_sense_are_refused(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> None:
        await turns(session, 2)
        for given, match in (("nowhere", "no message in view"), ("-9", "2 messages of yours"), ("", "no message")):
            with pytest.raises(UserError, match=match):
                await session.compact(from_=given)
        with pytest.raises(UserError, match="nothing before this message"):
            await session.compact(from_="-2")
        with pytest.raises(UserError, match="together"):
            await session.compact(from_="-1", up_to="-2")
        assert not boundaries(session)

    in_session(work, cwd=tmp_path, model=model)


def test_partial_compaction_is_a_switch(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home, "[compaction]\npartial = false\n")

    async def work(session: Session) -> None:
        await turns(session, 2)
        with pytest.raises(UserError, match="switched off"):
            await session.compact(from_="-1")

    in_session(work, cwd=tmp_path, model=model)


def test_undo_is_one_more_record_and_later_turns_stay(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> list[JsonObject]:
        await turns(session, 4)
        before = wire(session)
        await session.compact()
        await turns(session, 2, 5)
        lines = len(read_records(session.places.transcript(session.id)).records)
        later = wire(session)[-7:]
        undone = await session.undo()
        assert len(read_records(session.places.transcript(session.id)).records) == lines + 1
        now = wire(session)
        assert now[: len(before)] == before and now[-7:] == later, "the full history, then what came after"
        assert len(now) == len(before) + 8 and undone.tokens > 0
        with pytest.raises(UserError, match="no compaction to take back"):
            await session.undo()
        await turns(session, 1, 7)
        return wire(session)

    left = in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    assert resumed(tmp_path, model) == left


def test_undo_knows_the_size_of_what_it_brings_back(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> None:
        await turns(session, 10)
        full = session.conversation.budget().used
        await session.compact()
        await turns(session, 1, 11)
        assert session.conversation.budget().used < full
        undone = await session.undo()
        assert undone.tokens > full, "not what the last response reported of the short context"
        assert session.conversation.budget().used == undone.tokens

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_undo_that_does_not_fit_says_so_and_offers_what_does(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, "session_notes = false\n[microcompact]\neconomic = false\n")
    files(tmp_path, 60, 4_000)
    model = script(tmp_path, TALK.replace("f{turn}", "f1") + compaction_script())

    async def work(session: Session) -> None:
        await turn(session, "Read them.")
        while not boundaries(session):
            await turn(session, "And again.")
        records = len(session.log.records)
        for _ in range(3):
            await turn(session, "And again.")
        with pytest.raises(UserError, match=r"does not fit.*undo --fit.*/rewind"):
            await session.undo()
        assert len(session.log.records) > records
        done = await session.undo(fit=True)
        limit = session.conversation.thresholds
        assert done.tokens < limit.autocompact and "as far as it fits" in done.notice
        assert boundaries(session)[-1].extent == "up_to"
        assert "Read them." in context(session)
        assert ended(await turn(session, "Go on.")).reason in ("answered", "max_rounds")

    overrides = {"window.context_window": 32_000, "tools.max_rounds": 40}
    in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides)


def test_after_an_undo_the_full_history_is_used_until_it_blocks(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, "session_notes = false\n[microcompact]\neconomic = false\n")
    files(tmp_path, 60, 1_500)
    model = script(tmp_path, TALK.replace("f{turn}", "f1") + compaction_script())

    async def work(session: Session) -> None:
        limits = session.parts.limits
        while session.conversation.budget().used < limits.autocompact - 1_200:
            await turn(session, "More.")
        await session.compact()
        await turn(session, "More.")
        assert (await session.undo()).tokens > limits.autocompact - 1_200
        made = len(boundaries(session))
        while session.conversation.budget().used < limits.blocking - 600:
            await turn(session, "x")
            assert len(boundaries(session)) == made, "whoever took it back wants to go on with all of it"
        for _ in range(3):
            await turn(session, "y")
        assert len(boundaries(session)) == made + 1 and session.conversation.budget().used < limits.autocompact

    in_session(work, cwd=tmp_path, model=model, overrides={"window.context_window": 32_000})


def test_rewind_goes_back_and_undo_forward_again(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> list[JsonObject]:
        await turns(session, 2)
        two = wire(session)
        await turns(session, 2, 3)
        four = wire(session)
        assert session.rewind("-2") == "Question number 3."
        assert wire(session) == two and said(session)[-1] == "Question number 2."
        await turns(session, 1, 9)
        assert "left where it was" not in context(session) and "Question number 4." not in context(session)
        await session.undo()
        assert wire(session) == four
        with pytest.raises(UserError, match="none of your messages"):
            session.rewind("nowhere")
        session.rewind("-4")
        assert wire(session) == []
        await turns(session, 1, 1)
        return wire(session)

    left = in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    assert resumed(tmp_path, model) == left


def test_rewind_to_before_a_compaction_brings_the_full_history_back(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> None:
        await turns(session, 3)
        two = wire(session)[:8]
        await session.compact()
        await turns(session, 1, 4)
        session.rewind("-2")
        assert wire(session) == two
        await turns(session, 1, 5)

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_clear_starts_from_nothing_with_a_new_header_and_keeps_pins(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home)
    settings = own_home / ".reverie" / "settings.toml"
    settings.write_text('[[hooks.SessionStart]]\nmatcher = "clear"\ncommand = "echo It was cleared."\n')

    async def work(session: Session) -> list[JsonObject]:
        await turns(session, 2)
        session.pin("Never sail at night.")
        old = wire(session)
        headers = sum(record.subtype == "session_header" for record in session.log.records)
        await session.clear()
        assert wire(session) == [] and session.view.header is not None
        assert sum(record.subtype == "session_header" for record in session.log.records) == headers + 1
        await turns(session, 1)
        text = context(session)
        assert "It was cleared." in text and "number 2" not in text
        assert session.pins == {"1": "Never sail at night."}
        await session.undo()
        assert wire(session) == old
        return old

    left = in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    assert resumed(tmp_path, model) == left


def test_a_preview_changes_nothing_and_asks_nobody(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    model = talk(tmp_path, own_home)
    settings = own_home / ".reverie" / "settings.toml"
    settings.write_text(f'[[hooks.PreCompact]]\ncommand = "touch {tmp_path}/ran"\n')

    async def work(session: Session) -> None:
        await turns(session, 6)
        before = (wire(session), len(session.log.records))
        shown = await session.preview()
        assert (wire(session), len(session.log.records)) == before
        assert shown.tokens_after < shown.tokens_before and "Question number 5." in shown.text

    in_session(work, cwd=tmp_path, model=model)
    assert not sent(prefix_watch, "compaction") and not (tmp_path / "ran").exists()
    assert not list((own_home / ".reverie").rglob("requests"))


def decided(session: Session) -> list[str | None]:
    return [r.uuid for r in session.log.records if r.subtype not in (ForkUsage.subtype, "cache_break")]


def test_cancelled_at_every_step_a_compaction_by_hand_leaves_no_trace(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> int:
        await turns(session, 6)
        before, records = wire(session), decided(session)
        for steps in range(1_000):
            task = asyncio.create_task(session.compact())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                assert task.result().writer == "fork"
                return steps
            assert wire(session) == before and decided(session) == records and not session.busy
        raise AssertionError("it never came to an end")

    assert in_session(work, cwd=tmp_path, model=model, session_id=SESSION) > 3
    assert len(resumed(tmp_path, model)) >= 1


def test_cancelled_at_every_step_of_a_turn_that_compacts_the_session_resumes(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, "session_notes = false\n[microcompact]\neconomic = false\n")
    files(tmp_path, 60, 3_000)
    model = script(tmp_path, TALK.replace("f{turn}", "f1") + compaction_script())

    async def work(session: Session) -> tuple[int, list[JsonObject]]:
        while session.conversation.budget().used < session.parts.limits.autocompact - 900:
            await turn(session, "More.")
        assert not boundaries(session)
        steps = 0
        while not boundaries(session):
            steps += 1
            running = asyncio.ensure_future(turn(session, f"Cancelled at step {steps}."))
            for _ in range(steps):
                await asyncio.sleep(0)
            session.cancel()
            await running
        assert ended(await turn(session, "Go on.")).reason == "answered"
        told = said(session)
        assert all(text in context(session) for text in told if told.count(text) == 1), "nothing said is lost"
        return steps, wire(session)

    overrides = {"window.context_window": 32_000}
    steps, left = in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides)
    assert steps > 2 and resumed(tmp_path, model) == left


def test_a_compaction_half_written_by_a_crash_never_happened(tmp_path: Path, own_home: Path) -> None:
    model = talk(tmp_path, own_home)

    async def work(session: Session) -> tuple[list[JsonObject], list[JsonObject], Path]:
        await turns(session, 4)
        before = wire(session)
        await session.compact()
        return before, wire(session), session.places.transcript(session.id)

    before, after, path = in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"compact_boundary"' in line)
    sealed = next(i for i, line in enumerate(lines) if i > at and b'"isMeta"' in line)
    for end in range(at, len(lines) + 1):
        path.write_bytes(b"".join(lines[:end]))
        assert resumed(tmp_path, model) == (after if end > sealed else before), f"cut behind line {end - at}"
    path.write_bytes(b"".join(lines[: at + 2]))

    async def go_on(session: Session) -> list[JsonObject]:
        await turns(session, 1, 5)
        return wire(session)

    left = in_session(go_on, cwd=tmp_path, model=model, resume=SESSION)
    assert left[: len(before)] == before and resumed(tmp_path, model) == left


# -- folding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("flag", "strategy"), [("history_snip", "snip"), ("context_collapse", "collapse")])
def test_old_rounds_are_dropped_or_folded_and_what_was_said_stays(
    tmp_path: Path, own_home: Path, prefix_watch: Path, flag: str, strategy: str
) -> None:
    flags(own_home, f"session_notes = false\n{flag} = true\n[microcompact]\neconomic = false\n")
    files(tmp_path, 60, 3_000)
    model = script(tmp_path, TALK.replace("f{turn}", "f{round}") + compaction_script())

    async def work(session: Session) -> list[JsonObject]:
        heard = list[object]()
        for number in range(25):
            heard += await turn(session, f"Question number {number}.")
            assert ended(heard[-1:]).reason == "answered"  # type: ignore[arg-type]
        folds = payloads(session.log, Fold)
        assert folds and all(getattr(fold, "strategy", "") == strategy for fold in folds)
        told = [n.text for n in of_kind(heard, Notice) if "old tool rounds" in n.text]  # type: ignore[arg-type]
        assert told and "tokens" in told[0]
        text = context(session)
        assert all(f"Question number {number}." in text for number in range(25)), "what was said stays in view"
        assert not payloads(session.log, CompactBoundary) or strategy == "snip"
        assert ("rounds of tool calls were here" in text) == (strategy == "collapse")
        limits = session.conversation.thresholds
        assert limits.blocking == (int(limits.effective * 0.95) if strategy == "collapse" else limits.blocking)
        return wire(session)

    overrides = {"window.context_window": 32_000}
    left = in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides)
    assert resumed(tmp_path, model) == left
    announced = [one.announced_break for one in sent(prefix_watch, "main") if one.announced_break]
    assert announced and not sent(prefix_watch, "compaction")
