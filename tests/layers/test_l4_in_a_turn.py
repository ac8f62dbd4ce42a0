"""A compaction that is asked for while a turn runs waits for the end of its round; the turn goes on."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from reverie.errors import UserError
from reverie.events import Event, Notice, ToolFinished, TurnEnded
from reverie.session import Session
from tests.layers.talks import SESSION, boundaries, compaction_script, context, files, flags, said
from tests.sessions import ended, in_session, script, turn
from tests.waiting import LIMIT_S, until

ROUNDS = """
repeat 6
  wait 0.1
  call Read {"file_path": "f{loop}.txt"}
  ---
end
say All six are read.
"""


def opening(tmp_path: Path, own_home: Path, play: str = ROUNDS, more: str = "") -> str:
    flags(own_home, "session_notes = false\n" + more)
    files(tmp_path, 10, 3_000)
    return script(tmp_path, play + compaction_script())


async def while_running(session: Session, after: int, **asked: str) -> tuple[list[Event], object]:
    """Asks for a compaction once so many results are there; all events, and what came of it."""
    events, done = list[Event](), None
    async with aclosing(session.send("Read them all.")) as stream:
        async for event in stream:
            events.append(event)
            results = sum(isinstance(one, ToolFinished) for one in events)
            if done is None and results >= after:
                done = asyncio.ensure_future(session.compact(**asked))
    assert done is not None
    return events, (await asyncio.gather(done, return_exceptions=True))[0]


def test_at_the_end_of_the_round_and_the_turn_goes_on(tmp_path: Path, own_home: Path) -> None:
    model = opening(tmp_path, own_home)

    async def work(session: Session) -> None:
        events, done = await while_running(session, 2)
        assert not isinstance(done, BaseException), done
        assert ended(events).reason == "answered" and said(session) == ["Read them all."]
        (boundary,) = boundaries(session)
        assert boundary.trigger == "manual" and "The harbour lights." in context(session)
        told = [event.text for event in events if isinstance(event, Notice)]
        assert any("at the end of this round" in text for text in told) and any("Compacted" in text for text in told)
        assert sum(isinstance(event, ToolFinished) for event in events) > 3, "the turn was not over with it"
        await turn(session, "And again.")

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_in_the_last_round_it_is_done_before_the_turn_ends(tmp_path: Path, own_home: Path) -> None:
    play = 'call Read {"file_path": "f1.txt"}\n---\nwait 1\nsay That was all.\n'
    model = opening(tmp_path, own_home, play)

    async def work(session: Session) -> None:
        events = list[Event]()
        async with aclosing(session.send("Read it.")) as stream:
            async for event in stream:
                events.append(event)
                if isinstance(event, ToolFinished):
                    await until(lambda: session.conversation.sent_messages[-1].tool_results)  # the next request is out
                    asking = asyncio.ensure_future(session.compact())
        assert (await asking).writer == "fork" and len(boundaries(session)) == 1
        assert isinstance(events[-1], TurnEnded) and events[-1].reason == "answered"
        assert "Compacted" in str(events[-2])

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_asked_for_at_the_last_event_it_is_done_and_waits_for_nothing(tmp_path: Path, own_home: Path) -> None:
    """The turn serves nobody any more, though it counts as running until its last event is read."""
    model = opening(tmp_path, own_home, 'call Read {"file_path": "f1.txt"}\n---\nsay That was all.\n')

    async def work(session: Session) -> None:
        async with aclosing(session.send("Read it.")) as stream:
            async for event in stream:
                if isinstance(event, TurnEnded):
                    async with asyncio.timeout(LIMIT_S):
                        assert (await session.compact()).writer == "fork"
        assert len(boundaries(session)) == 1
        await turn(session, "And again.")

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_a_turn_that_is_cancelled_takes_it_along_and_nothing_was_changed(tmp_path: Path, own_home: Path) -> None:
    model = opening(tmp_path, own_home, 'call Read {"file_path": "f1.txt"}\n---\nwait 30\nsay Late.\n')

    async def work(session: Session) -> None:
        asking = None
        async for event in session.send("Read it."):
            if isinstance(event, ToolFinished):
                await asyncio.sleep(0.1)
                asking = asyncio.ensure_future(session.compact())
                await asyncio.sleep(0)
                session.cancel()
        assert asking is not None
        with pytest.raises(UserError, match="the turn was cancelled"):
            await asking
        assert not boundaries(session)
        await session.compact()
        assert len(boundaries(session)) == 1, "by hand afterwards"

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_what_would_take_the_ground_away_is_refused_and_looking_is_not(tmp_path: Path, own_home: Path) -> None:
    model = opening(tmp_path, own_home)

    async def work(session: Session) -> None:
        looked = False
        async with aclosing(session.send("Read them all.")) as stream:
            async for event in stream:
                if isinstance(event, ToolFinished) and not looked:
                    looked = True
                    assert "Read them all." in (await session.preview()).text
                    first = asyncio.ensure_future(session.compact())
                    await asyncio.sleep(0)
                    with pytest.raises(UserError, match="waits for the end of this round already"):
                        await session.compact()
                    with pytest.raises(UserError, match="a turn is running"):
                        await session.undo()
                    with pytest.raises(UserError, match="a turn is running"):
                        session.rewind("-1")
                    first.cancel()  # whoever asked has gone
        assert looked and not boundaries(session)

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_one_that_fails_is_told_to_who_asked_and_the_turn_goes_on(tmp_path: Path, own_home: Path) -> None:
    model = opening(tmp_path, own_home)

    async def work(session: Session) -> None:
        events, done = await while_running(session, 2, from_="no-such-message")
        assert isinstance(done, UserError) and "no message in view" in str(done)
        assert ended(events).text == "All six are read." and not boundaries(session)

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
