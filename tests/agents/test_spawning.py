"""Starting agents: limits, names, who is asked, what ends with whom, and what becomes of results."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from reverie.agents.messages.roster import MAIN
from reverie.events import Event, Notice, PermissionAsked, TaskChanged, TurnEnded
from reverie.runtime.tasks import TaskState
from reverie.session import Session
from tests.agents.talk import define, of_agents, part, results, said_to_main, transcripts
from tests.sessions import ended, in_session, of_kind, script, turn
from tests.waiting import LIMIT_S, until

FRONT = '"subagent_type": "general"'
BACK = '"subagent_type": "general", "run_in_background": true'


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a turn sets off by itself is not what is looked at here."""
    for flag in ("EXTRACTION", "SESSION_NOTES", "DREAM"):
        monkeypatch.setenv(f"REVERIE_FLAG_{flag}", "0")


def errors(session: Session) -> list[str]:
    return [text for text, failed in results(session) if failed]


# -- what cannot be


def test_an_unknown_kind_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    define(tmp_path, "reviewer")
    play = 'call Agent {"description": "x", "prompt": "y", "subagent_type": "revewer"}\n---\nsay Well.\n'

    async def work(session: Session) -> None:
        await turn(session, "go")
        assert errors(session) == ["There is no kind of agent called 'revewer': there are explore, general, reviewer."]

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ('"name": "main"', "an agent called main exists already"),
        ('"name": "no such name!"', "is not a valid agent name"),
        ('"isolation": "worktree"', "is not in a git repository"),
        ('"model": "anthropic:claude-none"', "There is no Anthropic key"),
        ('"isolation": "elsewhere"', "does not fit"),
    ],
)
def test_what_cannot_be_is_a_sentence(tmp_path: Path, given: str, says: str) -> None:
    play = f'call Agent {{"description": "x", "prompt": "y", {FRONT}, {given}}}\n---\nsay Well.\n\n[agent]\nsay no.\n'

    async def work(session: Session) -> None:
        await turn(session, "go")
        assert len(errors(session)) == 1 and says in errors(session)[0]
        assert session.agents.spawner.roster.names() == [MAIN]

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"permissions.mode": "accept_all"})


def test_an_empty_prompt_starts_nobody(tmp_path: Path) -> None:
    play = 'call Agent {"description": "x", "prompt": "  "}\n---\nsay Well.\n'

    async def work(session: Session) -> None:
        await turn(session, "go")
        assert "The prompt is empty" in errors(session)[0]

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_no_deeper_than_the_limit(tmp_path: Path) -> None:
    play = f"""
call Agent {{"description": "level", "prompt": "Go down.", {FRONT}}}
---
say Done: {{result}}

[agent]
call Agent {{"description": "level", "prompt": "Go down.", {FRONT}}}
---
say {{result}}
"""

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert "You are 2 levels below the main agent" in ended(events).text
        assert len(transcripts(session)) == 2, "two were started, the third was refused"

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"agents.depth": 2})


def test_no_more_at_once_than_the_limit_and_room_again_afterwards(tmp_path: Path) -> None:
    play = f"""
call Agent {{"description": "job {{i}}", "prompt": "Wait.", {BACK}}} x3
---
say Two of three.
---
call Agent {{"description": "one more", "prompt": "Wait.", {FRONT}}}
---
say Fine.
---
say Fine.

[agent]
wait 0.2
say Waited.
"""

    async def work(session: Session) -> None:
        await turn(session, "go")
        (refused,) = errors(session)
        assert "2 agents are running, which is the limit" in refused and "general, general-2" in refused
        assert "Waited." in [text for text, _ in results(session)], "later there was room"

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"agents.at_once": 2})


def test_an_agent_that_never_ends_is_stopped_and_says_so(tmp_path: Path) -> None:
    play = f"""
call Agent {{"description": "loop", "prompt": "Loop.", {FRONT}}}
---
say {{result}}

[agent]
repeat forever
  say round {{round}}
  call Glob {{"pattern": "*.none"}}
end
"""

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert "It was stopped after 4 rounds" in ended(events).text and "round 4" in ended(events).text

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"agents.max_rounds": 4})


