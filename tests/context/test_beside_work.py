"""Work beside the conversation: compaction in a pause, a summary that was cut off, caps during a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reverie.errors import BudgetSpent
from reverie.events import Notice
from reverie.permissions.rules import Allow, Decision, ToolCall
from reverie.session import Session
from reverie.types import Purpose
from tests.layers.talks import SESSION, SMALL, boundaries, compaction_script, files, flags, sent
from tests.sessions import ended, in_session, script, turn
from tests.simulated import ANTHROPIC, served
from tests.waiting import until

QUICK = {"compaction.idle_minutes": 0.005, **SMALL}


def nearly_full(folder: Path, more: str = "") -> str:
    files(folder, 20, 4_000)
    reads = "".join(f'call Read {{"file_path": "f{n}.txt"}}\n---\n' for n in range(1, 17))
    return script(folder, reads + "say Done.\n---\nsay Here.\n" + more + compaction_script())


@pytest.mark.parametrize("is_on", [True, False])
def test_a_nearly_full_context_is_compacted_in_a_pause(tmp_path: Path, own_home: Path, is_on: bool) -> None:
    flags(own_home, "[microcompact]\neconomic = false\n")
    told = list[str]()

    async def work(session: Session) -> int:
        session.listen(lambda event: told.append(event.text) if isinstance(event, Notice) else None)
        assert ended(await turn(session, "read")).reason == "answered"
        limits = session.parts.limits
        assert limits.warning < session.view.meter.tokens < limits.autocompact, "else the test measures nothing"
        if is_on:
            await until(lambda: boundaries(session))
        else:
            await asyncio.sleep(0.5)  # it would be done by now
        assert ended(await turn(session, "go on")).reason == "answered"
        return len(boundaries(session))

    overrides = {**QUICK, "compaction.idle": is_on}
    made = in_session(work, cwd=tmp_path, model=nearly_full(tmp_path), session_id=SESSION, overrides=overrides)
    assert made == int(is_on) and any("Compacted" in text for text in told) == is_on


def test_a_message_stops_the_compaction_of_a_pause(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    flags(own_home, "session_notes = false\n[microcompact]\neconomic = false\n")
    model = nearly_full(tmp_path)
    Path(model.partition(":")[2]).write_text(
        Path(model.partition(":")[2]).read_text().replace("[compaction]\n", "[compaction]\nwait 1000\n")
    )

    async def work(session: Session) -> int:
        await turn(session, "read")
        await until(lambda: '"purpose": "compaction"' in prefix_watch.read_text())  # the summary is being written
        assert ended(await turn(session, "go on")).reason == "answered"
        return len(boundaries(session))

    assert in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=QUICK) == 0


def test_a_summary_that_was_cut_off_is_asked_again_shorter(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    flags(own_home, "session_notes = false\n")
    files(tmp_path, 3, 9_000)
    again = "when /was cut off/\n  say <summary>All that matters.</summary>\nend\n"
    cut = f"\n[compaction]\n{again}say <summary>half\nstop max_tokens\n"
    model = script(tmp_path, 'call Read {"file_path": "f1.txt"}\n---\nsay Read.\n' + cut)

    async def work(session: Session) -> tuple[str, str]:
        await turn(session, "read")
        done = await session.compact()
        return done.writer, str([message.wire() for message in session.view.messages()])

    writer, text = in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    asked = sent(prefix_watch, "compaction")
    assert writer == "fork" and "All that matters." in text and len(asked) == 2
    assert "was cut off" in asked[1].parts[-1] and "was cut off" not in asked[0].parts[-1]


def test_a_cap_that_is_reached_during_a_run_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def anything(_call: ToolCall) -> Decision:
        return Allow()

    async def work(session: Session) -> int:
        await turn(session, "go")
        with pytest.raises(BudgetSpent, match="background_tokens_per_day"):
            await session.fork("Look.", purpose=Purpose.EXTRACTION, permission=anything, max_rounds=9)
        return len(session.view.fork_usage)

    files(tmp_path, 1, 400)
    endless = 'repeat forever\n  call Read {"file_path": "f1.txt"}\nend\n'
    with served(f"say Fine.\n\n[extraction]\n{endless}", monkeypatch):
        overrides = {"budget.background_tokens_per_day": 1}
        assert in_session(work, cwd=tmp_path, model=ANTHROPIC, overrides=overrides) == 1, "one request, not nine"
