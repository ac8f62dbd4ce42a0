"""An answer that was cut off at the output limit and went on is one answer, wherever it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.cli.run_view import TextView
from reverie.errors import NoAnswer
from reverie.layers.l4_compaction.by_code.work import WorkRecord
from reverie.permissions.rules import Deny, ToolCall
from reverie.session import Session
from reverie.types import Purpose
from tests.agents.talk import results
from tests.sessions import ended, in_session, script, turn

PARTS = "say The harbour op\nstop max_tokens\n---\nsay ens at sev\nstop max_tokens\n---\nsay en.\n"
WHOLE = "The harbour opens at seven."


def test_ask_and_the_end_of_the_turn_hold_the_whole_answer(tmp_path: Path) -> None:
    model = script(tmp_path, PARTS)
    assert in_session(lambda session: session.ask("when?"), cwd=tmp_path, model=model) == WHOLE
    assert ended(in_session(lambda session: turn(session, "when?"), cwd=tmp_path, model=model)).text == WHOLE


def test_a_part_before_a_call_is_no_part_of_the_answer_after_it(tmp_path: Path) -> None:
    play = 'say I look\nstop max_tokens\n---\nsay  there.\ncall Glob {"pattern": "*"}\n---\n' + PARTS
    assert in_session(lambda session: session.ask("when?"), cwd=tmp_path, model=script(tmp_path, play)) == WHOLE


def test_the_last_round_may_finish_its_sentence(tmp_path: Path) -> None:
    model = script(tmp_path, PARTS)
    event = ended(in_session(lambda s: turn(s, "when?"), cwd=tmp_path, model=model, overrides={"tools.max_rounds": 1}))
    assert (event.reason, event.text) == ("answered", WHOLE)


def test_an_answer_that_never_ends_is_told_as_far_as_it_came(tmp_path: Path) -> None:
    model = script(tmp_path, "repeat forever\n  say more \n  stop max_tokens\nend\n")
    event = ended(in_session(lambda s: turn(s, "go"), cwd=tmp_path, model=model))
    assert (event.reason, event.text.count("more")) == ("cut_off", 4), "the answer and three nudges"
    assert event.exit_code == 1


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
def test_an_answer_that_is_not_complete_is_never_called_answered(
    stop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = f"repeat forever\n  say more\n  stop {stop}\nend\n"

    async def work(session: Session) -> None:
        view = TextView(tmp_path, quiet=True)
        async for event in session.send("go"):
            view.show(event)
        with pytest.raises(NoAnswer) as raised:
            await session.ask("again")
        assert raised.value.text.startswith("more")
        assert "not complete" in await session.ask_aside("When?")

    in_session(work, cwd=tmp_path, model=script(tmp_path, f"{cut}\n[*]\n{cut}"))
    shown = capsys.readouterr()
    assert shown.out.startswith("more")
    assert "not complete" in shown.err


def test_run_prints_it_without_a_break_in_the_middle_of_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(session: Session) -> None:
        view = TextView(tmp_path, quiet=True)
        async for event in session.send("when?"):
            view.show(event)

    in_session(work, cwd=tmp_path, model=script(tmp_path, PARTS))
    assert capsys.readouterr().out == WHOLE + "\n"


def test_forks_side_questions_and_sub_agents_report_the_whole_answer(tmp_path: Path) -> None:
    call = 'call Agent {"description": "look", "prompt": "When?", "subagent_type": "general"}'
    play = f"{call}\n---\nsay Asked.\n\n[*]\nwhen /When/\n{PARTS}end\n"

    async def deny(_call: ToolCall) -> Deny:
        return Deny("no")

    async def work(session: Session) -> None:
        await turn(session, "go")
        assert [text for text, _ in results(session)] == [WHOLE]
        fork = await session.fork("When?", purpose=Purpose.NOTES, permission=deny, max_rounds=1)
        assert (fork.reason, fork.text) == ("answered", WHOLE)
        assert await session.ask_aside("When?") == WHOLE

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_a_summary_by_code_quotes_the_whole_result(tmp_path: Path) -> None:
    async def work(session: Session) -> str:
        await turn(session, "when?")
        return WorkRecord.of(session.view.entries).result

    assert in_session(work, cwd=tmp_path, model=script(tmp_path, PARTS)) == WHOLE
