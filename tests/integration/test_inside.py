"""Reverie inside the real programs: a correction is known the next day, large results go to disk and can be read back,
and what matters survives a compaction. What the model is told is read from the requests."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reverie.models.script import Script
from reverie.simulator import ScriptResponder, Simulator
from reverie.simulator.http import running
from tests.cli.memory.test_extract import COMMITS, memory
from tests.integration.programs import Run, installed
from tests.integration.test_connect import REVERIE, claude, status
from tests.integration.test_minds import Mind

pytestmark = pytest.mark.integration

CORRECTION = "No, always use pnpm instead of npm in this repository. You must never push to main."
ASKS = "please install the packages with npm or pnpm"
SUMMARY = """
when /Your task is to create a detailed summary|CONTEXT CHECKPOINT/
  say <summary>All fine.</summary>
end
"""
HELLO = """
repeat forever
  say Hello there.
end
"""


@dataclass
class Seen(ScriptResponder):
    """Answers by a script and keeps what was asked."""

    script: Script
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __post_init__(self) -> None:
        ScriptResponder.__init__(self, self.script)

    async def reply(self, body: Any, *, purpose: Any = "main") -> Any:
        self.bodies.append(json.loads(json.dumps(body, default=str)))
        return await super().reply(body, purpose=purpose)

    def take(self) -> str:
        """The messages of the last request; forgets all."""
        last, self.bodies[:] = self.bodies[-1], []
        return json.dumps(last["messages"], ensure_ascii=False).replace("\\n", "\n")


@contextmanager
def seeing(script: str) -> Iterator[tuple[Seen, dict[str, str]]]:
    seen = Seen(Script.parse(SUMMARY + script + HELLO))
    with running(Simulator(seen)) as url:
        yield (
            seen,
            {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "simulated",
                "OPENAI_API_KEY": "simulated",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "BASH_MAX_OUTPUT_LENGTH": "150000",
            },
        )


def wait_for_work(run: Run) -> None:
    """Waits until the service has done its background work."""
    for _ in range(60):
        time.sleep(1.5)
        jobs = json.loads(run(*REVERIE, "daemon", "status", "--json"))["jobs"]
        if not jobs["waiting"] and jobs["running"] is None and jobs["done"]:
            assert jobs["failed"] == 0, jobs
            return
    raise AssertionError("the background work does not end")


def quoted(text: str, wanted: str) -> bool:
    """Whether a text is there, and only as a quote of ours or in the user's own message."""
    return any(line.startswith(">") and wanted in line for line in text.splitlines())


def test_claude_code_on_two_days(run: Run, tmp_path: Path) -> None:
    run(*REVERIE, "connect", "claude-code", "--yes")
    session = str(uuid.uuid4())
    script = """
    when /big thing/
      call Bash {"command": "seq 1 25000", "description": "count"}
      ---
      say Counted.
    end
    when /deploy it/
      call Bash {"command": "make deploy-nowhere", "description": "deploy"}
      ---
      say Failed.
    end
    """
    with seeing(script) as (seen, variables):

        def ask(prompt: str, *arguments: str) -> str:
            run(claude(), "-p", prompt, *arguments, "--model", "claude-opus-5-5", **variables)
            return seen.take() if seen.bodies else ""

        ask("Install the packages", "--session-id", session)
        ask(CORRECTION, "--resume", session)
        wait_for_work(run)
        told = ask(ASKS)
        assert "UserPromptSubmit hook additional context" in told and quoted(told, "pnpm"), "the next day it is told"
        assert "The index of this project" not in told, "Claude Code loads the index of its own folder itself"
        assert "feedback_always_use_pnpm" in told

        ask("Do the big thing", "--resume", session, "--allowedTools", "Bash")
        ask("Please deploy it", "--resume", session, "--allowedTools", "Bash")
        (kept,) = (tmp_path / "home" / ".claude" / "projects").glob(f"*/{session}/tool-results/*.txt")
        assert kept.read_text().split() == [str(number) for number in range(1, 25_001)]
        run(*REVERIE, "pin", "-s", session, "Ask before a release")
        ask("/compact", "--resume", session)
        told = ask("Go on, please", "--resume", session)
        for wanted in ("Ask before a release", "make deploy-nowhere", "You must never push to main"):
            assert quoted(told, wanted), wanted
        assert "22222\n" not in told
        assert "of the compaction lost" not in ask("And on, please", "--resume", session).rpartition("Go on, please")[2]
    with seeing(f'when /Read it back/\n  call Read {{"file_path": "{kept}"}}\n  ---\n  say Read.\nend\n') as (
        seen,
        variables,
    ):
        run(claude(), "-p", "Read it back", "--resume", session, **variables)
        assert "17\\t17" in seen.take(), "it may read there without asking"
    said = status(run)
    assert said["problems"] == [] and said["service"]["hooks"]["errors"] == []
    assert said["last_compaction"]["lost_pins"] == said["last_compaction"]["lost_failures"] == 0
    run(*REVERIE, "disconnect")


