"""Each mode of the table shows its row: context, system prompt, where it runs, whose cache, who may start others."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.agents.messages.roster import MAIN, AgentMode, MemberState
from reverie.errors import ReverieError
from reverie.events import ToolFinished
from reverie.origins import strip_tags
from reverie.session import Session
from reverie.storage.transcript.sessions import find_session
from tests.agents.talk import define, of_agents, part, requests, results, said_to_main, transcripts, user_texts
from tests.sessions import ended, in_session, of_kind, script, turn
from tests.simulated import ANTHROPIC, files, served

CALLS_AGENT = 'call Agent {"description": "more", "prompt": "Go deeper."}'


def test_a_sub_agent_has_a_context_a_prompt_and_a_cache_of_its_own_and_may_start_others(
    tmp_path: Path, prefix_watch: Path
) -> None:
    define(tmp_path, "reviewer", "You review what you are given.", tools="Read, Agent")
    play = """
say I ask the reviewer.
call Agent {"description": "review it", "prompt": "Review a.txt.", "subagent_type": "reviewer", "name": "rev"}
---
say Reviewed.

[agent]
when /Review a.txt/
  call Agent {"description": "deeper", "prompt": "Look deeper.", "subagent_type": "explore"}
  ---
  say The review: {result}
end
when /Look deeper/
  say Deep enough.
end
"""

    async def work(session: Session) -> None:
        events = await turn(session, "please review")
        finished = of_kind(events, ToolFinished)
        assert [one.text for one in finished] == ["The review: Deep enough."], "in front: the result of the call"
        assert ended(events).text == "Reviewed."
        assert session.agents.spawner.roster.names() == [MAIN], "nobody is left behind"
        kept = transcripts(session)
        assert len(kept) == 2 and any("Review a.txt." in text for text in kept.values())

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))
    reviewer, explorer = of_agents(prefix_watch).values()
    main = requests(prefix_watch, thread="main")[0]
    assert strip_tags(user_texts(reviewer[0])[-1]) == "Review a.txt." and not part(reviewer[0], "assistant"), (
        "a fresh context"
    )
    assert "please review" not in "".join(reviewer[0].parts)
    assert part(reviewer[0], "system")[0] == "You review what you are given.", "its own prompt"
    assert part(main, "system")[0] not in part(reviewer[0], "system")
    assert [tool["name"] for tool in part(reviewer[0], "tool")] == ["Read", "Agent"], "the tools its file names"
    assert reviewer[1].parts[: len(reviewer[0].parts)] == reviewer[0].parts, "its own cache goes on"
    assert strip_tags(user_texts(explorer[0])[-1]) == "Look deeper.", "a sub-agent may start others"


def test_a_sub_agent_in_the_background_reports_by_letter(tmp_path: Path) -> None:
    play = """
call Agent {"description": "count", "prompt": "Count.", "subagent_type": "general", "run_in_background": true}
---
say I go on meanwhile.
---
say It said: {text}

[agent]
wait 0.2
say There are three.
"""

    async def work(session: Session) -> None:
        events = await turn(session, "go")
        assert "Started general, a sub-agent" in results(session)[0][0]
        assert "There are three." in said_to_main(session) and 'from="general"' in said_to_main(session)
        assert "There are three." in ended(events).text, "the turn went on when the message came"

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_a_fork_has_the_parents_context_prompt_and_cache_runs_behind_and_starts_nobody(
    tmp_path: Path, prefix_watch: Path
) -> None:
    play = f"""
say I split.
call Agent {{"description": "part one", "prompt": "Do part one.", "run_in_background": false}}
call Agent {{"description": "part two", "prompt": "Do part two."}}
---
say Both are on their way.
---
say One is there.
---
say Done.

