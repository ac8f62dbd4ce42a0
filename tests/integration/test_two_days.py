"""Two days inside Claude Code and Codex, with the real programs over the simulator: connect, learn, recall, disconnect.

Only the model behind them is simulated. Everything else is what a user has: the programs, their hooks, our service.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reverie.simulator import Simulator
from reverie.simulator.http import running
from reverie.simulator.responder import Reply
from tests.integration.programs import LIMIT_S, installed, objects

pytestmark = pytest.mark.integration

CORRECTION = "No, never use npm in this project. Always use pnpm, because the lockfile is pnpm's."
LESSON = "Always use pnpm, because the lockfile is pnpm's."
PIN = "Deploy only to staging-7."
FAILED = "make deploy-nowhere"
LINES = 40_000
SETTINGS = '{\n    "model": "claude-opus-5-5",\n\n    "env": {"A": "1"}\n}'
"""As a user might have written it: four blanks, an empty line, and no newline at the end."""


class Player:
    """Plays the model: what it says depends on what the user asked last and on the newest tool result."""

    def __init__(self, shell: Callable[[str], dict[str, Any]]) -> None:
        self.bodies = list[Mapping[str, Any]]()
        self._shell = shell

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        self.bodies.append(body)
        Path(f"/tmp/int/{len(self.bodies):03}.json").write_text(json.dumps(body, indent=1))
        result, asked = _newest_result(body), _asked(body)
        if "summary" in asked.lower() and "npm" not in asked:
            return _say("<summary>The user works on an app.</summary>")
        if result is None:
            if "long list" in asked:
                return _call(self._shell(f"seq 1 {LINES}"))
            if "Deploy" in asked:
                return _call(self._shell(FAILED))
        kept = re.search(r"(/\S+/tool-results/\S+?\.\w+)", result or "")
        if kept and "long list" in asked and "39990" not in (result or ""):
            return _call({"name": "Read", "input": {"file_path": kept[1], "offset": LINES - 15, "limit": 10}})
        return _say("Understood.")

    def told(self, text: str) -> int:
        """How many texts of the newest request that neither the user nor the model wrote say this."""
        body = self.bodies[-1]
        given = [text for one in body["messages"] for text in _texts(one["content"]) if _is_told(one["role"], text)]
        return sum(text in one for one in given)


def _is_told(role: str, text: str) -> bool:
    return role in ("system", "developer") or (role == "user" and text.lstrip().startswith("<"))


def _say(text: str) -> Reply:
    return Reply([{"type": "text", "text": text}], "end_turn")


def _call(call: dict[str, Any]) -> Reply:
    block = {"type": "tool_use", "id": f"toolu_{time.monotonic_ns()}", **call}
    return Reply([block], "tool_use")


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "text":
            yield block["text"]


def _asked(body: Mapping[str, Any]) -> str:
    said = [text for one in body["messages"] if one["role"] == "user" for text in _texts(one["content"])]
    own = [text for text in said if not text.lstrip().startswith("<")]
    return own[-1] if own else ""


def _newest_result(body: Mapping[str, Any]) -> str | None:
    newest = [one for one in body["messages"] if one["role"] != "system"][-1]
    content = newest["content"]
    results = [one for one in content if one.get("type") == "tool_result"] if isinstance(content, list) else []
    return json.dumps([one.get("content") for one in results]) if results else None


class Desk:
    """A user's machine: a home, a project, and programs that run in it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", **environment}

    def run(self, *arguments: str | Path) -> str:
        done = subprocess.run(
            [str(one) for one in arguments],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        print(arguments[1:4], done.stdout[-1_000:], done.stderr[-1_000:], file=sys.stderr)
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}: {done.stderr[-2_000:]}"
        return done.stdout

    def reverie(self, *arguments: str) -> str:
        return self.run(sys.executable, "-m", "reverie", *arguments)

    def learnt(self) -> list[dict[str, Any]]:
        """Waits for the background: the memories, once there are any."""
        deadline = time.monotonic() + 60
        while not (found := json.loads(self.reverie("memory", "list", "--json"))["memories"]):
            assert time.monotonic() < deadline, self.reverie("log")
            time.sleep(0.5)
        return found

    def files(self) -> dict[str, bytes]:
        """The configuration of the agents: every file outside our home and outside what they write as they run."""
        kept = ("settings.json", "settings.local.json", "hooks.json", "config.toml", "CLAUDE.md", "settings.toml")
        found = [*self.home.rglob("*"), *self.work.rglob("*")]
        return {str(one): one.read_bytes() for one in found if one.name in kept and one.is_file()}

    def leave(self) -> None:
        """No process of ours is left when the service has ended."""
        self.reverie("daemon", "stop")
        deadline = time.monotonic() + 20
        while left := _processes(str(self.home)):
            assert time.monotonic() < deadline, left
            time.sleep(0.2)