# -- ending


def test_cancelling_the_turn_ends_those_in_front_of_it_and_all_below(tmp_path: Path) -> None:
    play = f"""
call Agent {{"description": "outer", "prompt": "Outer.", {FRONT}}}
---
say never

[agent]
when /Outer/
  call Agent {{"description": "inner", "prompt": "Inner.", {FRONT}}}
end
when /Inner/
  wait 1000
  say never
end
"""

    async def work(session: Session) -> None:
        async for event in session.send("go"):
            if isinstance(event, TaskChanged) and "inner" in event.title and event.state == "running":
                session.cancel()
            if isinstance(event, TurnEnded):
                assert event.reason == "cancelled"
        assert not session.tasks.running and session.agents.spawner.roster.names() == [MAIN]
        states = [info.state for info in session.tasks.list() if info.purpose.value == "agent"]
        assert states == [TaskState.KILLED, TaskState.KILLED]

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_killing_an_agent_ends_everyone_below_it_and_tells_its_parent(tmp_path: Path) -> None:
    play = f"""
call Agent {{"description": "outer", "prompt": "Outer.", {BACK}, "name": "outer"}}
---
say Waiting.
---
say Over: {{text}}

[agent]
when /Outer/
  call Agent {{"description": "inner", "prompt": "Inner.", {BACK}, "name": "inner"}}
  ---
  say I wait for it.
end
when /Inner/
  wait 1000
  say never
end
"""

    async def work(session: Session) -> None:
        roster, events = session.agents.spawner.roster, list[object]()
        async for event in session.send("go"):
            events.append(event)
            if isinstance(event, TaskChanged) and "inner:" in event.title and event.state == "running":
                outer = roster.find("outer")
                assert outer is not None and [one.name for one in roster.children(outer.id)] == ["inner"]
                await session.tasks.kill(outer.id)
        assert roster.names() == [MAIN] and not session.tasks.running
        assert "outer (outer) was stopped before it was done." in said_to_main(session)
        assert "Over" in ended(events).text  # type: ignore[arg-type]

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_an_agent_that_falls_over_is_told_and_harms_nobody(tmp_path: Path) -> None:
    play = f"""
call Agent {{"description": "front", "prompt": "Fall in front.", {FRONT}}}
call Agent {{"description": "back", "prompt": "Fall behind.", {BACK}}}
---
say Waiting.
---
say I see.

[agent]
fail authentication
say never
"""

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert "(front) failed:" in errors(session)[0]
        assert "(back) failed:" in said_to_main(session)
        assert ended(events).reason == "answered"

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_closing_a_session_ends_its_agents(tmp_path: Path) -> None:
    play = f'call Agent {{"description": "x", "prompt": "y", {BACK}}}\n---\nsay Later.\n\n[agent]\nwait 60\nsay never\n'

    async def run() -> None:
        session = await Session.open(
            cwd=tmp_path,
            model=script(tmp_path, play),
            interactive=True,
            overrides={"background.exit_wait_s": 0.3},
        )
        events = await turn(session, "go")
        assert ended(events).text == "Later.", "somebody sits here: the turn does not wait"
        assert len(session.tasks.running) == 1
        await asyncio.wait_for(session.close(), LIMIT_S)
        assert session.tasks.list()[-1].state is TaskState.KILLED

    asyncio.run(run())


# -- results


