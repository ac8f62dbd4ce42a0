"""The fork: same bytes up to the directive, nothing of the parent changed but the bill."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.models.request_log import read_log
from reverie.permissions.rules import Allow, Decision, Deny, ToolCall
from reverie.session import Session
from reverie.storage.transcript.records import ForkUsage
from reverie.types import Purpose
from tests.counts import count
from tests.sessions import in_session, script, turn
from tests.waiting import LIMIT_S

PLAY = """
call Read {"file_path": "a.txt"}
---
say I read it.

[notes]
call Read {"file_path": "b.txt"}
call Bash {"command": "touch made-by-fork"}
---
say The notes are written.
"""


async def anything(_call: ToolCall) -> Decision:
    return Allow()


async def reading_only(call: ToolCall) -> Decision:
    return Allow() if call.tool == "Read" else Deny("this fork only reads")


def project(tmp_path: Path) -> str:
    (tmp_path / "a.txt").write_text("alpha")
    (tmp_path / "b.txt").write_text("beta")
    return script(tmp_path, PLAY)


def state(session: Session) -> object:
    """Everything of the parent that a fork must not change."""
    view = session.view
    cache = session._thread.context.read_cache  # pyright: ignore[reportPrivateUsage]
    return (
        [message.wire() for message in view.messages()],
        dict(view.replaced),
        set(view.kept),
        dict(view.cleared),
        dict(view.cursors),
        dict(view.pins),
        dict(view.surfaced),
        view.meter.tokens,
        session.log.head,
        cache.newest(),
        [record for record in session.log.records if record.subtype != ForkUsage.subtype],
    )


def test_a_fork_shares_the_prefix_and_leaves_the_parent_alone(tmp_path: Path, prefix_watch: Path) -> None:
    model = project(tmp_path)

    async def work(session: Session) -> None:
        await turn(session, "read a")
        before = state(session)
        result = await session.fork("Write notes.", purpose=Purpose.NOTES, permission=reading_only, max_rounds=5)
        assert result.text == "The notes are written."
        assert result.denied == ("Bash: this fork only reads",)
        assert state(session) == before
        booked = session.view.fork_usage
        assert [one.purpose for one in booked] == ["notes", "notes"], "one for each request"
        assert booked[0].tokens() + booked[1].tokens() == result.usage

    in_session(work, cwd=tmp_path, model=model)
    assert not (tmp_path / "made-by-fork").exists()
    requests = list(read_log(prefix_watch))
    main = [request for request in requests if request.thread == "main"][-1]
    forked = [request for request in requests if request.thread != "main"]
    assert len(forked) == 2
    assert forked[0].parts[: len(main.parts)] == main.parts
    assert "Write notes." in forked[0].parts[-1]


def test_a_fork_in_the_middle_of_a_round_sees_placeholders_for_open_calls(tmp_path: Path) -> None:
    model = script(tmp_path, 'call Bash {"command": "sleep 0.6"}\n---\nsay Done.\n\n[notes]\nsay Noted.\n')

    async def work(session: Session) -> None:
        forked: asyncio.Task[object] | None = None
        async for event in session.send("go"):
            if event.kind == "tool_started":
                directive = session.fork("Note it.", purpose=Purpose.NOTES, permission=anything, max_rounds=1)
                forked = asyncio.create_task(directive)  # type: ignore[arg-type]
        assert forked is not None
        assert getattr(await forked, "text", "") == "Noted."

    in_session(work, cwd=tmp_path, model=model, overrides={"permissions.mode": "accept_all"})


def test_what_a_fork_reads_is_not_known_to_the_parent(tmp_path: Path) -> None:
    model = project(tmp_path)

    async def work(session: Session) -> None:
        await turn(session, "read a")
        await session.fork("x", purpose=Purpose.NOTES, permission=reading_only, max_rounds=5)
        cache = session._thread.context.read_cache  # pyright: ignore[reportPrivateUsage]
        assert [path.name for path in cache.newest()] == ["a.txt"]

    in_session(work, cwd=tmp_path, model=model)


def test_cancelling_the_one_who_waits_cancels_the_fork(tmp_path: Path) -> None:
    model = script(tmp_path, "say One.\n\n[notes]\nwait 1000\nsay late\n")

    async def work(session: Session) -> None:
        await turn(session, "go")
        waiting = asyncio.create_task(
            session.fork("x", purpose=Purpose.NOTES, permission=anything, max_rounds=1)  # type: ignore[arg-type]
        )
        await asyncio.sleep(0.1)
        waiting.cancel()
        done, _ = await asyncio.wait([waiting], timeout=LIMIT_S)
        assert done and waiting.cancelled()

    in_session(work, cwd=tmp_path, model=model)


actions = st.lists(
    st.sampled_from(
        [
            'call Read {"file_path": "b.txt"}',
            'call Write {"file_path": "w{round}.txt", "content": "x"}',
            'call Edit {"file_path": "a.txt", "old_string": "alpha", "new_string": "omega"}',
            'call Bash {"command": "true"}',
            'call Nothing {"x": 1}',
            "malformed Read {oops",
            "fail overloaded 1x\nsay hm",
        ]
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=count(10, 150), deadline=None)
@given(actions)
def test_nothing_a_fork_does_changes_the_parent(steps: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        project(path)
        text = (
            'call Read {"file_path": "a.txt"}\n---\nsay Read.\n\n[extraction]\n'
            + "\n---\n".join(steps)
            + "\n---\nsay End.\n"
        )

        async def work(session: Session) -> None:
            await turn(session, "read a")
            before = state(session)
            await session.fork("Learn.", purpose=Purpose.EXTRACTION, permission=anything, max_rounds=6)
            assert state(session) == before

        overrides = {"model.retry_first_wait_s": 0.001, "model.retry_longest_wait_s": 0.001}
        in_session(work, cwd=path, model=script(path, text), overrides=overrides)