def _processes(home: str) -> list[str]:
    found = list[str]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                environment = (entry / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "reverie" in command and home in environment:
                found.append(command)
    return found


def test_two_days_with_claude_code(tmp_path: Path) -> None:
    claude = installed("claude", "lib/python*/site-packages/claude_agent_sdk/_bundled/claude")
    player = Player(lambda command: {"name": "Bash", "input": {"command": command, "description": "run it"}})
    with running(Simulator(player)) as url:
        desk = Desk(
            tmp_path,
            {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "simulated",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "BASH_MAX_OUTPUT_LENGTH": "500000",
            },
        )
        (desk.home / ".claude").mkdir()
        (desk.home / ".claude" / "settings.json").write_text(SETTINGS)
        before = desk.files()
        desk.reverie("connect", "claude-code", "--dry-run")
        assert desk.files() == before, "a dry run changes nothing"
        desk.reverie("connect", "claude-code", "--yes")

        def ask(prompt: str, *options: str) -> dict[str, Any]:
            common = ("--allowedTools", "Bash", "--output-format", "json")
            return json.loads(desk.run(claude, "-p", prompt, *options, *common))

        # Day 1: the user corrects it.
        first = ask("Install left-pad with npm, please.")
        ask(CORRECTION, "--resume", first["session_id"])
        assert any(LESSON in json.dumps(one) for one in desk.learnt())

        # Day 2: a new session is told, once.
        second = ask("Install chalk with npm, please.")
        once = player.told("Always use pnpm")
        assert once >= 1
        session = second["session_id"]
        ask("And install lodash with npm, please.", "--resume", session)
        assert player.told("Always use pnpm") == once, "each memory is given once"

        # A large result goes to disk and is read back.
        ask("Print the long list.", "--resume", session)
        newest = json.dumps(player.bodies[-1])
        assert "39990" in newest, "the end was read back from disk"
        assert len(newest) < 200_000, "the whole list is not in the request"

        # Pins and failed commands survive a compaction.
        desk.reverie("pin", PIN, "--session", session)
        ask("Deploy it, please.", "--resume", session)
        asked = len(player.bodies)
        ask("/compact", "--resume", session)
        summariser = [json.dumps(one) for one in player.bodies[asked:]]
        assert any(PIN in one for one in summariser), "the summariser is told what must survive"
        ask("Go on.", "--resume", session)
        assert player.told(PIN) >= 1 and player.told(FAILED) >= 1
        assert "Deploy it, please." in json.dumps(player.bodies[-1])

        # Every command works on the session of Claude Code.
        assert session[:8] in desk.reverie("sessions", "list")
        desk.reverie("cost", session)
        desk.reverie("connect", "--status")
        desk.reverie("disconnect", "claude-code")
        assert desk.files() == before, "what connect touched is as before, byte by byte"
        ask("Say hello.")
        assert player.told("Reverie") == 0
        desk.leave()


def test_two_days_with_codex(tmp_path: Path) -> None:
    codex = installed("node", "node_modules/.bin/codex")
    player = Player(lambda command: {"name": "exec_command", "input": {"cmd": command, "login": False}})
    with running(Simulator(player)) as url:
        desk = Desk(tmp_path, {"OPENAI_API_KEY": "simulated"})
        config = desk.home / ".codex" / "config.toml"
        config.parent.mkdir()
        config.write_text(
            'model = "gpt-5"\nmodel_provider = "simulator"\n[model_providers.simulator]\nname = "simulator"\n'
            f'base_url = "{url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
        )
        before = desk.files()
        desk.environment["PATH"] = f"{codex.parent}:{desk.environment['PATH']}"
        desk.reverie("connect", "codex", "--trust-hooks", "--yes")

        def ask(prompt: str, *resume: str) -> str:
            common = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")
            events = objects(desk.run(codex, "exec", *resume, *common, prompt))
            assert any(event["type"] == "turn.completed" for event in events), events
            return next((event["thread_id"] for event in events if event["type"] == "thread.started"), "")

        thread = ask("Install left-pad with npm, please.")
        ask(CORRECTION, "resume", thread)
        assert any(LESSON in json.dumps(one) for one in desk.learnt())
        second = ask("Install chalk with npm, please.")
        assert player.told("Always use pnpm") >= 1, "a new session is told"
        ask("Deploy it, please.", "resume", second)
        assert second[:8] in desk.reverie("sessions", "list")
        desk.reverie("disconnect", "codex")
        assert desk.files() == before
        desk.leave()
