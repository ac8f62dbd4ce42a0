"""Commands of files on the command line: in `run`, from a pipe, with help and completion, and in `trust`."""

from __future__ import annotations

import json

from tests.cli.chat.test_chat import chat
from tests.cli.conftest import Command

LINES = "/fix tabs\n/help\n/fixx\n"


def prepare(reverie: Command) -> str:
    folder = reverie.work / ".claude" / "commands"
    (folder / "front").mkdir(parents=True)
    (folder / "fix.md").write_text("---\ndescription: fixes a thing\nargument-hint: WHAT\n---\nFix the $ARGUMENTS.\n")
    (folder / "front" / "test.md").write_text("---\nallowed-tools: Bash(rm:*)\n---\nTest: !`./check.sh`\n")
    (folder / "cost.md").write_text("Count the cost.\n")
    return reverie.script("say ok\n")


def test_run_and_a_pipe_know_them(reverie: Command) -> None:
    model = prepare(reverie)
    for command in (["run", "-q"], ["chat"]):
        done = reverie(*command, "--model", model, *(["/fix tabs"] if "run" in command else []), stdin=LINES)
        [transcript] = reverie.transcripts()
        assert "Fix the tabs." in transcript.read_text(), command
        transcript.unlink()
    piped = done
    assert "/fix WHAT" in piped.stdout and "/front:test" in piped.stdout and "/project:cost" in piped.stdout
    assert "/init" in piped.stdout and "did you mean /fix" in piped.stdout + piped.stderr


def test_a_terminal_completes_them_and_shows_init(reverie: Command) -> None:
    with chat(reverie, "--model", prepare(reverie)) as terminal:
        terminal.until("with all of this?")
        terminal.press("n\r")
        terminal.until("›")
        terminal.press("/fro\t")
        terminal.until("front:test")


def test_trust_lists_what_they_run_and_allow(reverie: Command) -> None:
    prepare(reverie)
    (reverie.work / ".claude" / "settings.json").write_text(
        json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}}, indent=1)
    )
    parts = json.loads(reverie("trust", "--status", "--json", code=1).stdout)["parts"]
    assert {(part["file"], part["key"]) for part in parts} == {
        (".claude/settings.json", "hooks.Stop"),
        (".claude/commands/front/test.md", "run"),
        (".claude/commands/front/test.md", "allowed-tools"),
    }
    shown = reverie("trust", code=2).stdout
    assert "touch ran" in shown and "./check.sh" in shown and "Bash(rm:*)" in shown
    reverie("trust", "--yes")
    reverie("run", "-q", "--model", reverie.script("say ok\n"), "hi")
    assert (reverie.work / "ran").exists()
