"""Numbers and branches of the reference that only a whole session shows: large windows, breakers, what is sent."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from pathlib import Path

import pytest

from reverie.errors import ModelError, Overloaded, PromptTooLong, UserError
from reverie.events import Event, Notice
from reverie.models.base import Request
from reverie.models.wire import body
from reverie.session import Session
from reverie.storage.transcript.sessions import list_sessions
from reverie.types import Block, ImageBlock, Purpose, TextBlock, ToolUseBlock
from tests.layers.strict_model import SUMMARY, StrictModel
from tests.layers.talks import (
    REFERENCE,
    SESSION,
    boundaries,
    compaction_script,
    context,
    files,
    flags,
    notes_path,
    notes_script,
    said,
    sent,
)
from tests.sessions import ended, in_session, of_kind, script, turn
from tests.waiting import LIMIT_S

QUIET = "session_notes = false\n[microcompact]\neconomic = false\n"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def reads(*names: str) -> deque[tuple[Block, ...]]:
    """One round a name, in which this file is read."""
    return deque(
        (TextBlock("Let me look."), ToolUseBlock(f"call-{name}-{at}", "Read", {"file_path": name}))
        for at, name in enumerate(names)
    )


def options(window: int, **more: object) -> dict[str, object]:
    return {"window.context_window": window, "model.retries": 0, "permissions.mode": "accept_all", **more}


def test_a_window_of_a_million_is_used_up_to_its_own_threshold(tmp_path: Path, own_home: Path) -> None:
    """effective = 1,000,000 − 20,000 and T = effective − 13,000: nothing scales up, and nothing happens before."""
    flags(own_home, QUIET)
    window, sizes = 1_000_000, list[int]()
    model = StrictModel(window)
    letter = "all the words of a very long letter to be kept in mind " * 10_000  # about 140,000 tokens

    async def work(session: Session) -> None:
        limits = session.parts.limits
        assert (limits.effective, limits.autocompact, limits.blocking) == (980_000, 967_000, 977_000)
        for number in range(1, 11):
            assert ended(await turn(session, f"Letter {number}: {letter}")).reason == "answered"
            sizes.append(session.conversation.budget().used)
        (first, *_rest) = boundaries(session)
        assert first.tokens_before > limits.autocompact and first.writer in ("fork", "plain")
        assert max(sizes) > 800_000 and said(session)[0].startswith("Letter 1:")
        kept = "".join(p.read_text() for p in session.places.session(session.id).glob("requests/*.txt"))
        assert all(f"Letter {n}: {letter}" in kept or f"Letter {n}: {letter}" in context(session) for n in range(1, 11))
        await session.undo(fit=True)
        assert ended(await turn(session, "Go on.")).reason == "answered"

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=options(window))
    assert all(tokens <= window for purpose, tokens in model.requests if purpose is Purpose.MAIN)
    assert model.refused == 0


def test_in_a_million_notes_begin_at_ten_thousand_tokens_all_the_same(tmp_path: Path, prefix_watch: Path) -> None:
    files(tmp_path, 40, 4_000)
    paced = 'repeat forever\n  wait 0.02\n  call Read {"file_path": "f{loop}.txt"}\nend\n'
    model = script(tmp_path, paced + notes_script(tmp_path))
    overrides = {"tools.max_rounds": 16, "window.context_window": 1_000_000, **REFERENCE}

    async def work(session: Session) -> None:
        await turn(session, "read")
        await session.tasks.drain(LIMIT_S)

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides)
    first = sent(prefix_watch, "notes")[0]
    assert 25_000 < len("".join(first.parts)) < 150_000 and notes_path(tmp_path).exists()


@pytest.mark.parametrize(("window", "most"), [(32_000, 3_200), (200_000, 20_000), (1_000_000, 20_000)])
def test_a_summary_may_be_twenty_thousand_tokens_long(tmp_path: Path, own_home: Path, window: int, most: int) -> None:
    flags(own_home, QUIET)
    asked = list[int]()

    def watch(request: Request, _tokens: int) -> None:
        if request.purpose is Purpose.COMPACTION:
            asked.append(request.max_tokens)

    async def work(session: Session) -> None:
        await turn(session, "Remember this. " * 500)
        await session.compact()

    in_session(work, cwd=tmp_path, model=StrictModel(window, watching=watch), overrides=options(window))
    assert asked == [most]


def test_a_success_between_failures_resets_the_breaker(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, QUIET)
    files(tmp_path, 9, 9_000)
    moods = deque[str | ModelError]([Overloaded("no"), Overloaded("no"), SUMMARY] * 3)
    model = StrictModel(32_000, summary=lambda: moods.popleft() if moods else SUMMARY)
    told = list[str]()

    async def work(session: Session) -> list[str]:
        while len(boundaries(session)) < 7:
            model.answers = reads(*(f"f{n}.txt" for n in range(1, 9)))
            told.extend(n.text for n in of_kind(await turn(session, "Read on."), Notice))
        return ["code" if one.writer == "code" else "model" for one in boundaries(session)]

    overrides = options(32_000, **{"compaction.refill_times": 100})
    assert in_session(work, cwd=tmp_path, model=model, overrides=overrides) == ["code", "code", "model"] * 2 + ["code"]
    assert not any("has stopped" in text for text in told)


def test_a_context_full_again_at_once_three_times_stops_and_says_so_once(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, QUIET)
    (tmp_path / "huge.txt").write_text("the lamp of the harbour burns all night long\n" * 320)
    model = StrictModel(32_000)
    heard = list[Event]()

    async def work(session: Session) -> None:
        for _ in range(20):
            model.answers = reads("huge.txt", "huge.txt", "huge.txt", "huge.txt")
            heard.extend(await turn(session, "Read it."))
            if ended(heard).reason == "blocked":
                break
        assert ended(heard).reason == "blocked" and len(boundaries(session)) == 4, "three refills after the first"
        told = [n.text for n in of_kind(heard, Notice) if "has stopped for this session" in n.text]
        assert len(told) == 1 and "within 3 turns" in told[0] and "/compact still works" in told[0]
        assert (await session.compact()).tokens_after < session.parts.limits.autocompact
        assert ended(await turn(session, "And now?")).reason == "answered"

    in_session(work, cwd=tmp_path, model=model, overrides=options(32_000))


def test_a_plain_request_has_words_for_images_and_leaves_out_what_is_read_again_anyway(
    tmp_path: Path, own_home: Path
) -> None:
    flags(own_home, QUIET)
    files(tmp_path, 4, 3_000)
    seen = list[tuple[bool, str]]()

    def watch(request: Request, _tokens: int) -> None:
        if request.purpose is Purpose.COMPACTION:
            seen.append((len("".join(request.system)) < 2_000, json.dumps(body(request)["messages"])))

    answers = deque[str | ModelError]([SUMMARY, "no summary", SUMMARY])
    model = StrictModel(200_000, watching=watch, summary=answers.popleft)

    async def work(session: Session) -> None:
        model.answers = reads("f1.txt")
        await turn(session, "Read it. " * 300)
        await session.compact()
        assert "read again from disk" in context(session)
        async for _ in session.send(
            "Look at this.", images=[ImageBlock({"type": "base64", "media_type": "image/png", "data": PNG})]
        ):
            pass
        assert (await session.compact()).writer == "plain"

    in_session(work, cwd=tmp_path, model=model, overrides=options(200_000))
    (_, _), (is_plain, fork), (then_plain, plain) = seen
    assert not is_plain and "read again from disk" in fork and '"image"' in fork, "what shares the cache is as it was"
    assert then_plain and "read again from disk" not in plain and '"image"' not in plain
    assert "[An image was here.]" in plain and "Look at this." in plain


def test_a_percentage_can_only_lower_the_threshold(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, QUIET)
    files(tmp_path, 60, 4_000)

    def first_at(pct: int) -> int:
        async def work(session: Session) -> int:
            model.answers = reads(*(f"f{n}.txt" for n in range(1, 31)))
            await turn(session, "read")
            return boundaries(session)[0].tokens_before

        model = StrictModel(32_000)
        return in_session(work, cwd=tmp_path, model=model, overrides=options(32_000, **{"window.autocompact_pct": pct}))

    assert 28_800 * 0.6 < first_at(60) < 28_800 * 0.6 + 3_000
    assert 26_720 < first_at(100) < 28_320, "T itself, and never over the blocking limit"


def test_what_lists_show_of_a_session_is_as_it_was(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, QUIET)
    model = StrictModel(200_000)

    async def work(session: Session) -> None:
        await turn(session, "Light the harbour. " * 200)
        await session.compact()
        await turn(session, "Go on.")
        (info,) = list_sessions(session.places.project)
        assert info.title.startswith("Light the harbour.") and info.id == SESSION

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=options(200_000))


@pytest.mark.parametrize("event", ["PreCompact", "SessionStart"])
@pytest.mark.parametrize(
    "command", ["printf '\\xff\\x00{{{'", "exit 1", "echo '[1, 2]'", "yes nonsense | head -c 300000", "kill -9 $$"]
)
def test_hooks_that_print_nonsense_stop_no_compaction(tmp_path: Path, own_home: Path, event: str, command: str) -> None:
    flags(own_home, QUIET)
    text = f'[[hooks.{event}]]\nmatcher = ""\ncommand = {json.dumps(command)}\n'
    (own_home / ".reverie" / "settings.toml").write_text(text)

    async def work(session: Session) -> None:
        for number in range(3):
            assert ended(await turn(session, f"Question {number}. " * 300)).reason == "answered"
        await session.compact()
        assert len(boundaries(session)) == 1 and session.conversation.budget().used < 167_000
        assert ended(await turn(session, "Go on.")).reason == "answered"

    in_session(work, cwd=tmp_path, model=StrictModel(200_000), overrides=options(200_000))


def test_an_update_that_is_killed_leaves_notes_and_cursor_as_they_were(tmp_path: Path) -> None:
    path = notes_path(tmp_path)
    slow = f'[notes]\nwait 20\ncall Edit {{"file_path": "{path}", "old_string": "_Five", "new_string": "_Six"}}\n'
    model = script(tmp_path, "say Hello.\n\n" + slow + compaction_script())

    async def work(session: Session) -> None:
        await turn(session, "hello")
        task = session.update_notes()
        await asyncio.sleep(0.2)
        before = path.read_bytes()
        await session.tasks.kill(task.info.id)
        assert path.read_bytes() == before and session.view.cursors.get("notes") is None
        await turn(session, "and again")

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)

    async def look(session: Session) -> list[str]:
        return said(session)

    assert in_session(look, cwd=tmp_path, model=model, resume=SESSION) == ["hello", "and again"]


def test_too_long_three_times_says_what_to_do(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, QUIET)
    model = StrictModel(200_000, summary=lambda: PromptTooLong("too long", actual=210_000, limit=200_000))

    async def work(session: Session) -> str:
        for number in range(6):
            await turn(session, f"Question {number}. " * 200)
        return (await session.compact()).notice

    notice = in_session(work, cwd=tmp_path, model=model, overrides=options(200_000))
    assert "summary made by code" in notice and "--up-to" in notice and "/clear" in notice
    asked = [tokens for purpose, tokens in model.requests if purpose is Purpose.COMPACTION]
    assert len(asked) == 4, "the fork, and three shorter ones"


def test_off_by_whatever_switch_a_person_is_told_why(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, QUIET)

    async def work(session: Session) -> None:
        await turn(session, "hello " * 500)
        with pytest.raises(UserError, match="REVERIE_DISABLE_COMPACT"):
            await session.compact()

    in_session(
        work, cwd=tmp_path, model=StrictModel(200_000), overrides=options(200_000, **{"window.disable_compact": True})
    )