def test_a_long_report_is_kept_on_disk_in_front_and_behind(tmp_path: Path) -> None:
    play = f"""
call Agent {{"description": "front", "prompt": "Talk.", {FRONT}}}
call Agent {{"description": "back", "prompt": "Talk.", {BACK}}}
---
say Waiting.
---
say Enough.

[agent]
fill 90000
"""

    async def work(session: Session) -> None:
        await turn(session, "go")
        shown = said_to_main(session) + "".join(text for text, _ in results(session))
        kept = [Path(found) for found in re.findall(r"/\S+tool-results/\S+\.txt", shown)]
        assert len({*kept}) == 2 and len(re.findall("(?:<|&lt;)persisted-output>", shown)) == 2 and len(shown) < 20_000
        assert all(len(path.read_text()) >= 90_000 for path in kept)

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_agents_in_front_run_side_by_side(tmp_path: Path) -> None:
    play = f"""
call Agent {{"description": "job {{i}}", "prompt": "Wait.", {FRONT}}} x4
---
say Done.

[agent]
call Bash {{"command": "touch $$.begun; until [ $(ls *.begun | wc -l) -eq 4 ]; do sleep 0.02; done"}}
---
say Waited.
"""

    async def work(session: Session) -> None:
        await turn(session, "go")  # each waits until all have begun: one after the other, they would never end
        assert [text for text, _ in results(session)] == ["Waited."] * 4

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"permissions.mode": "accept_all"})


def test_an_agent_is_written_to_by_its_name_and_reads_it_at_the_end_of_its_round(tmp_path: Path) -> None:
    play = f"""
call Agent {{"description": "listen", "prompt": "Listen.", {BACK}, "name": "ear"}}
---
call SendMessage {{"to": "ear", "message": "The word is heron."}}
---
say Waiting.
---
say {{text}}

[agent]
call Bash {{"command": "sleep 0.5"}}
---
say I heard: {{text}}
"""

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert "The word is heron." in ended(events).text and "I heard" in ended(events).text

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"permissions.mode": "accept_all"})


# -- who is asked


ASKS = f"""
call Agent {{"description": "touch it", "prompt": "Touch.", {FRONT}, "name": "toucher"}}
---
say {{result}}

[agent]
call Bash {{"command": "touch made"}}
---
say It said: {{result}}
"""


def test_where_nobody_sits_an_agent_is_denied(tmp_path: Path) -> None:
    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert "Nobody can be asked here" in ended(events).text

    in_session(work, cwd=tmp_path, model=script(tmp_path, ASKS))
    assert not (tmp_path / "made").exists()


def test_an_agent_asks_the_person_in_its_own_name(tmp_path: Path) -> None:
    async def work(session: Session) -> None:
        asked = list[PermissionAsked]()
        async for event in session.send("go"):
            if isinstance(event, PermissionAsked):
                asked.append(event)
                session.gate.answer(event.id, allow=True)
        assert [one.reason.partition(":")[0] for one in asked] == ["toucher"]

    in_session(work, cwd=tmp_path, model=script(tmp_path, ASKS), interactive=True)
    assert (tmp_path / "made").exists()


def test_a_question_from_the_background_is_denied_after_a_while(tmp_path: Path) -> None:
    play = ASKS.replace('"name"', '"run_in_background": true, "name"')
    told = list[Event]()

    async def work(session: Session) -> None:
        await turn(session, "go")
        (running,) = session.tasks.running
        await until(session.gate.questions)  # it may have been asked before
        assert session.gate.questions()[0].reason.startswith("toucher:")
        assert await session.tasks.settle(running.purpose, LIMIT_S), "it does not wait for ever"
        session.listen(told.append)
        assert "toucher has reported (read with your next message)" in [
            event.text for event in told if isinstance(event, Notice)
        ], "whoever sits there is told"
        (message,) = session.messages.drain()
        assert "Nobody answered within 0.2 s" in message.text

    overrides = {"agents.ask_s": 0.2}
    in_session(work, cwd=tmp_path, model=script(tmp_path, play), interactive=True, overrides=overrides)
    assert not (tmp_path / "made").exists()


def test_an_explorer_changes_nothing_whatever_is_allowed(tmp_path: Path, prefix_watch: Path) -> None:
    play = ASKS.replace('"general"', '"explore"')

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert "only reads" in ended(events).text

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"permissions.mode": "accept_all"})
    assert not (tmp_path / "made").exists()
    (rounds,) = of_agents(prefix_watch).values()
    assert [tool["name"] for tool in part(rounds[0], "tool")] == ["Read", "Grep", "Glob", "Bash"]


