"""The edges of compaction: who may, a first message larger than the window, disks that refuse, a real server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reverie.permissions.rules import Allow, Decision, ToolCall
from reverie.session import Session
from reverie.types import Purpose
from tests.layers.strict_model import StrictModel
from tests.layers.talks import SESSION, SMALL, boundaries, compaction_script, context, files, flags, sent
from tests.sessions import ended, in_session, script, turn
from tests.simulated import ANTHROPIC, served


async def anything(_call: ToolCall) -> Decision:
    return Allow()


@pytest.mark.parametrize(
    ("purpose", "compacts"),
    [
        (Purpose.AGENT, True),
        (Purpose.NOTES, False),
        (Purpose.EXTRACTION, False),
        (Purpose.DREAM, False),
        (Purpose.SIDE_QUESTION, False),
        (Purpose.COMPACTION, False),
    ],
)
def test_fork_children_compact_their_own_context_and_serving_forks_never_do(
    tmp_path: Path, own_home: Path, prefix_watch: Path, purpose: Purpose, compacts: bool
) -> None:
    flags(own_home, "session_notes = false\n")
    files(tmp_path, 60, 4_000)
    own = f'\n[{purpose.value}]\nrepeat forever\n  call Read {{"file_path": "f{{loop}}.txt"}}\nend\n'
    summary = compaction_script() if purpose is not Purpose.COMPACTION else ""
    model = script(tmp_path, "say Hello.\n" + own + summary)

    async def work(session: Session) -> None:
        await turn(session, "hello")
        before = [message.wire() for message in session.view.messages()]
        try:
            result = await session.fork("Read all.", purpose=purpose, permission=anything, max_rounds=30)
            assert result.rounds == 30
        except Exception as error:
            assert not compacts and "limit" in str(error), error
        assert [message.wire() for message in session.view.messages()] == before
        assert not boundaries(session), "nothing of it is the parent's"

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=SMALL)
    asked = [one for one in sent(prefix_watch, "compaction") if one.thread.startswith("compaction-ask")]
    assert bool(asked) is compacts
    if compacts:
        assert "Read all." in "".join(asked[0].parts), "the agent's own conversation is what is summarised"


@pytest.mark.parametrize("window", [32_000, 200_000, 1_000_000])
def test_a_first_message_larger_than_the_window_becomes_an_excerpt_with_its_path(tmp_path: Path, window: int) -> None:
    model = StrictModel(window)
    text = "BEGIN " + "all the words of a very long letter " * (window // 5) + " END"

    async def work(session: Session) -> None:
        event = ended(await turn(session, text))
        assert event.reason == "answered", event
        shown = context(session)
        assert "BEGIN all the words" in shown and "END" in shown and len(shown) < window
        written = session.places.session(session.id).glob("requests/*.txt")
        (kept,) = [path for path in written if not path.name.startswith("all")]
        assert kept.read_text() == text and str(kept) in shown
        assert ended(await turn(session, "What did I write?")).reason == "answered"

    in_session(work, cwd=tmp_path, model=model, session_id="s", overrides={"window.context_window": window})
    assert all(tokens <= window for purpose, tokens in model.requests if purpose is Purpose.MAIN)


def test_a_disk_that_refuses_costs_no_word(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, "session_notes = false\n")
    files(tmp_path, 5, 9_000)
    model = script(
        tmp_path, 'repeat forever\n  call Read {"file_path": "f1.txt"}\n  ---\n  say ok\nend\n' + compaction_script()
    )
    long = "Mind every word of this. " * 200

    async def work(session: Session) -> None:
        await turn(session, long)
        await turn(session, "more")
        folder = session.places.session(session.id)
        shutil.rmtree(folder / "requests", ignore_errors=True)
        (folder / "requests").write_text("in the way")
        await session.compact()
        assert long.strip() in session.view.messages()[0].text, "what cannot be kept in a file stays in view"

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_over_a_real_server_every_request_is_legal_and_the_summary_reads_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, 60, 4_000)
    text = 'repeat forever\n  call Read {"file_path": "f{loop}.txt"}\nend\n' + compaction_script()
    with served(text, monkeypatch) as server:
        monkeypatch.setenv("REVERIE_FLAG_SESSION_NOTES", "0")
        monkeypatch.delenv("REVERIE_FLAG_COMPACTION_AUTO", raising=False)

        async def work(session: Session) -> int:
            event = ended(await turn(session, "read"))
            assert event.reason == "max_rounds", event
            return len(boundaries(session))

        overrides = {"window.autocompact_window": 32_000, "tools.max_rounds": 40}
        made = in_session(work, cwd=tmp_path, model=ANTHROPIC, overrides=overrides)
    assert made >= 2
    asked = [row for row in server.rows if row.purpose == "compaction"]
    assert len(asked) == made and all(row.error is None for row in server.rows)
    for row in asked:
        read, prompt = row.usage.cache_read_input_tokens, row.usage.prompt
        assert read > 0.85 * prompt, f"the summary read {read:,} of {prompt:,} tokens from the cache"