[agent]
{CALLS_AGENT}
---
say I was told: {{result}}
"""

    async def work(session: Session) -> None:
        await turn(session, "split it")
        started = [text for text, _ in results(session)]
        assert ["Started part-one, a fork" in started[0], "Started part-two, a fork" in started[1]] == [True, True]
        assert said_to_main(session).count("a fork cannot start agents") == 2
        assert not transcripts(session), "a fork leaves no transcript"

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))
    main = requests(prefix_watch, thread="main")
    children = of_agents(prefix_watch)
    assert len(children) == 2
    firsts = [rounds[0] for rounds in children.values()]
    for first in firsts:
        assert first.parts[: len(main[0].parts)] == main[0].parts, "the parent's bytes, whole"
        assert part(first, "assistant") == part(main[1], "assistant"), "and its whole message"
        held = [block for block in part(first, "user") if block["type"] == "tool_result"]
        assert len(held) == 2 and held[0]["content"] == held[1]["content"], "the same placeholder for every call"
        assert "Agent" in [tool["name"] for tool in part(first, "tool")], "the tool stays in the list"
    one, two = firsts
    assert one.parts[:-1] == two.parts[:-1] and one.parts[-1] != two.parts[-1], "only the directive differs"
    assert strip_tags(user_texts(one)[-1]) in ("Do part one.", "Do part two.")


def test_a_worker_has_the_coordinators_prompt_and_nothing_else_of_it(
    tmp_path: Path, prefix_watch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_FLAG_COORDINATOR", "1")
    play = f"""
call Write {{"file_path": "mine.txt", "content": "x"}}
---
call Agent {{"description": "write it", "prompt": "Write out.txt.", "run_in_background": false}}
---
say Waiting.
---
say Done.

[agent]
{CALLS_AGENT}
call Write {{"file_path": "out.txt", "content": "made by a worker"}}
---
say {{result}}
"""

    async def work(session: Session) -> None:
        await turn(session, "have it written")
        assert "You coordinate" in results(session)[0][0] and results(session)[0][1]
        assert "Started write-it, a worker" in results(session)[1][0], "always in the background"
        assert "a worker cannot start agents" in said_to_main(session)

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"permissions.mode": "accept_all"})
    assert (tmp_path / "out.txt").read_text() == "made by a worker" and not (tmp_path / "mine.txt").exists()
    main = requests(prefix_watch, thread="main")[0]
    (worker,) = of_agents(prefix_watch).values()
    assert part(worker[0], "system") == part(main, "system") and part(worker[0], "tool") == part(main, "tool")
    assert "have it written" not in "".join(worker[0].parts), "a fresh context"
    assert "In this session you coordinate" in "".join(main.parts)
    assert "In this session you coordinate" not in "".join(worker[0].parts)
    assert strip_tags(user_texts(worker[0])[-1]).endswith("Write out.txt.")


def test_a_teammate_has_a_session_of_its_own_stays_and_starts_nobody(tmp_path: Path, prefix_watch: Path) -> None:
    define(tmp_path, "scout", "You scout.")
    play = """
call Agent {"description": "scout", "prompt": "Scout north.", "subagent_type": "scout", "name": "sam", "teammate": true}
---
say Waiting for Sam.
---
call SendMessage {"to": "sam", "message": "Now south."}
---
say Again.
---
call SendMessage {"to": "sam", "message": {"type": "shutdown_request", "request_id": "r1", "reason": "done"}}
---
say Ended: {text}
---
say Over.
---
say Over and out.
"""
    mate = f"""
{CALLS_AGENT}
---
say North: {{result}}
---
say South is clear.
---
say Bye.
"""
    (tmp_path / "mate.script").write_text(mate)
    define(tmp_path, "scout", "You scout.", model=f"scripted:{tmp_path}/mate.script")

    async def work(session: Session) -> None:
        await turn(session, "go")
        told = said_to_main(session)
        assert "a teammate cannot start agents" in told, "it was told so, and told its lead"
        assert "South is clear." in told, "it stayed and answered a message"
        assert "sam ends." in told
        assert session.agents.spawner.roster.names() == [MAIN]
        own = [request for request in requests(prefix_watch) if request.conversation != session.id]
        assert len({request.conversation for request in own}) == 1, "one session of its own"
        found = find_session(session.places.project, own[0].conversation)
        assert found.path != session.places.transcript(session.id)
        assert part(own[0], "system")[0] == "You scout."
        assert "Scout north." in "".join(own[0].parts) and "go" not in user_texts(own[0])

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_a_teammate_waits_until_the_session_closes(tmp_path: Path) -> None:
    play = """
