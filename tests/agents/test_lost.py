"""Agents that died with their session: the agent that started them is told when the conversation goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from reverie.session import Session
from reverie.types import Purpose
from tests.agents.talk import said_to_main
from tests.sessions import ended, in_session, script, turn
from tests.waiting import LIMIT_S

PLAY = """
call Agent {"description": "quick one", "prompt": "Be quick.", "subagent_type": "general", "run_in_background": true}
---
say Waiting.
---
call Agent {"description": "slow one", "prompt": "Be slow.", "subagent_type": "general", "run_in_background": true}
call Agent {"description": "slow fork", "prompt": "Be slow."}
---
say Waiting for two.
---
say It goes on: {text}

[agent]
when /Be quick/
  say Quick.
end
when /Be slow/
  call Glob {"pattern": "*.txt"}
  ---
  wait 1000
  say never
end
"""


def test_whoever_was_at_work_when_the_process_was_killed_is_told_of(tmp_path: Path) -> None:
    model = script(tmp_path, PLAY)
    command = [sys.executable, "-m", "reverie", "run", "--model", model, "go", "--json"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, env=dict(os.environ))
    assert process.stdout is not None
    heard = b""
    while heard.count(b'"progress": "Glob *.txt"') < 2:
        line = process.stdout.readline()
        assert line, heard
        heard += line
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    async def work(session: Session) -> None:
        assert session.messages.waiting
        events = await turn(session, "go on")
        told = said_to_main(session)
        assert "general was at work when the session ended" in told and "subagents/agent-" in told
        assert "slow-fork was at work when the session ended" in told
        assert told.count("was at work") == 2, "the one that had reported is not among them"
        assert ended(events).reason == "answered"

    in_session(work, cwd=tmp_path, model=model, resume="last")

    async def again(session: Session) -> None:
        assert not session.messages.waiting, "it is told once"

    in_session(again, cwd=tmp_path, model=model, resume="last")


def test_a_run_that_was_given_up_ends_its_agents_at_once(tmp_path: Path) -> None:
    play = PLAY.replace("Be quick.", "Be slow.")

    async def run() -> None:
        session = await Session.open(cwd=tmp_path, model=script(tmp_path, play))
        async for event in session.send("go"):
            if event.kind == "task_changed" and "Glob" in str(getattr(event, "progress", "")):
                session.cancel()
        assert session.tasks.running
        await asyncio.wait_for(session.close(), LIMIT_S)

    asyncio.run(run())


def test_a_report_that_nobody_read_is_there_when_the_conversation_goes_on(tmp_path: Path) -> None:
    play = """
call Agent {"description": "late one", "prompt": "Be late.", "subagent_type": "general", "run_in_background": true}
---
say I do not wait.
---
say You said: {text}

[agent]
wait 0.3
say Late, but here.
"""

    async def leave(session: Session) -> None:
        await turn(session, "go")
        assert await session.tasks.settle(Purpose.AGENT, LIMIT_S)

    async def come_back(session: Session) -> None:
        assert not session.messages.waiting, "nobody is lost"
        await turn(session, "and?")
        assert said_to_main(session).count("Late, but here.") == 1

    in_session(leave, cwd=tmp_path, model=script(tmp_path, play), interactive=True)
    in_session(come_back, cwd=tmp_path, model=script(tmp_path, play), interactive=True, resume="last")
