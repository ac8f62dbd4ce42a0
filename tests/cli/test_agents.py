"""Agents from the command line: /agents and /btw in the chat, `reverie agents` and `reverie btw`."""

from __future__ import annotations

import json

from tests.cli.conftest import Command
from tests.cli.terminal import PROMPT, Terminal

CTRL_D = "\x04"
PLAY = """
call Agent {"description": "make it", "prompt": "Make it.", "subagent_type": "general", "run_in_background": true}
---
say It is at work.
---
say It said: {text}

[agent]
wait 2
call Bash {"command": "touch made.txt"}
---
say Made.

[side_question]
say Somebody else makes it.
"""


def define(reverie: Command) -> None:
    folder = reverie.work / ".reverie" / "agents"
    folder.mkdir(parents=True)
    (folder / "reviewer.md").write_text("---\nname: reviewer\ndescription: Reviews\nmemory: local\n---\nYou review.\n")


def test_an_agent_behind_the_chat_is_shown_asks_and_reports(reverie: Command) -> None:
    define(reverie)
    with Terminal("chat", "--model", reverie.script(PLAY), cwd=reverie.work, env=reverie.env) as terminal:
        terminal.say("start it")
        terminal.until("It is at work.")
        terminal.until("/agents allow ask-1")
        terminal.until("1 agent: general")
        terminal.press("/agents\r")
        shown = terminal.until("reviewer")
        assert "general" in shown and "sub-agent" in shown and "Bash" in shown
        terminal.say("/btw who makes it?")
        terminal.until("Somebody else makes it.")
        terminal.say("/agents allow")
        terminal.until("ask-1: allowed")
        terminal.say("and?")
        terminal.until("It said:")
        terminal.until(PROMPT)
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
    assert (reverie.work / "made.txt").exists()


def test_the_commands_list_kinds_and_answer_beside_a_conversation(reverie: Command) -> None:
    define(reverie)
    (reverie.work / ".reverie" / "agents" / "bad.md").write_text("nothing")
    done = reverie("agents")
    assert done.returncode == 0 and "reviewer" in done.stdout and "memory: local" in done.stdout
    assert "bad.md: start the file with" in done.stderr
    found = json.loads(reverie("agents", "list", "--json").stdout)
    assert [kind["name"] for kind in found["kinds"]] == ["general", "explore", "reviewer"] and found["agents"] == []
    model = reverie.script("say The port is 8080.\n\n[side_question]\nsay 8080, I said.\n")
    assert reverie("run", "--model", model, "Which port?").returncode == 0
    asked = reverie("btw", "Which one?")
    assert (asked.returncode, asked.stdout.strip()) == (0, "8080, I said.")
    assert "8080, I said." not in reverie("sessions", "show", "last").stdout


def test_snapshots_by_command(reverie: Command) -> None:
    define(reverie)
    reverie.extra.clear()
    memory = reverie.work / ".reverie" / "agent-memory-local" / "reviewer"
    empty = reverie("agents", "snapshot", "reviewer", "--make", code=2)
    assert empty.returncode == 2 and "there is nothing for a snapshot" in empty.stderr
    for option in ("--take", "--keep"):
        nothing = reverie("agents", "snapshot", "reviewer", option, code=2)
        assert nothing.returncode == 2 and "There is no snapshot" in nothing.stderr and not nothing.stdout
    memory.mkdir(parents=True)
    (memory / "feedback_x.md").write_text("---\nname: X\ndescription: x\ntype: feedback\n---\nThe user wants x.\n")
    assert "Wrote 1 file to" in reverie("agents", "snapshot", "reviewer", "--make").stdout
    assert "already contains the whole" in reverie("agents", "snapshot", "reviewer", "--take").stdout
    (memory / "feedback_x.md").unlink()
    assert "Added 1 changed file to" in reverie("agents", "snapshot", "reviewer", "--take").stdout
    assert "1 memory; no newer snapshot" in reverie("agents", "snapshot", "reviewer").stdout
    missing = reverie("agents", "snapshot", "nobody", code=2)
    assert missing.returncode == 2 and "is not defined here" in missing.stderr
    plain = reverie("agents", "snapshot", "general", "--take", code=2)
    assert plain.returncode == 2 and "has no memory" in plain.stderr


def test_purging_reaches_the_memories_of_agents_and_their_snapshots(reverie: Command) -> None:
    define(reverie)
    reverie.extra.clear()
    secret = "correct-horse-battery"
    memory = reverie.work / ".reverie" / "agent-memory-local" / "reviewer"
    memory.mkdir(parents=True)
    text = f"---\nname: X\ndescription: x\ntype: feedback\n---\nThe hint is {secret}.\n"
    (memory / "feedback_x.md").write_text(text)
    reverie("agents", "snapshot", "reviewer", "--make")
    (memory / "feedback_x.md").write_text(text.replace("The hint", "The old hint"))
    reverie("agents", "snapshot", "reviewer", "--take")

    def holders() -> list[str]:
        tops = (reverie.home, reverie.work)
        files = [path for top in tops for path in top.rglob("*") if path.is_file()]
        return [path.name for path in files if secret in path.read_bytes().decode("latin-1")]

    assert len(holders()) >= 2
    assert "Purged" in reverie("memory", "purge", "--yes", stdin=f"{secret}\n").stdout
    assert holders() == []
    assert "nowhere" in reverie("memory", "purge", "--dry-run", stdin=secret).stdout
