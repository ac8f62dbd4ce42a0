"""What is weighed is what is shown: a cleared or replaced result counts with what stands for it, everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.layers.l3_session_notes.notes_compaction import first_kept
from reverie.layers.l3_session_notes.trigger import WRITER, NoteNumbers
from reverie.layers.l4_compaction.folding import old_runs
from reverie.layers.weighing import weigh_entries
from reverie.session import Session
from reverie.storage.transcript.records import CacheEdits, Clears, Cursor, Fold, ResultDecisions, SessionHeader
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock
from tests.layers.talks import compaction_script, flags
from tests.sessions import ended, in_session, script, turn

ROUNDS = 120
RECORDED = "a line of a long file\n" * 400
SAID = "I have looked at this file and go on. " * 20


def rounds(log: SessionLog, count: int = ROUNDS) -> None:
    """A conversation of many rounds whose results are all cleared but for the last."""
    log.append_message(Message("user", (TextBlock("Read all of them.", Origin.TYPED),)))
    for number in range(count):
        call = ToolUseBlock(f"t{number}", "Read", {"file_path": f"f{number}"})
        log.append_message(Message("assistant", (TextBlock(SAID, Origin.MODEL), call), fields={"id": f"m{number}"}))
        log.append_message(Message("user", (ToolResultBlock(f"t{number}", RECORDED),)))
    log.append(Clears("time", {f"t{number}": "(cleared)" for number in range(count - 1)}))


def held() -> SessionLog:
    log = SessionLog(None, "s", cwd=Path("/w"), version="1")
    log.append(SessionHeader("embedded", ("Be good.",), ()))
    rounds(log)
    return log


def test_decided_results_weigh_what_stands_for_them() -> None:
    view = held().view
    whole, cleared = view.entries[-1:], view.entries[2:3]
    assert weigh_entries(view, whole) > 1_500 and weigh_entries(view, cleared) < 50
    assert abs(weigh_entries(view, view.entries) - view.meter.tokens) < 0.05 * view.meter.tokens
    log = held()
    log.append(ResultDecisions({f"t{ROUNDS - 1}": "(on disk)"}))
    assert weigh_entries(log.view, log.view.entries[-1:]) < 50
    log = held()
    log.append(CacheEdits((f"t{ROUNDS - 1}",)))
    assert weigh_entries(log.view, log.view.entries[-1:]) == 0


def test_the_keep_rule_of_the_notes_goes_by_what_is_shown() -> None:
    log = held()
    log.append(Cursor(WRITER, log.view.entries[-1].uuid))
    numbers = NoteNumbers()
    start = first_kept(log.view, numbers)
    assert start is not None
    kept = log.view.with_entries(log.view.entries[start:]).meter.tokens
    assert numbers.keep_tokens <= kept < numbers.keep_tokens * 1.3, "enough to go on from, and not a tenth of it"


def test_snip_drops_as_much_as_it_says() -> None:
    log = held()
    before, runs = log.view.meter.tokens, old_runs(log.view, 6_000)
    for run in runs:
        log.append(Fold("snip", run.entries[0].uuid or "", run.entries[-1].uuid or "", tokens=run.tokens))
    assert 6_000 <= before - log.view.meter.tokens < 8_000
    assert abs(sum(run.tokens for run in runs) - (before - log.view.meter.tokens)) < 500


@pytest.mark.parametrize("window", [32_000, 48_000, 64_000])
def test_undo_brings_back_as_much_as_fits(tmp_path: Path, own_home: Path, window: int) -> None:
    flags(own_home, "session_notes = false\nmicrocompact.economic = false\n")

    async def work(session: Session) -> None:
        session.ensure_header()
        rounds(session.log, 2 * ROUNDS)
        await session.compact()
        await session.undo(fit=True)
        limits, used = session.conversation.thresholds, session.view.meter.tokens
        assert 0.88 * limits.autocompact < used < limits.autocompact, "not a fraction of what would fit"
        made = session.view.boundaries
        assert ended(await turn(session, "Go on.")).reason == "answered"
        assert session.view.boundaries == made, "what was taken back is not compacted again at once"

    model = script(tmp_path, "say Fine.\n" + compaction_script())
    in_session(work, cwd=tmp_path, model=model, overrides={"window.context_window": window})
