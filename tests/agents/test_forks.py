"""Fork children and their parent: nothing they do reaches it but their report, and no fork starts another."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.agents.children import MARKER, PLACEHOLDER, is_fork
from reverie.agents.messages.message import message_ids
from reverie.session import Session
from reverie.storage.transcript.records import CacheBreak, CacheEdits, Cursor, ForkUsage, ResultDecisions
from reverie.storage.transcript.view import View
from reverie.types import Message, Origin, Record, TextBlock
from tests.agents.talk import of_agents, part, results, said_to_main, user_texts
from tests.counts import count
from tests.sessions import ended, in_session, script, turn
from tests.waiting import LIMIT_S

STEPS = [
    'call Read {"file_path": "b.txt"}',
    'call Read {"file_path": "a.txt"}',
    'call Write {"file_path": "w{round}.txt", "content": "x"}',
    'call Edit {"file_path": "a.txt", "old_string": "alpha", "new_string": "omega"}',
    'call Bash {"command": "yes | head -c 300000"}',
    'call Bash {"command": "seq 1 40000"}\ncall Bash {"command": "seq 1 30000"}',
    'call Agent {"description": "again", "prompt": "Fork again."}',
    'call SendMessage {"to": "part-two", "message": "hello"}',
    'call Nothing {"x": 1}',
    "malformed Read {oops",
    "fail overloaded 1x\nsay hm",
    "fill 20000",
]


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a turn sets off by itself is not what is looked at here."""
    for flag in ("EXTRACTION", "SESSION_NOTES", "DREAM"):
        monkeypatch.setenv(f"REVERIE_FLAG_{flag}", "0")


_FORKS = (ForkUsage.subtype, CacheBreak.subtype)


def kept_of(session: Session) -> object:
    """What no fork may change: decisions, read cache, cursors, cache edits, and the records of the transcript."""
    log, view = session.log, session.view
    cache = session.agents.spawner.main.thread.context.read_cache
    return (
        dict(view.replaced),
        set(view.kept),
        dict(view.cleared),
        dict(view.cursors),
        dict(view.cache_edits),
        dict(view.server_edits),
        view.sent_cache_edits(),
        dict(view.surfaced),
        dict(view.pins),
        [(path, cache.get(path)) for path in cache.newest()],
        [record for record in log.records if record.subtype not in _FORKS],
        [message.wire() for message in view.messages()],
        log.head,
        session.conversation.sent,
        session.conversation.announce,
    )


@pytest.mark.soak
@settings(max_examples=count(12, 150), deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=5))
def test_nothing_a_fork_does_changes_its_parent(steps: list[str]) -> None:
    play = """
call Read {"file_path": "a.txt"}
call Bash {"command": "seq 1 20000"}
---
say Read.
---
say I split.
call Agent {"description": "part one", "prompt": "Do part one."}
call Agent {"description": "part two", "prompt": "Do part two."}
---
say They are on their way.

[agent]
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "a.txt").write_text("alpha")
        (path / "b.txt").write_text("beta")
        model = script(path, play + "wait 0.15\n" + "\n---\n".join(steps) + "\n---\nsay End.\n")

        async def work(session: Session) -> None:
            await turn(session, "read a")
            log = session.log
            log.append(Cursor("notes", log.head))
            log.append(CacheEdits((next(iter(log.view._calls)),)))  # pyright: ignore[reportPrivateUsage]
            log.append(ResultDecisions(kept=("toolu_decided",)))
            await turn(session, "split")  # interactive: the turn ends while they are at work
            before = kept_of(session)
            assert len(session.tasks.running) == 2
            while running := session.tasks.running:
                await session.tasks.settle(running[0].purpose, LIMIT_S)
            assert kept_of(session) == before
            messages = session.messages.drain()
            assert len(messages) == 2, "all that comes of them is a message each"

        overrides = {
            "model.retry_first_wait_s": 0.001,
            "model.retry_longest_wait_s": 0.001,
            "permissions.mode": "accept_all",
        }
        in_session(work, cwd=path, model=model, overrides=overrides, interactive=True)


def test_a_fork_knows_itself_by_its_marker_where_its_origin_is_lost() -> None:
    def record(text: str, origin: Origin) -> Record:
        return Record({"type": "user", "uuid": text[:8]}, Message("user", (TextBlock(text, origin),)))

    assert is_fork(View.of([record(f"{MARKER}\nrules", Origin.AGENT)]))
    assert not is_fork(View.of([record(f"{MARKER}\nrules", Origin.TYPED)])), "whoever quotes it is no fork"
    assert not is_fork(View.of([record(f"see {MARKER}", Origin.AGENT)]))


def test_a_fork_that_was_compacted_still_cannot_fork(tmp_path: Path, prefix_watch: Path) -> None:
    """Its directive with the marker is summarised away; its origin is not."""
    (tmp_path / "big.txt").write_text("All work and no play makes a dull day for everybody.\n" * 200)
    play = """