@dataclass
class Behind(ScriptResponder):
    """Answers a session with Hello, and the background work, which is in a frame, by a mind."""

    mind: Mind

    def __post_init__(self) -> None:
        ScriptResponder.__init__(self, Script.parse(HELLO))

    async def reply(self, body: Any, *, purpose: Any = "main") -> Any:
        asked = await self.mind.reply(body) if '{\\"role\\":' in json.dumps(body["messages"]) else None
        return asked or await super().reply(body, purpose=purpose)


def test_the_service_learns_through_claude_code_itself(run: Run, tmp_path: Path) -> None:
    program, home = claude(), tmp_path / "home"
    run(*REVERIE, "connect", "claude-code", "--yes")
    with (home / ".reverie" / "settings.toml").open("a") as file:
        file.write(f'\n[connect]\nmodel = "claude-code:"\n[model]\nclaude_code_program = "{program}"\n')
    path = Path(run(*REVERIE, "memory", "path").strip()) / "feedback_commits.md"
    call = json.dumps({"file_path": str(path), "content": memory("Imperative commits", "feedback", COMMITS)})
    mind = Mind(
        Script.parse(f"[extraction]\nwhen /The user wrote on/\n  call Write {call}\n  ---\n  say ok\nend\n"),
        "extraction",
    )
    with running(Simulator(Behind(mind))) as url:
        variables = {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "simulated",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        run(program, "-p", COMMITS, "--model", "claude-opus-5-5", **variables)
        wait_for_work(run)
        said = status(run)
    assert COMMITS in path.read_text() and mind.talks, "Claude Code has read the session"
    assert said["problems"] == [] and said["service"]["hooks"]["sessions"] == 1, "its hooks did nothing in there"
    log = run(*REVERIE, "log", "--kind", "hook_work", "--json")
    assert "hook_work" not in log, "the offline mind had nothing to do"
    recorded = list((home / ".claude" / "projects").glob("*/*.jsonl"))
    assert len(recorded) == 1, "only the user's session is recorded"
    run(*REVERIE, "disconnect")


def test_codex_on_two_days(run: Run, tmp_path: Path) -> None:
    program = installed("node", "node_modules/.bin/codex")
    run(*REVERIE, "connect", "codex", "--yes")
    with seeing("") as (seen, variables):
        (tmp_path / "home" / ".codex" / "config.toml").write_text(
            'model = "gpt-5"\nmodel_provider = "simulator"\n[model_providers.simulator]\nname = "simulator"\n'
            f'base_url = "{variables["ANTHROPIC_BASE_URL"]}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
        )
        common = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")

        def ask(*arguments: str) -> str:
            run(program, "exec", *common, "--dangerously-bypass-hook-trust", *arguments, **variables)
            return seen.take()

        ask(CORRECTION)
        wait_for_work(run)
        told = ask(ASKS)
        assert quoted(told, "pnpm") and "The index of this project" in told and "Memories that may help" in told
    run(*REVERIE, "disconnect")
