"""`reverie mcp` with clients of others: Claude Code with the plug-in, and LangChain over stdio and HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.programs import DRIVERS, Run, installed, last_object, objects, serve

pytestmark = pytest.mark.integration

REVERIE = (sys.executable, "-m", "reverie")
TOOLS = ["forget", "history", "read", "recall", "remember"]
PREFIX = "mcp__plugin_reverie_reverie__"
SCRIPT = f"""
when /from now on/
  call {PREFIX}remember {{"text": "Use pnpm instead of npm in this project."}}
  call {PREFIX}remember {{"text": "The dashboard is at https://dash.example/x."}}
  ---
  say Saved. {{result}}
end
when /tell me/
  call {PREFIX}recall {{"query": "how do we ship the release and which package manager"}}
  ---
  say Recalled. {{result}}
end
say Hello.
"""
FOR_LANGCHAIN = """
call remember {"text": "Use pnpm instead of npm in this project."}
---
call recall {"query": "which package manager do we use, npm?"}
---
call forget {"name": "/etc/passwd"}
---
say Done.
"""


def test_claude_code_uses_the_server_of_the_plug_in(run: Run, tmp_path: Path) -> None:
    program = installed("claude", "lib/python*/site-packages/claude_agent_sdk/_bundled/claude")
    run(*REVERIE, "connect", "claude-code", "--mcp", "--yes")
    run(*REVERIE, "remember", "We ship the release on Tuesdays with make release")
    with serve(SCRIPT) as server:

        def ask(prompt: str) -> list[dict]:
            options = ("--allowedTools", PREFIX.removesuffix("__"), "--output-format", "stream-json", "--verbose")
            variables = {
                "ANTHROPIC_BASE_URL": server.url,
                "ANTHROPIC_API_KEY": "simulated",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            }
            return objects(run(program, "-p", prompt, *options, **variables))

        first = ask("from now on use pnpm instead of npm in this project")
        saved = first[-1]["result"]
        assert "Saved as feedback_use_pnpm_instead_npm_project.md" in saved and "waits for the user" in saved
        second = ask("tell me: how do we ship the release, and which package manager is it?")
    told = second[-1]["result"]
    assert "Already in this conversation, given with a prompt: " in told, "the hook has given it"
    assert "make release" not in told
    inferred = json.loads(run(*REVERIE, "memory", "inferred", "--json"))
    pnpm = next(one for one in inferred["statements"] if "pnpm" in one["statement"])
    assert pnpm["quote"].startswith("from now on use pnpm"), "the transcript shows that the user said it"
    waiting = run(*REVERIE, "memory", "inbox")
    assert "dash.example" in waiting, "an address that the user did not write waits"
    assert "claude-code over MCP" in run(*REVERIE, "memory", "log", "--json")


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_langchain_uses_the_server(run: Run, tmp_path: Path, transport: str) -> None:
    python = installed("langchain", "bin/python")
    installed("langchain", "lib/python*/site-packages/langchain_mcp_adapters")
    process = None
    given = ["stdio", *REVERIE, "mcp"]
    home = tmp_path / "home"
    if transport == "http":
        variables = {"HOME": str(home), "PATH": os.environ["PATH"]}
        command = [*REVERIE, "mcp", "--http"]
        process = subprocess.Popen(command, cwd=tmp_path / "work", env=variables, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        url = process.stdout.readline().split(" at ")[1].split(". Ctrl")[0]
        process.stdout.readline()
        given = ["http", url, (home / ".reverie" / "connect" / "mcp.token").read_text().strip()]
    try:
        with serve(FOR_LANGCHAIN) as server:
            said = last_object(run(python, DRIVERS / "langchain_mcp.py", *given, SIMULATOR=server.url))
    finally:
        if process is not None:
            process.terminate()
            assert process.wait(20) == 143
    assert said["tools"] == TOOLS
    _, _, saved, _, recalled, _, refused, done = said["messages"]
    assert "Saved as feedback_use_pnpm_instead_npm_project.md" in saved
    assert "Agent's notes, not the user's words" in recalled and "> - Use pnpm instead of npm" in recalled
    assert "is not the name of a memory" in refused and "Done." in done
    assert said["prompt"].startswith("install the packages with pnpm") and "Use pnpm instead" in said["prompt"]
    assert len(said["resources"]) == 1 and "Use pnpm instead of npm" in said["resources"][0]


def test_saves_of_two_clients_at_once_are_not_lost(run: Run) -> None:
    """With fewer saves than `reverie lab mcp saves`, and server-memory beside it if it is installed."""
    node = installed("node", "node_modules/@modelcontextprotocol/server-memory/dist/index.js").parents[4]
    said = json.loads(run(*REVERIE, "lab", "mcp", "saves", "--count", "60", "--node", node, "--json"))
    own, other = said["servers"]
    assert own["name"] == "reverie" and own["answered"] == own["kept"] == 60
    assert other["name"] == "server-memory" and other["answered"] == 60
    sizes = json.loads(run(*REVERIE, "lab", "mcp", "sizes", "--node", node, "--json"))["servers"]
    measured = {one["name"]: one for one in sizes if one["is_measured"]}
    assert measured["reverie"]["tools"] == 5 and measured["reverie"]["bytes"] <= 4_096
    assert measured["server-memory"]["bytes"] > measured["reverie"]["bytes"]


def test_a_model_behind_an_address_is_asked_whether_to_recall(run: Run, tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(
        '{"memory": "Use pnpm instead of npm in this project"}\n'
        '{"id": "a", "prompt": "Add a package with npm", "needs": true}\n'
        '{"id": "b", "prompt": "What is 2+2?", "needs": false}\n'
        '{"id": "c", "prompt": "Deploy it as usual", "needs": true, "memories": ["Deploy with make ship"]}\n'
    )
    script = 'when /package with/\n  call mcp__reverie__recall {"query": "npm package"}\n  ---\n  say Ok.\nend\nsay 4\n'
    with serve(script) as server:
        variables = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "simulated"}
        command = ("lab", "mcp", "calls", cases, "--model", "anthropic:claude-opus-5", "--jobs", "3", "--json")
        said = json.loads(run(*REVERIE, *command, **variables))
    assert (said["recalled"], said["needs_memory"], said["found"]) == (1, 2, 1)
    assert (said["left_alone"], said["needs_none"], said["problems"]) == (1, 1, 0)
    assert [one["calls"] for one in said["cases"]] == [["recall"], [], []]
