"""A subscription as the mind: extraction, dreams and answers by the real Claude Code and Codex, over the simulator.

The simulator reads the conversation out of the frame that the program was given, and answers what a script says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reverie.models.script import Script
from reverie.simulator import Reply, Simulator
from reverie.simulator.http import running
from tests.cli.conftest import Command
from tests.cli.memory.test_extract import COMMITS, DEMO, memory, transcript
from tests.integration.programs import Served, installed
from tests.layers.dreams import BAKERY, GOOD, JOINED, house

pytestmark = pytest.mark.integration


@dataclass(slots=True)
class Mind:
    """The model behind a program: it plays a script for the conversation that it finds in the frame."""

    script: Script
    purpose: str
    bodies: list[str] = field(default_factory=list[str])
    talks: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        self.bodies.append(json.dumps(body))
        texts = [block["text"] for message in body["messages"] for block in _blocks(message["content"])]
        lines = [line for text in texts for line in text.splitlines() if line.startswith('{"role":')]
        talk = [json.loads(line) for line in lines]
        self.talks.append(talk)
        played = self.script.reply(talk, purpose=self.purpose)
        text = "\n".join(block["text"] for block in played.content if block["type"] == "text")
        made = [block for block in played.content if block["type"] == "tool_use"]
        if any(tool["name"] == "StructuredOutput" for tool in body.get("tools") or []):
            calls = [{"name": block["name"], "input": block["input"]} for block in made]
            given = {"type": "tool_use", "id": "toolu_1", "name": "StructuredOutput"}
            return Reply([{**given, "input": {"text": text, "calls": calls}}], "tool_use")
        if (body.get("output_config") or {}).get("format"):
            calls = [{"name": block["name"], "input": json.dumps(block["input"])} for block in made]
            text = json.dumps({"text": text, "calls": calls})
        return Reply([{"type": "text", "text": text}], "end_turn")


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"text": content}] if isinstance(content, str) else [block for block in content if block.get("text")]


@dataclass(slots=True)
class Place:
    """A user with a program that has hooks, instructions, a server and a memory, none of which may take part."""

    command: Command
    model: str
    program: str
    root: Path

    @property
    def ran(self) -> list[str]:
        return sorted(path.name for path in self.root.glob("*-ran"))

    @property
    def recorded(self) -> list[str]:
        folders = (self.root / ".claude" / "projects", self.root / ".codex" / "sessions")
        return [str(path) for folder in folders for path in folder.rglob("*.jsonl")]


@pytest.fixture(params=["claude-code", "codex"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    work, home = tmp_path / "work", tmp_path / "home"
    for folder in (work, home, tmp_path / ".claude", tmp_path / ".codex"):
        folder.mkdir()
    hook = [{"hooks": [{"type": "command", "command": f"touch {tmp_path}/hook-ran; echo CANARY"}]}]
    hooks = dict.fromkeys(("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"), hook)
    server = {"command": "sh", "args": ["-c", f"touch {tmp_path}/server-ran; sleep 1"]}
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"canary": server}}))
    (tmp_path / ".claude" / "CLAUDE.md").write_text("Say CANARY in every answer.")
    (tmp_path / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    (tmp_path / ".codex" / "config.toml").write_text(
        f'notify = ["touch", "{tmp_path}/notify-ran"]\n[mcp_servers.canary]\ncommand = "touch"\n'
        f'args = ["{tmp_path}/server-ran"]\n'
    )
    program = installed("claude", "lib/python*/site-packages/claude_agent_sdk/_bundled/claude")
    if request.param == "codex":
        program = installed("node", "node_modules/.bin/codex")
    return Place(Command(home, work), f"{request.param}:", str(program), tmp_path)


def settle(place: Place, url: str) -> None:
    """Points the program to the simulator, by what its user would set."""
    key = {"claude-code": "claude_code_program", "codex": "codex_program"}[place.model.rstrip(":")]
    words = place.program
    if place.model == "codex:":
        place.model = "codex:gpt-5"
        provider = f'name="s",base_url="{url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"'
        words += f" -c model_provider=s -c 'model_providers.s={{{provider}}}'"
    # Our own session would run the user's hooks of Claude Code; here the program must not.
    own = f"[model]\n{key} = {json.dumps(words)}\n[claude]\nhooks = false\n"
    (place.command.home / "settings.toml").write_text(own)
    place.command.extra |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "simulated", "OPENAI_API_KEY": "simulated"}


def check_clean(place: Place, mind: Mind) -> None:
    assert place.ran == [], "no hook, server or notification of the user's own configuration ran"
    assert place.recorded == [], "no session was recorded"
    for body in map(json.loads, mind.bodies):
        texts = [block["text"] for message in body["messages"] for block in _blocks(message["content"])]
        own = [line for text in texts for line in text.splitlines() if not line.startswith('{"role":')]
        assert "CANARY" not in "\n".join(own), "nothing of the user's configuration was sent beside the conversation"
        names = {tool["name"] for tool in body.get("tools") or []}
        assert names <= {"StructuredOutput", "DeferredToolPlaceholder", "request_user_input"}


def test_extraction(place: Place) -> None:
    reverie = place.command
    found = Path(reverie("memory", "path").stdout.split()[0])

    def write(name: str, text: str) -> str:
        return f"call Write {json.dumps({'file_path': str(found / name), 'content': text})}"

    commits = write("feedback_commits.md", memory("Imperative commits", "feedback", COMMITS))
    demo = write("project_demo.md", memory("Demo for Haldor", "project", DEMO))
    mind = Mind(
        Script.parse(
            f"[extraction]\nwhen /Monday, 2026-03-02/\n  {commits}\n  ---\n  say ok\nend\n"
            f"when /Monday, 2026-03-09/\n  {demo}\n  ---\n  say ok\nend\nsay nothing\n"
        ),
        "extraction",
    )
    path = transcript(reverie.work / "old.jsonl")
    with running(simulator := Simulator(mind)) as url:
        settle(place, url)
        done = reverie("extract", str(path), "--model", place.model, "--json", timeout=150)
    report = json.loads(done.stdout)
    assert {change["file"] for change in report["changes"]} == {"feedback_commits.md", "project_demo.md"}
    assert DEMO in (found / "project_demo.md").read_text() and COMMITS in (found / "feedback_commits.md").read_text()
    listed = {one["file"]: one for one in json.loads(reverie("memory", "list", "--json").stdout)["memories"]}
    evidence = listed["feedback_commits.md"]["evidence"]
    assert "write commit messages in the imperative" in evidence, "the user's own words are the evidence"
    rows = Served(simulator, "").rows
    sent = sum(row.usage.prompt for row in rows)
    assert sum(count for key, count in report["tokens"].items() if key.endswith("input_tokens")) == sent > 0
    assert report["tokens"]["output_tokens"] == sum(row.usage.output_tokens for row in rows)
    assert report["cost_usd"] > 0, "the real model has a price"
    check_clean(place, mind)


def test_a_dream(place: Place) -> None:
    reverie = place.command
    bakery = house(place.root / "work")
    reverie.extra["REVERIE_MEMORY_PATH"] = str(bakery.memory)
    mind = Mind(Script.parse(re.sub(r"\bMEM\b", str(bakery.memory), GOOD)), "main")
    with running(Simulator(mind)) as url:
        settle(place, url)
        done = json.loads(reverie("dream", "--now", "--model", place.model, "--json", timeout=150).stdout)
    assert done["outcome"] == "landed" and {one["file"] for one in done["files"]} == {
        "project_oven.md",
        "project_oven_copy.md",
    }
    assert bakery.files["project_oven.md"] == JOINED and bakery.files["user_mara.md"] == BAKERY["user_mara.md"]
    assert len(mind.talks) == 3, "it reads, writes and answers"
    for before, after in zip(mind.talks, mind.talks[1:], strict=False):
        assert after[: len(before)] == before, "each request extends the one before it"
    assert [block["type"] for block in mind.talks[1][-1]["content"]] == ["tool_result"] * 3
    check_clean(place, mind)
    status = json.loads(reverie("dream", "status", "--json").stdout)
    assert status["last"]["outcome"] == "landed"


def test_an_answer_with_several_rounds_is_booked_and_reads_its_cache(place: Place) -> None:
    reverie = place.command
    reverie.extra |= {"REVERIE_DISABLE_MEMORY": "1", "ENABLE_PROMPT_CACHING_1H": "1"}  # the second: Claude Code's own
    (reverie.work / "ports.txt").write_text("port = 8080\n" * 1_500)
    mind = Mind(Script.parse('call Read {"file_path": "ports.txt"}\n---\nsay The port is 8080.\n'), "main")
    with running(simulator := Simulator(mind)) as url:
        settle(place, url)
        done = reverie("run", "--model", place.model, "Which port?", timeout=150)
    assert done.stdout.strip() == "The port is 8080."
    rows = Served(simulator, "").rows
    main = [row for row in rows if row.usage.prompt > 2_000]
    assert len(main) == 2 and main[1].usage.cache_read_input_tokens > 0.5 * main[0].usage.prompt
    cost = json.loads(reverie("cost", "--json").stdout)
    assert cost["total"]["prompt_tokens"] == sum(row.usage.prompt for row in main)
    assert cost["total"]["cost_usd"] > 0 and cost["total"]["unpriced_requests"] == 0
    check_clean(place, mind)


def test_a_failure_is_one_sentence(place: Place) -> None:
    reverie = place.command
    settle(place, "http://127.0.0.1:9")
    place.command.extra["REVERIE_RETRIES"] = "0"
    if place.model == "claude-code:":
        del place.command.extra["ANTHROPIC_API_KEY"], place.command.extra["ANTHROPIC_BASE_URL"]
        failed = reverie("run", "--model", place.model, "Hello", code=5, timeout=150)
        assert "Claude Code is not logged in: Not logged in" in failed.stderr and "/login" in failed.stderr
    again = reverie.extra | {"REVERIE_INSIDE": "1"}
    reverie.extra.update(again)
    failed = reverie("run", "--model", place.model, "Hello", code=2)
    assert "inside a program of a model" in failed.stderr
