"""Compaction from notes: no model call, the keep algorithm to the letter, and when it is not available."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.events import Notice
from reverie.layers.l3_session_notes.notes_compaction import first_kept, unsplit
from reverie.layers.l3_session_notes.trigger import NoteNumbers
from reverie.layers.weighing import weigh_entries
from reverie.session import Session
from reverie.storage.transcript.records import Cursor
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import View
from reverie.types import Block
from tests.layers.talks import (
    READS,
    REFERENCE,
    SESSION,
    SMALL,
    STATE,
    boundaries,
    compaction_script,
    context,
    files,
    flags,
    notes_path,
    notes_script,
    sent,
)
from tests.sessions import in_session, of_kind, script, turn
from tests.storage.conversations import HEADER, answer, call, new_log, person, result, says
from tests.waiting import FOREVER_S, LIMIT_S

NUMBERS = NoteNumbers()
THOUSAND = "word " * 1_100  # about a thousand tokens and more


def talk(log: SessionLog, turns: int, text: str) -> None:
    for number in range(turns):
        log.append_message(person(f"question {number}"))
        log.append_message(answer(f"m{len(log.view.entries)}", says(text), prompt=0))


def kept(view: View, numbers: NoteNumbers = NUMBERS) -> int:
    start = first_kept(view, numbers)
    assert start is not None
    return len(view.entries) - start


def cursor_at(log: SessionLog, from_end: int) -> None:
    log.append(Cursor("notes", log.view.entries[-1 - from_end].uuid))


def test_everything_after_the_cursor_is_kept_where_that_is_enough() -> None:
    log = new_log()
    talk(log, 40, THOUSAND)
    cursor_at(log, 30)
    assert kept(log.view) == 30, "15,000 tokens and 30 messages: no need to go back"


def test_walks_back_for_tokens() -> None:
    log = new_log()
    talk(log, 40, THOUSAND)
    cursor_at(log, 0)
    count = kept(log.view)
    entries = log.view.entries
    assert weigh_entries(log.view, entries[-count:]) >= 10_000
    assert weigh_entries(log.view, entries[-count + 1 :]) < 10_000, "no further than needed"


def test_walks_back_for_messages_with_text_but_stops_at_the_most() -> None:
    log = new_log()
    log.append_message(person("go"))
    for number in range(40):  # tool rounds hold no text
        log.append_message(answer(f"m{number}", call(f"c{number}"), prompt=0))
        log.append_message(result(f"c{number}", "word " * 4_500))
    cursor_at(log, 0)
    count = kept(log.view)
    entries = log.view.entries
    assert weigh_entries(log.view, entries[-count:]) >= 40_000
    assert weigh_entries(log.view, entries[-count + 2 :]) < 40_000
    few = NoteNumbers(keep_tokens=1, keep_messages=5, keep_tokens_most=10_000_000)
    assert kept(log.view, few) == len(entries), "five messages with text are nowhere: all of it"


def test_five_messages_with_text() -> None:
    log = new_log()
    talk(log, 10, "short")
    cursor_at(log, 0)
    few = NoteNumbers(keep_tokens=1)
    assert kept(log.view, few) == 5


def test_never_behind_the_last_boundary() -> None:
    log = new_log()
    log.append(HEADER)
    talk(log, 3, "short")
    log.append_message(person("summary"), isCompactSummary=True, compactOf="b")
    talk(log, 2, "short")
    view = log.view
    at = next(i for i, entry in enumerate(view.entries) if entry.brought)
    fold = View()
    for entry in view.entries[at:]:
        fold.entries.append(entry)
    fold.cursors["notes"] = fold.entries[-1].uuid
    assert first_kept(fold, NUMBERS) == 1, "the summary itself is not kept"


def test_a_cursor_that_is_gone_is_not_available() -> None:
    log = new_log()
    talk(log, 3, "short")
    assert first_kept(log.view, NUMBERS) is None
    log.append(Cursor("notes", "nowhere"))
    assert first_kept(log.view, NUMBERS) is None
    log.append(Cursor("notes", None))
    assert first_kept(log.view, NUMBERS) is None


def test_pairs_and_siblings_are_never_split() -> None:
    log = new_log()
    log.append_message(person("go"))
    log.append_message(answer("m1", says("first I look"), prompt=0))
    log.append_message(answer("m1", call("a"), prompt=0))
    log.append_message(result("a"))
    log.append_message(answer("m1", call("b"), prompt=0))
    log.append_message(result("b"))
    log.append_message(answer("m2", says("done"), prompt=0))
    for start in (2, 3, 4, 5):
        assert unsplit(log.view.entries, start) == 1, "all records of m1, or none"
    assert unsplit(log.view.entries, 6) == 6 and unsplit(log.view.entries, 1) == 1


steps = st.lists(st.sampled_from(["person", "answer", "calls", "split"]), min_size=1, max_size=30)


@given(steps, st.integers(0, 60), st.integers(1, 4_000), st.integers(1, 6))
def test_what_is_kept_is_always_a_conversation(kinds: list[str], back: int, tokens: int, messages: int) -> None:
    log = new_log()
    log.append_message(person("begin"))
    for number, kind in enumerate(kinds):
        blocks: list[Block] = [call(f"c{number}-{i}") for i in range(2)]
        match kind:
            case "person":
                log.append_message(person(f"say {number} " * 50))
            case "answer":
                log.append_message(answer(f"m{number}", says("answer " * 50), prompt=0))
            case "calls":
                log.append_message(answer(f"m{number}", *blocks, prompt=0))
                log.append_message(result(f"c{number}-1", "x " * 200))
                log.append_message(result(f"c{number}-0", "y " * 200))
            case _:
                for block in blocks:
                    log.append_message(answer(f"m{number}", block, prompt=0))
                    log.append_message(result(str(getattr(block, "id", "")), "z " * 200))
    cursor_at(log, min(back, len(log.view.entries) - 1))
    start = first_kept(log.view, NoteNumbers(keep_tokens=tokens, keep_messages=messages, keep_tokens_most=tokens * 3))
    assert start is not None
    entries = log.view.entries[start:]
    calls = {use.id for entry in entries for use in entry.message.tool_uses}
    results = {block.tool_use_id for entry in entries for block in entry.message.tool_results}
    assert results <= calls
    inside = {entry.message.id for entry in entries if entry.message.id}
    assert not inside & {entry.message.id for entry in log.view.entries[:start] if entry.message.id}


# -- through a session ------------------------------------------------------------------------------------------------


def long_read(
    tmp_path: Path, notes: str, rounds: int = 60, given: dict[str, str] | None = None, **more: object
) -> tuple[list[object], Session]:
    """Reads until the window of 32,000 is full at least once."""
    files(tmp_path, 60, 4_000)
    model = script(tmp_path, READS + notes + compaction_script())
    held: list[Session] = []

    async def work(session: Session) -> list[object]:
        held.append(session)
        return list(await turn(session, "Read all files; never skip one."))

    overrides = {"tools.max_rounds": rounds, **SMALL, **(given or {})}
    events = in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides, **more)
    return events, held[0]


def test_a_full_window_is_compacted_from_the_notes_without_a_model_call(tmp_path: Path, prefix_watch: Path) -> None:
    events, session = long_read(tmp_path, notes_script(tmp_path, "Files are read one by one."))
    made = boundaries(session)
    assert len(made) >= 2 and all(one.writer == "notes" for one in made)
    assert not sent(prefix_watch, "compaction"), "no model was asked"
    first = made[0]
    assert first.trigger == "auto" and first.tokens_before > session.parts.limits.autocompact
    assert first.preserved is not None
    text = context(session)
    assert "Files are read one by one." in text and "Read all files; never skip one." in text
    told = [n.text for n in of_kind(events, Notice) if "without a model call" in n.text]  # type: ignore[arg-type]
    assert len(told) == len(made) and "kept after compaction: 1 of 1 requests" in told[0]


def test_the_switch_hands_over_to_the_summary(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    flags(own_home, "[compaction]\nnotes = false\n")
    _, session = long_read(tmp_path, notes_script(tmp_path))
    assert {one.writer for one in boundaries(session)} == {"fork"} and sent(prefix_watch, "compaction")


def test_notes_that_fell_far_behind_hand_over_to_the_summary(tmp_path: Path) -> None:
    refused = '\n[notes]\ncall Read {"file_path": "f1.txt"}\n---\nsay I have nothing to note.\n'
    _, session = long_read(tmp_path, refused, rounds=30, given=REFERENCE)
    # The first failed update leaves notes made by code. Nothing came after: keeping all since then makes no room.
    assert session.view.cursors["notes"] is not None
    assert boundaries(session)[0].writer == "fork"


@pytest.mark.parametrize("spoil", ["missing", "template", "cursor"])
def test_by_hand_when_notes_are_not_available(tmp_path: Path, spoil: str) -> None:
    files(tmp_path, 10, 6_000)
    model = script(
        tmp_path,
        'call Read {"file_path": "f1.txt"}\n---\nsay One.\n---\ncall Read {"file_path": "f2.txt"}\n---\nsay Two.\n'
        + notes_script(tmp_path)
        + compaction_script(),
    )

    async def work(session: Session) -> str:
        await turn(session, "one")
        assert (await session.update_notes().wait(LIMIT_S)).state.value == "completed"
        await turn(session, "two")
        path = notes_path(tmp_path)
        if spoil == "missing":
            path.unlink()
        elif spoil == "template":
            path.write_text(path.read_text().replace("Reading the files.", ""))
        else:
            session.log.append(Cursor("notes", "gone"))
        return (await session.compact()).writer

    assert in_session(work, cwd=tmp_path, model=model, session_id=SESSION) == "fork"


def two_turns(tmp_path: Path) -> str:
    files(tmp_path, 30, 9_000)
    reads = "\n---\n".join(f'call Read {{"file_path": "f{n}.txt"}}' for n in range(1, 21))
    later = "\n---\n".join(f'call Read {{"file_path": "f{n}.txt"}}' for n in range(21, 24))
    return f"{reads}\n---\nsay One.\n---\n{later}\n---\nsay Two.\n"


def test_by_hand_from_the_notes_and_with_instructions_from_a_model(tmp_path: Path, prefix_watch: Path) -> None:
    model = script(tmp_path, two_turns(tmp_path) + notes_script(tmp_path) + compaction_script())

    async def work(session: Session) -> tuple[str, str]:
        await turn(session, "one")
        await session.update_notes().wait(LIMIT_S)
        first = await session.compact()
        assert "Reading the files." in first.text and first.tokens_after < first.tokens_before
        await turn(session, "two")
        second = await session.compact("mind the gap")
        return first.writer, second.writer

    assert in_session(work, cwd=tmp_path, model=model, session_id=SESSION) == ("notes", "fork")
    (asked,) = sent(prefix_watch, "compaction")
    assert "mind the gap" in asked.parts[-1]


def test_long_sections_are_cut_with_a_marker(tmp_path: Path) -> None:
    model = script(tmp_path, two_turns(tmp_path) + notes_script(tmp_path))

    async def work(session: Session) -> str:
        await turn(session, "one")
        await session.update_notes().wait(LIMIT_S)
        path = notes_path(tmp_path)
        path.write_text(path.read_text().replace(STATE, STATE + "\n\n" + "a line of it\n" * 1_000))
        return (await session.compact()).text

    text = in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    assert text.count("a line of it") < 8_000 / 13 + 2
    assert f"the rest of this section is in {notes_path(tmp_path)}" in text


def test_waits_for_a_running_update(tmp_path: Path) -> None:
    slow = notes_script(tmp_path, "Late but there.").replace("[notes]\n", "[notes]\nwait 0.5\n")
    model = script(tmp_path, two_turns(tmp_path) + slow + compaction_script())

    async def work(session: Session) -> tuple[str, str]:
        await turn(session, "one")
        await session.tasks.drain(LIMIT_S)
        session.update_notes()
        await asyncio.sleep(0)
        done = await session.compact()
        return done.writer, done.text

    writer, text = in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    assert writer == "notes" and "Late but there." in text


@pytest.mark.parametrize(("wait", "ignore"), [(0.2, FOREVER_S), (FOREVER_S, 0.1)])
def test_does_not_wait_for_ever_nor_for_what_hangs(tmp_path: Path, wait: float, ignore: float) -> None:
    hung = notes_script(tmp_path).replace("[notes]\n", "[notes]\nwait 1000\n")
    model = script(tmp_path, two_turns(tmp_path) + hung + compaction_script())

    async def work(session: Session) -> str:
        await turn(session, "one")
        await asyncio.sleep(0.3)
        done = await session.compact()
        for info in session.tasks.running:
            await session.tasks.kill(info.id)
        return done.writer

    overrides = {"notes.wait_s": wait, "notes.ignore_after_s": ignore, **REFERENCE}
    assert in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides) == "fork"


def test_notes_that_would_not_make_room_hand_over(tmp_path: Path) -> None:
    # Everything after the cursor must be kept, and that alone is over the threshold.
    files(tmp_path, 60, 4_000)
    model = script(tmp_path, "say Hello.\n---\n" + READS + notes_script(tmp_path) + compaction_script())

    async def work(session: Session) -> list[str]:
        await turn(session, "hello")
        assert (await session.update_notes().wait(LIMIT_S)).state.value == "completed"
        await turn(session, "read")
        return [one.writer for one in boundaries(session)]

    overrides = {"tools.max_rounds": 30, "notes.growth_tokens": 10_000_000, **SMALL, **REFERENCE}
    assert in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides)[0] == "fork"
