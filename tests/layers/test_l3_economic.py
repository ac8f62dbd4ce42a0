"""Notes that pay for themselves: code keeps them for free, a model is asked shortly before a compaction."""

from __future__ import annotations

from pathlib import Path

from reverie.layers.l2_microcompact.economic import Rates
from reverie.layers.l3_session_notes.sections import is_intact
from reverie.layers.l3_session_notes.trigger import NoteNumbers, pays
from reverie.layers.l3_session_notes.writer import default_template
from reverie.session import Session
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock
from tests.layers.talks import (
    READS,
    SESSION,
    SMALL,
    boundaries,
    compaction_script,
    files,
    flags,
    notes_path,
    notes_script,
    sent,
)
from tests.sessions import in_session, script, turn
from tests.waiting import LIMIT_S


def test_far_from_the_threshold_code_keeps_the_notes_and_no_model_is_asked(tmp_path: Path, prefix_watch: Path) -> None:
    files(tmp_path, 40, 4_000)
    model = script(tmp_path, READS + notes_script(tmp_path))

    async def work(session: Session) -> str | None:
        await turn(session, "read the files, and never touch f7.txt")
        await session.tasks.drain(LIMIT_S)
        return session.view.cursors.get("notes")

    cursor = in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides={"tools.max_rounds": 20})
    text = notes_path(tmp_path).read_text()
    assert cursor is not None and not sent(prefix_watch, "notes")
    assert is_intact(text, default_template()) and "never touch f7.txt" in text and "f12.txt" in text
    assert notes_path(tmp_path).stat().st_mode & 0o777 == 0o600


def test_what_the_user_wrote_in_the_notes_is_not_overwritten(tmp_path: Path) -> None:
    files(tmp_path, 60, 4_000)
    model = script(tmp_path, READS)

    async def work(session: Session) -> None:
        await turn(session, "read")
        await session.tasks.drain(LIMIT_S)
        path = notes_path(tmp_path)
        path.write_text(path.read_text() + "\nMy own line.\n")
        await turn(session, "read on")
        await session.tasks.drain(LIMIT_S)

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides={"tools.max_rounds": 14})
    assert "My own line." in notes_path(tmp_path).read_text()


def test_a_jump_over_the_threshold_and_a_long_compact_by_hand_find_notes(tmp_path: Path, prefix_watch: Path) -> None:
    (tmp_path / "large.txt").write_text("the lamp of the harbour burns all night long\n" * 900)
    files(tmp_path, 20, 4_000)
    reads = "".join(f'call Read {{"file_path": "f{n}.txt"}}\n---\n' for n in range(1, 8))
    jump = "\n".join('call Read {"file_path": "large.txt"}' for _ in range(3))
    model = script(tmp_path, f"{reads}{jump}\n---\nsay Done.\n---\nsay Again.\n" + compaction_script())

    async def work(session: Session) -> tuple[list[str], str]:
        await turn(session, "read; never touch f7.txt")
        await session.tasks.drain(LIMIT_S)
        made = [one.writer for one in boundaries(session)]
        return made, (await session.compact()).writer if not made else made[0]

    made, by_hand = in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=dict(SMALL))
    assert set(made) <= {"notes"} and by_hand == "notes" and not sent(prefix_watch, "compaction")


def test_a_model_is_asked_near_the_threshold_after_the_main_request(
    tmp_path: Path, own_home: Path, prefix_watch: Path
) -> None:
    files(tmp_path, 60, 3_000)
    paced = READS.replace("  call", "  wait 0.02\n  call")
    model = script(tmp_path, paced + notes_script(tmp_path, "Files are read.") + compaction_script())

    async def work(session: Session) -> None:
        await turn(session, "read")
        await session.tasks.drain(LIMIT_S)

    flags(own_home, "[microcompact]\neconomic = false\n")  # so that the window fills
    overrides = {"tools.max_rounds": 45, **SMALL}
    in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides)
    asked = [one for one in sent(prefix_watch, "notes") if "<notes>" in one.parts[-1]]
    assert 1 <= len(asked) <= 5
    for fork in asked:
        assert any(fork.parts[: len(one.parts)] == one.parts for one in sent(prefix_watch, "main")), (
            "the newest round was sent by the main request before"
        )


def conversation(rounds: int, size: int) -> SessionLog:
    log = SessionLog(None, "s", cwd=Path("/p"), version="0")
    log.append_message(Message("user", (TextBlock("look", Origin.TYPED),)))
    for number in range(rounds):
        usage = {
            "input_tokens": 0,
            "cache_read_input_tokens": log.view.meter.tokens,
            "cache_creation_input_tokens": size,
            "output_tokens": 200,
        }
        call = ToolUseBlock(f"t{number}", "Bash", {"command": f"run {number}"})
        log.append_message(Message("assistant", (call,), fields={"id": f"m{number}", "usage": usage}))
        log.append_message(Message("user", (ToolResultBlock(f"t{number}", "word " * size),)))
    return log


def test_notes_pay_only_near_the_threshold_and_in_a_conversation_that_cost_much_more() -> None:
    log, numbers, rates = conversation(80, 1_600), NoteNumbers(), Rates()
    used = log.view.meter.tokens
    assert not pays(log.view, numbers, rates, full_at=used * 2, window=200_000), "far away"
    assert pays(log.view, numbers, rates, full_at=used + 2_000, window=200_000)
    short = conversation(4, 32_000)
    used = short.view.meter.tokens
    assert not pays(short.view, numbers, rates, full_at=used + 2_000, window=200_000), "dearer than what it is about"