call Agent {"description": "stay", "prompt": "Stay.", "name": "sam", "teammate": true}
---
say Waiting.
---
say Sam is idle.
"""
    mate = script(tmp_path, "say I am here.\n", "mate.script")
    play = play.replace('"teammate": true', f'"teammate": true, "model": "{mate}"')

    async def work(session: Session) -> None:
        await turn(session, "go")
        sam = session.agents.spawner.roster.find("sam")
        assert sam is not None and sam.state is MemberState.IDLE and sam.mode is AgentMode.TEAMMATE

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))  # closing does not wait for one who waits


def test_a_side_question_sees_all_calls_nothing_and_writes_no_cache_entry(tmp_path: Path, prefix_watch: Path) -> None:
    play = """
say The port is 8080.

[side_question]
call Write {"file_path": "never.txt", "content": "x"}
say You said 8080 above.
"""

    async def work(session: Session) -> None:
        await turn(session, "which port?")
        before = len(session.view.entries)
        assert await session.ask_aside("Which port was it again?") == "You said 8080 above."
        assert len(session.view.entries) == before, "the conversation does not change"
        assert [one.purpose for one in session.view.fork_usage] == ["side_question"]

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"permissions.mode": "accept_all"})
    assert not (tmp_path / "never.txt").exists(), "every call is denied"
    main, aside = requests(prefix_watch)
    assert aside.parts[: len(main.parts)] == main.parts, "the parent's whole context"
    assert part(aside, "system") == part(main, "system")


def test_a_side_question_can_be_asked_while_a_turn_runs(tmp_path: Path) -> None:
    play = 'call Bash {"command": "sleep 0.5"}\n---\nsay Done.\n\n[side_question]\nsay It sleeps.\n'

    async def work(session: Session) -> None:
        answers = list[str]()
        async for event in session.send("sleep"):
            if event.kind == "tool_started":
                answers.append(await session.ask_aside("What is it doing?"))
        assert answers == ["It sleeps."]

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"permissions.mode": "accept_all"})


def test_a_side_question_that_wants_tools_says_so(tmp_path: Path) -> None:
    play = 'say Hi.\n\n[side_question]\ncall Read {"file_path": "a.txt"}\n'

    async def work(session: Session) -> None:
        await turn(session, "hi")
        with pytest.raises(ReverieError, match="needs tools"):
            await session.ask_aside("What is in a.txt?")

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))


def test_a_member_of_a_team_is_what_its_kind_says(tmp_path: Path, prefix_watch: Path) -> None:
    """What a process of a team does with its session: own prompt and memory, and nobody to start."""
    define(tmp_path, "scout", "You scout.", memory="local")

    async def work(session: Session) -> None:
        session.agents.become(session.agents.kinds().kinds["scout"])
        session.messages.main.mode = AgentMode.TEAMMATE
        await turn(session, "go")
        assert "a teammate cannot start agents" in results(session)[0][0]

    in_session(work, cwd=tmp_path, model=script(tmp_path, f"{CALLS_AGENT}\n---\nsay Well.\n"))
    (first, _) = requests(prefix_watch)
    own = part(first, "system")[0]
    assert own.startswith("You scout.") and str(tmp_path / ".reverie" / "agent-memory-local" / "scout") in own


def test_forks_and_side_questions_read_the_parents_cache_and_sub_agents_have_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Billed by the server, as documented: the column `cache` of the table."""
    files(tmp_path, count=4, size=20_000)
    play = """
call Read {"file_path": "f{i}.txt"} x4
---
call Agent {"description": "fork", "prompt": "Fork it."}
call Agent {"description": "sub", "prompt": "Begin anew.", "subagent_type": "general"}
---
say Waiting.
---
say Done.

[agent]
say ok

[side_question]
say ok
"""
    with served(play, monkeypatch) as server:

        async def work(session: Session) -> None:
            await turn(session, "go")
            await session.ask_aside("And?")

        in_session(work, cwd=tmp_path, model=ANTHROPIC)
        agents = [row.usage for row in server.rows if row.purpose == "agent"]
        (aside,) = [row.usage for row in server.rows if row.purpose == "side_question"]
    fork = max(agents, key=lambda usage: usage.prompt)
    sub = min(agents, key=lambda usage: usage.prompt)
    assert fork.cache_read_input_tokens >= 0.95 * fork.prompt > 20_000, "a fork reads what its parent left"
    assert sub.cache_read_input_tokens == 0 and sub.cache_creation_input_tokens > 0, "a sub-agent fills its own"
    assert aside.cache_read_input_tokens >= 0.95 * aside.prompt, "a side question reads"
    assert aside.cache_creation_input_tokens == 0, "and writes nothing"
