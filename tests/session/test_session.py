"""A conversation end to end, through the public API, with scripted models and real tools."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import reverie
from reverie.errors import ReverieError, SessionBusy, UnknownModel, UserError
from reverie.events import (
    AnswerRestarted,
    Event,
    Notice,
    PermissionAsked,
    Retrying,
    RoundFinished,
    SessionOpened,
    ToolFinished,
    TurnEnded,
)
from reverie.models.request_log import read_log
from reverie.session.session import CRASHED, Session
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import ForkUsage
from reverie.types import Origin
from tests import warm
from tests.sessions import ended, in_session, of_kind, script, turn
from tests.waiting import LIMIT_S


def wire(session: Session) -> list[object]:
    return [message.wire() for message in session.view.messages()]


def test_a_turn_with_tools_is_recorded_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")
    model = script(tmp_path, 'say Looking.\ncall Read {"file_path": "a.txt"}\n---\nsay It says alpha.\n')
    events = in_session(lambda s: turn(s, "what is in a.txt?"), cwd=tmp_path, model=model)
    assert isinstance(events[0], SessionOpened)
    assert ended(events) == TurnEnded("answered", "It says alpha.", ended(events).usage, 2)
    assert "alpha" in of_kind(events, ToolFinished)[0].text
    assert len(of_kind(events, RoundFinished)) == 2


def test_resume_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    model = script(tmp_path, "say One.\n---\nsay Two.\n---\nsay Three.\n")

    async def first(session: Session) -> list[object]:
        await turn(session, "first")
        await turn(session, "second")
        return wire(session)

    sent = in_session(first, cwd=tmp_path, model=model)

    async def second(session: Session) -> tuple[list[object], str]:
        before = wire(session)
        return before, ended(await turn(session, "third")).text

    resumed, answer = in_session(second, cwd=tmp_path, resume="last")
    assert resumed == sent
    assert answer == "Three."


def test_a_resume_on_another_day_keeps_the_prefix_and_tells_the_date(tmp_path: Path) -> None:
    model = script(tmp_path, "say One.\n---\nsay Two.\n---\nsay Three.\n")
    day = datetime(2026, 3, 1, 12, tzinfo=UTC)
    in_session(lambda s: turn(s, "first"), cwd=tmp_path, model=model, clock=lambda: day)

    async def next_day(session: Session) -> list[object]:
        await turn(session, "second")
        await turn(session, "third")
        return wire(session)

    messages = in_session(next_day, cwd=tmp_path, resume="last", clock=lambda: day + timedelta(days=1))
    told = [str(message) for message in messages if "2026-03-02" in str(message)]
    assert len(told) == 1, "the new date is told once"


def test_thirty_parallel_calls_come_back_in_the_order_they_were_made(tmp_path: Path) -> None:
    for i in range(1, 31):
        (tmp_path / f"f{i}.txt").write_text(f"content {i}\n")
    model = script(tmp_path, 'call Read {"file_path": "f{i}.txt"} x30\n---\nsay Done.\n')

    async def work(session: Session) -> list[object]:
        await turn(session, "read them all")
        return wire(session)

    messages = in_session(work, cwd=tmp_path, model=model)
    results = messages[2]["content"]  # type: ignore[index]
    assert len(results) == 30
    assert [f"content {i}" in str(block) for i, block in enumerate(results, 1)] == [True] * 30


def test_faults_are_retried_and_a_cut_answer_is_declared_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = script(tmp_path, "fail overloaded 2x\nfail cut 8\nsay This is the whole answer.\n")
    options = {"model.retry_first_wait_s": 0.01, "model.retry_longest_wait_s": 0.01}
    events = in_session(lambda s: turn(s, "go"), cwd=tmp_path, model=model, overrides=options)
    assert ended(events).text == "This is the whole answer."
    assert len(of_kind(events, Retrying)) == 3
    assert len(of_kind(events, AnswerRestarted)) == 1


def test_errors_that_do_not_pass_end_the_turn_with_a_sentence(tmp_path: Path) -> None:
    model = script(tmp_path, "fail authentication\nsay x\n---\nsay fine\n")

    async def work(session: Session) -> tuple[TurnEnded, TurnEnded]:
        return ended(await turn(session, "go")), ended(await turn(session, "again"))

    failed, _ = in_session(work, cwd=tmp_path, model=model)
    assert failed.reason == "failed" and failed.error


def test_a_prompt_that_is_too_long_is_shown_when_nothing_can_shorten_it(tmp_path: Path) -> None:
    model = script(tmp_path, "fail prompt-too-long 208310 > 200000\nsay x\n")
    event = ended(in_session(lambda s: turn(s, "go"), cwd=tmp_path, model=model))
    assert event.reason == "failed" and "208310" in (event.error or "").replace(",", "")


def test_a_cut_off_answer_is_asked_again_with_a_higher_cap_then_nudged(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        "say Part one.\nstop max_tokens\n---\nsay Part two.\nstop max_tokens\n---\nsay Part three.\n",
    )

    async def work(session: Session) -> tuple[list[Event], list[object], int]:
        events = await turn(session, "write a lot")
        booked = sum(isinstance(p, ForkUsage) for p in session.view.fork_usage)
        return events, wire(session), booked

    overrides = {"window.context_window": 200_000}
    events, messages, booked = in_session(work, cwd=tmp_path, model=model, overrides=overrides)
    assert ended(events).text == "Part one.Part two.Part three."
    assert booked == len(of_kind(events, AnswerRestarted))
    assert sum("cut off at the output limit" in str(message) for message in messages) == 2


def test_a_model_that_never_stops_calling_is_stopped(tmp_path: Path) -> None:
    model = script(tmp_path, 'repeat forever\n  call Glob {"pattern": "*"}\nend\n')
    overrides = {"tools.max_rounds": 7}
    event = ended(in_session(lambda s: turn(s, "go"), cwd=tmp_path, model=model, overrides=overrides))
    assert (event.reason, event.rounds) == ("max_rounds", 7)


def test_malformed_input_and_unknown_tools_are_answered(tmp_path: Path) -> None:
    model = script(tmp_path, 'malformed Read {"file_path": \ncall Nothing {"a": 1}\n---\nsay I see.\n')
    events = in_session(lambda s: turn(s, "go"), cwd=tmp_path, model=model)
    first, second = of_kind(events, ToolFinished)
    assert first.is_error and second.is_error and "Nothing" in second.text + first.text
    assert ended(events).reason == "answered"


def test_cancel_leaves_a_conversation_that_goes_on(tmp_path: Path) -> None:
    model = script(tmp_path, 'call Bash {"command": "sleep 1000"}\n---\nsay Fine.\n---\nsay Still fine.\n')

    async def work(session: Session) -> tuple[TurnEnded, TurnEnded, list[object]]:
        events = list[Event]()
        async for event in session.send("go"):
            events.append(event)
            if event.kind == "tool_started":
                assert session.cancel()
        return ended(events), ended(await turn(session, "and now?")), wire(session)

    overrides = {"permissions.mode": "accept_all"}
    cancelled, after, messages = in_session(work, cwd=tmp_path, model=model, overrides=overrides)
    assert cancelled.reason == "cancelled"
    assert after.reason == "answered"
    assert "Interrupted by the user" in str(messages[2])


def test_leaving_the_stream_early_cancels_the_turn(tmp_path: Path) -> None:
    model = script(tmp_path, "slow 0.05\nfill 600\n---\nsay Next.\n")

    async def work(session: Session) -> TurnEnded:
        stream = session.send("go")
        async for event in stream:
            if event.kind == "text":
                break
        await stream.aclose()  # type: ignore[attr-defined]
        return ended(await turn(session, "again"))

    assert in_session(work, cwd=tmp_path, model=model).reason == "answered"


def test_permission_questions_are_asked_answered_and_remembered(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        'call Write {"file_path": "new.txt", "content": "x"}\n---\nsay One.\n---\n'
        'call Bash {"command": "touch b.txt"}\n---\nsay Two.\n---\n'
        'call Bash {"command": "touch b.txt"}\n---\nsay Three.\n',
    )

    async def work(session: Session) -> list[PermissionAsked]:
        asked = list[PermissionAsked]()
        answers = iter([(False, False), (True, True)])
        for text in ("one", "two", "three"):
            async for event in session.send(text):
                if isinstance(event, PermissionAsked):
                    asked.append(event)
                    allow, always = next(answers)
                    assert session.gate.answer(event.id, allow=allow, always=always)
        return asked

    asked = in_session(work, cwd=tmp_path, model=model, interactive=True)
    assert [event.tool for event in asked] == ["Write", "Bash"], "the third call was always allowed"
    assert not (tmp_path / "new.txt").exists() and (tmp_path / "b.txt").exists()


def test_without_a_person_what_would_be_asked_is_refused(tmp_path: Path) -> None:
    model = script(tmp_path, 'call Write {"file_path": "new.txt", "content": "x"}\n---\nsay Refused.\n')
    events = in_session(lambda s: turn(s, "go"), cwd=tmp_path, model=model)
    assert of_kind(events, ToolFinished)[0].is_error
    assert not (tmp_path / "new.txt").exists()


def test_a_session_is_open_in_one_place_only(tmp_path: Path) -> None:
    model = script(tmp_path, "say One.\n---\nsay Two.\n")

    async def work(session: Session) -> None:
        await turn(session, "go")
        with pytest.raises(SessionBusy, match=str(os.getpid())):
            await Session.open(cwd=tmp_path, resume="last")

    in_session(work, cwd=tmp_path, model=model)
    in_session(lambda s: turn(s, "again"), cwd=tmp_path, resume="last")


def test_open_calls_of_a_crashed_session_are_closed_by_record(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys\nfrom reverie.session import Session\n"
        "async def main():\n"
        "    s = await Session.open(cwd=sys.argv[1], model=sys.argv[2], overrides={'permissions.mode': 'accept_all'})\n"
        "    async for e in s.send('go'):\n"
        "        if e.kind == 'tool_started' and e.name == 'Bash':\n            os._exit(9)\n"
        "asyncio.run(main())\n"
    )
    (tmp_path / "a.txt").write_text("alpha")
    model = script(
        tmp_path, 'call Read {"file_path": "a.txt"}\ncall Bash {"command": "touch x; sleep 60"}\n---\nsay Went on.\n'
    )
    assert warm.start(program, str(tmp_path), model, module="-c").wait(LIMIT_S) == 9

    async def work(session: Session) -> tuple[str, list[object]]:
        return ended(await turn(session, "go on")).text, wire(session)

    text, messages = in_session(work, cwd=tmp_path, resume="last")
    assert text == "Went on."
    results = messages[2]["content"]  # type: ignore[index]
    assert "alpha" in str(results[0]) and CRASHED in str(results[1])


def test_a_broken_transcript_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    model = script(tmp_path, "say One.\n---\nsay Two.\n")
    path = in_session(_turn_and_path, cwd=tmp_path, model=model)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], b"garbage", *lines[1:], b'{"torn": ']))
    events = in_session(lambda s: turn(s, "again"), cwd=tmp_path, resume="last")
    notices = [notice.text for notice in of_kind(events, Notice)]
    assert any("2 (" in text and "kept" in text for text in notices)
    assert ended(events).text == "Two."
    assert b"garbage" in path.read_bytes()


async def _turn_and_path(session: Session) -> Path:
    await turn(session, "go")
    return session.places.transcript(session.id)


def test_a_home_that_cannot_be_written_keeps_the_conversation_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "file" / "home"))
    model = script(tmp_path, "say One.\n---\nsay Two.\n")

    async def work(session: Session) -> tuple[list[Event], TurnEnded]:
        return await turn(session, "go"), ended(await turn(session, "more"))

    events, second = in_session(work, cwd=tmp_path, model=model)
    assert any(notice.level == "error" and "in memory" in notice.text for notice in of_kind(events, Notice))
    assert second.text == "Two."


def test_another_model_is_an_announced_break(tmp_path: Path, prefix_watch: Path) -> None:
    model = script(tmp_path, "say One.\n")
    other = script(tmp_path, "say x\n---\nsay Other.\n", "other.script")
    in_session(lambda s: turn(s, "go"), cwd=tmp_path, model=model)
    events = in_session(lambda s: turn(s, "again"), cwd=tmp_path, model=other, resume="last")
    assert ended(events).text == "Other."
    assert [bool(request.announced_break) for request in read_log(prefix_watch)] == [False, True]


def test_bad_names_and_places_are_one_sentence(tmp_path: Path) -> None:
    for options, kind in [
        ({"cwd": tmp_path / "nowhere"}, UserError),
        ({"cwd": tmp_path, "model": "antropic:claude"}, UnknownModel),
        ({"cwd": tmp_path, "model": "scripted:/no/such/file"}, UserError),
        ({"cwd": tmp_path, "resume": "last"}, UserError),
        ({"cwd": tmp_path, "session_id": "../../etc"}, UserError),
    ]:
        with pytest.raises(kind) as caught:
            in_session(lambda s: turn(s, "x"), **options)
        assert "\n" not in str(caught.value) and str(caught.value)
    with pytest.raises(UserError, match="empty"):
        in_session(lambda s: turn(s, "  "), cwd=tmp_path)


def test_the_blocking_one_liner(tmp_path: Path) -> None:
    model = script(tmp_path, "say Forty-two.\n")
    assert reverie.ask("what is it?", cwd=tmp_path, model=model) == "Forty-two."
    with pytest.raises(ReverieError):
        reverie.ask("again", cwd=tmp_path, model=script(tmp_path, "fail authentication\nsay x\n"))


def test_origins_are_on_record(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    model = script(tmp_path, 'call Read {"file_path": "a.txt"}\n---\nsay Done.\n')
    path = in_session(_turn_and_path, cwd=tmp_path, model=model)
    origins = [block.origin for r in read_records(path).records if r.message for block in r.message.content]
    assert origins == [Origin.ENTERED, Origin.MODEL, Origin.TOOL, Origin.MODEL]


def test_two_turns_at_once_are_refused(tmp_path: Path) -> None:
    model = script(tmp_path, "say One.\n")

    async def work(session: Session) -> None:
        async for _ in session.send("first"):
            with pytest.raises(UserError, match="a turn is running"):
                await turn(session, "second")

    in_session(work, cwd=tmp_path, model=model)


def test_a_call_that_a_hook_changed_is_judged_as_what_it_became(tmp_path: Path) -> None:
    """A hook turns a command that only reads into one that writes: it is a writing command from then on."""
    said = json.dumps({"hookSpecificOutput": {"updatedInput": {"command": "touch made"}}})
    (tmp_path / "hook.sh").write_text(f"cat <<'END'\n{said}\nEND\n")
    hook = f'[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "sh {tmp_path / "hook.sh"}"\n'
    home = Path(os.environ["REVERIE_HOME"])
    home.mkdir(parents=True)
    (home / "settings.toml").write_text(hook)
    model = script(tmp_path, 'call Bash {"command": "ls"}\n---\nsay done\n')
    events = in_session(lambda session: turn(session, "look"), cwd=tmp_path, model=model)
    (finished,) = of_kind(events, ToolFinished)
    assert finished.is_error and not (tmp_path / "made").exists(), finished