def test_hooks_of_the_user_see_the_calls_of_agents(tmp_path: Path) -> None:
    hook = "echo 'not on a Sunday' >&2; exit 2"
    overrides = {"permissions.mode": "accept_all", "hooks.PreToolUse": [{"matcher": "Bash", "command": hook}]}

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert "not on a Sunday" in ended(events).text

    in_session(work, cwd=tmp_path, model=script(tmp_path, ASKS), overrides=overrides)


# -- what the model is told of kinds


def test_kinds_are_told_beside_the_first_message_once_and_bad_files_in_a_notice(
    tmp_path: Path, prefix_watch: Path
) -> None:
    define(tmp_path, "reviewer")
    (tmp_path / ".reverie" / "agents" / "broken.md").write_text("no head at all")

    async def work(session: Session) -> None:
        events = await turn(session, "one")
        notices = [event.text for event in of_kind(events, Notice) if event.source == "agents"]
        assert len(notices) == 1 and "broken.md" in notices[0]
        await turn(session, "two")
        assert said_to_main(session).count("- reviewer: does reviewer") == 1
        define(tmp_path, "tester")
        await turn(session, "three")
        assert "- tester: does tester" in said_to_main(session), "a new one is told, and the prefix stays"

    in_session(work, cwd=tmp_path, model=script(tmp_path, "repeat forever\n  say ok\nend\n"))
    assert prefix_watch.exists()


def test_without_the_flag_an_agent_without_a_kind_is_a_general_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_FLAG_FORK_CHILDREN", "0")
    play = 'call Agent {"description": "x", "prompt": "Do it."}\n---\nsay {result}\n\n[agent]\nsay Did it.\n'

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert ended(events).text == "Did it." and len(transcripts(session)) == 1

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


# -- which model


def test_a_file_of_the_project_names_models_of_the_provider_in_use_only(tmp_path: Path, prefix_watch: Path) -> None:
    other = script(tmp_path, "[agent]\nsay Another mind.\n", "other.script")
    define(tmp_path, "same", model=other)
    define(tmp_path, "foreign", model="openai:gpt-5.5")
    define(tmp_path, "short", model="sonnet")
    play = """
call Agent {"description": "a", "prompt": "Go.", "subagent_type": "same"}
---
call Agent {"description": "b", "prompt": "Go.", "subagent_type": "foreign"}
---
call Agent {"description": "c", "prompt": "Go.", "subagent_type": "short"}
---
say Done.

[agent]
say My own.
"""

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert [text for text, _ in results(session)] == ["Another mind.", "My own.", "My own."]
        told = [event.text for event in of_kind(events, Notice) if event.source == "agents"]
        assert len(told) == 1 and "foreign.md: `model: openai:gpt-5.5` is not from the current provider" in told[0]

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))
    assert len({rounds[0].model for rounds in of_agents(prefix_watch).values()}) == 2


# -- a context of its own


def test_a_sub_agent_compacts_its_own_context_and_keeps_its_prompt(tmp_path: Path, prefix_watch: Path) -> None:
    (tmp_path / "big.txt").write_text("All work and no play makes a dull day for everybody.\n" * 200)
    define(tmp_path, "reader", "You read a lot.", tools="Read")
    play = """
call Agent {"description": "read on", "prompt": "Read it again and again.", "subagent_type": "reader"}
---
say {result}

[agent]
repeat forever
  call Read {"file_path": "big.txt"}
end
when /Much was read/
  say I have read enough.
end

[compaction]
say <summary>Much was read.</summary>
"""

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert ended(events).text == "I have read enough."
        assert session.view.boundaries == 0, "the session's own context is as it was"
        (kept,) = transcripts(session).values()
        assert "Much was read." in kept and "Read it again and again." in kept, "nothing is lost on disk"

    overrides = {"window.context_window": 60_000, "window.autocompact_pct": 50}
    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides=overrides)
    (rounds,) = of_agents(prefix_watch).values()
    assert rounds[-1].announced_break == "the conversation was compacted"
    assert part(rounds[-1], "system")[0] == part(rounds[0], "system")[0] == "You read a lot."