say I split.
call Agent {"description": "big job", "prompt": "Read a lot."}
---
say Started.
---
say {text}

[agent]
repeat forever
  call Read {"file_path": "big.txt"}
end
when /Much was read/
  call Agent {"description": "again", "prompt": "Fork again."}
  ---
  say It said: {result}
end

[compaction]
say <summary>Much was read.</summary>
"""
    asked = {"window.context_window": 60_000, "window.autocompact_pct": 50}

    async def work(session: Session) -> None:
        await turn(session, "go")
        assert "a fork cannot start agents" in said_to_main(session)

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides=asked)
    (rounds,) = of_agents(prefix_watch).values()
    assert any(request.announced_break for request in rounds), "it was compacted"
    assert MARKER not in "".join(rounds[-2].parts), "and the marker is gone"


def test_a_letter_is_recorded_once_with_its_id(tmp_path: Path) -> None:
    play = """
call Agent {"description": "one", "prompt": "Do it."}
---
say Started.
---
say Heard.

[agent]
say Did it.
"""

    async def work(session: Session) -> None:
        await turn(session, "go")
        ids = [id for entry in session.view.entries for id in message_ids(entry.message)]
        assert len(ids) == 1
        (record,) = [r for r in session.log.records if r.message is not None and message_ids(r.message)]
        assert record.data["origins"] == ["agent"], "a message is never the user speaking"
        assert json.dumps(record.stored())

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_all_calls_of_the_message_are_placeholders_in_a_fork_and_real_in_its_parent(
    tmp_path: Path, prefix_watch: Path
) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    play = """
say I read and split.
call Read {"file_path": "a.txt"}
call Agent {"description": "one", "prompt": "Do it."}
---
say Waiting.
---
say Done.

[agent]
say Did it.
"""

    async def work(session: Session) -> None:
        await turn(session, "go")
        assert any("alpha" in text for text, _ in results(session)), "recorded in the order they came"

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))
    ((child,),) = of_agents(prefix_watch).values()
    held = [block["content"] for block in part(child, "user") if block["type"] == "tool_result"]
    assert held == [PLACEHOLDER, PLACEHOLDER]


def test_a_sub_agent_may_fork_itself(tmp_path: Path, prefix_watch: Path) -> None:
    play = """
call Agent {"description": "outer", "prompt": "Be outer.", "subagent_type": "general"}
---
say {result}

[agent]
when /Be outer/
  say I fork.
  call Agent {"description": "inner", "prompt": "Be inner."}
  ---
  say I wait.
  ---
  say It told me: {text}
end
when /Be inner/
  say Inner is done.
end
"""

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert "It told me" in ended(events).text and "Inner is done." in ended(events).text

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))
    outer, inner = of_agents(prefix_watch).values()
    assert inner[0].parts[: len(outer[0].parts)] == outer[0].parts, "the parent's bytes, whole"
    assert user_texts(inner[0])[-1] == "<agent-text>\nBe inner.\n</agent-text>"
