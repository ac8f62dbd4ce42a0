"""Today's clients against the simulator: a tool call, a long result, and structured output and resume where they exist.

Every client is the vendor's own program, unchanged. What it is told is scripted; what it sends is its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.clients import (
    AIDER_ENVIRONMENT,
    AIDER_FILE,
    CLAUDE_ENVIRONMENT,
    CODEX_OPTIONS,
    FIRST,
    OPENCODE_ENVIRONMENT,
    SECOND,
    agent_script,
    aider,
    aider_script,
    claude_code,
    claude_options,
    codex,
    opencode,
    opencode_settings,
)
from tests.integration.programs import DRIVERS, Run, installed, last_object, objects, serve

pytestmark = pytest.mark.integration

LONG = 2_000
"""The least tokens of the long result, as clients pass it on."""
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"port": {"type": "integer"}, "where": {"type": "string"}},
        "required": ["port", "where"],
        "additionalProperties": False,
    }
)
AGENT = agent_script()


def test_claude_code(run: Run) -> None:
    claude = claude_code()
    script = """
    when /Look around/
      call Bash {"command": "ls -a", "description": "list"}
      ---
      say Nothing there.
    end
    when /as data/
      call StructuredOutput {"port": 8080, "where": "in the log"}
      ---
      say Done.
    end
    when /And where/
      say In the log.
    end
    say Let me look.
    call Bash {"command": "seq 1 3000", "description": "count"}
    ---
    say I ask another.
    call Agent {"description": "look", "prompt": "Look around, please.", "subagent_type": "general-purpose"}
    ---
    repeat forever
      say The port is 8080.
    end
    """
    with serve(script) as server:
        environment = {**CLAUDE_ENVIRONMENT, "ANTHROPIC_BASE_URL": server.url}
        common = claude_options("Bash,Agent")

        def ask(*arguments: str) -> dict[str, Any]:
            return json.loads(run(claude, "-p", *arguments, *common, **environment))

        first = ask("Which port?")
        assert first["result"] == "The port is 8080." and not first["is_error"]
        before = max(server.rows, key=lambda row: row.usage.prompt).usage.prompt
        resumed = ask("And where was it?", "--resume", first["session_id"])
        assert (resumed["result"], resumed["session_id"]) == ("In the log.", first["session_id"])
        assert server.rows[-1].usage.cache_read_input_tokens >= before, "a resumed session reads its cache"
        data = ask("And where was it, as data?", "--json-schema", SCHEMA)
        assert data["structured_output"] == SECOND
        fresh = [row for row in server.rows if row.usage.cache_read_input_tokens == 0]
        assert len(fresh) >= 2, "the sub-agent begins with a prompt of its own"
        sizes = [row.usage.cache_creation_input_tokens for row in server.rows[1:]]
        assert max(sizes) > LONG
        assert (server.misses, server.errors) == ([], [])


def test_codex(run: Run, tmp_path: Path) -> None:
    program = codex()
    script = """
    when /And where/
      say In the log.
    end
    when /as data/
      say {"port": 8080, "where": "in the log"}
    end
    say Let me look.
    call exec_command {"cmd": "seq 1 3000", "login": false}
    ---
    say The port is 8080.
    """
    with serve(script) as server:
        home = tmp_path / "codex"
        home.mkdir()
        (home / "config.toml").write_text(
            'model = "gpt-5"\nmodel_provider = "simulator"\n[model_providers.simulator]\nname = "simulator"\n'
            f'base_url = "{server.url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n',
            encoding="utf-8",
        )
        schema = tmp_path / "schema.json"
        schema.write_text(SCHEMA, encoding="utf-8")
        environment = {"CODEX_HOME": str(home), "OPENAI_API_KEY": "simulated"}

        def ask(*arguments: str | Path) -> list[dict[str, Any]]:
            events = objects(run(program, "exec", *arguments, *CODEX_OPTIONS, **environment))
            assert events[-1]["type"] == "turn.completed", events
            return [event["item"] for event in events if event["type"] == "item.completed"]

        first = ask("Which port?")
        (command,) = [item for item in first if item["type"] == "command_execution"]
        assert command["exit_code"] == 0 and len(command["aggregated_output"]) > 10_000
        assert first[-1]["text"] == "The port is 8080."
        assert ask("resume", "--last", "And where was it?")[-1]["text"] == "In the log."
        assert [row.endpoint for row in server.rows] == ["/v1/responses"] * 3
        assert server.rows[1].usage.prompt - server.rows[0].usage.prompt > LONG
        for before, after in zip(server.rows, server.rows[1:], strict=False):
            assert after.usage.cache_read_input_tokens >= before.usage.prompt - 128, "each request reads the one before"
        assert (server.misses, server.errors) == ([], [])
        data = ask("resume", "--last", "--output-schema", schema, "Tell it as data.")
        assert json.loads(data[-1]["text"]) == SECOND
        assert server.misses == [("output_format", "output_format")], "a schema is part of the prompt"


def test_opencode(run: Run, tmp_path: Path) -> None:
    program = opencode()
    script = """
    when /And where/
      say In the log.
    end
    say Let me look.
    call bash {"command": "seq 1 3000", "description": "count"}
    ---
    say The port is 8080.
    """
    with serve(script) as server:
        settings = opencode_settings(baseURL=f"{server.url}/v1")
        (tmp_path / "work" / "opencode.json").write_text(settings, encoding="utf-8")
        first = objects(run(program, "run", "--format", "json", "Which port?", **OPENCODE_ENVIRONMENT))
        (call,) = [event["part"] for event in first if event["type"] == "tool_use"]
        assert call["state"]["status"] == "completed" and "3000" in call["state"]["output"]
        said = [event["part"]["text"] for event in first if event["type"] == "text"]
        assert said[-1] == "The port is 8080."
        assert "In the log." in run(program, "run", "--continue", "And where was it?", **OPENCODE_ENVIRONMENT)
        main = [row for row in server.rows if row.model == "claude-opus-5"]
        assert len(main) == 3 and main[1].usage.prompt - main[0].usage.prompt > LONG
        assert [row.usage.cache_read_input_tokens for row in main] == [0, main[0].usage.prompt, main[1].usage.prompt]
        assert (server.misses, server.errors) == ([], [])


def test_aider(run: Run, tmp_path: Path) -> None:
    """aider has no tools: its tool call is the edit that it finds in the answer, and the long result is a file."""
    common = aider()
    target = tmp_path / "work" / "server.py"
    target.write_text(AIDER_FILE, encoding="utf-8")
    with serve(aider_script()) as server:
        environment = {**AIDER_ENVIRONMENT, "ANTHROPIC_BASE_URL": server.url}
        assert "Applied edit" in run(*common, "--message", "Make it 9090", target.name, **environment)
        assert target.read_text().startswith("PORT = 9090\n")
        run(*common, "--restore-chat-history", "--message", "Now make it 7070", target.name, **environment)
        assert target.read_text().startswith("PORT = 7070\n")
        assert min(row.usage.prompt for row in server.rows if row.purpose == "main") > LONG
        assert server.errors == []


def test_llm(run: Run, tmp_path: Path) -> None:
    llm = installed("llm", "bin/llm")
    (tmp_path / "work" / "tools.py").write_text(
        'def read_log(name: str) -> str:\n    """Reads a log."""\n    return "port = 8080\\n" * 2_000\n',
        encoding="utf-8",
    )
    with serve(AGENT) as server:
        environment = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "simulated"}
        environment |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "simulated"}
        for model in ("claude-opus-5", "gpt-4o-mini"):
            first = run(llm, "-m", model, "--functions", "tools.py", "Which port?", **environment)
            assert json.loads(first) == FIRST
            second = run(llm, "-c", "--schema", "port int, where str", "And where was it?", **environment)
            assert json.loads(second) == SECOND
        wires = [row.endpoint for row in server.rows]
        assert wires == ["/v1/messages"] * 3 + ["/v1/chat/completions"] * 3
        assert all(row.usage.prompt > LONG for row in (server.rows[1], server.rows[2], server.rows[4]))
        assert server.errors == []


@pytest.mark.parametrize("threads", [False, True], ids=["without threads", "with threads"])
def test_the_tool_runner_of_the_anthropic_sdk(run: Run, threads: bool) -> None:
    python = installed("anthropic", "bin/python")
    with serve(AGENT, threads=threads) as server:
        answer = last_object(run(python, DRIVERS / "anthropic_runner.py", SIMULATOR=server.url))
        assert (json.loads(answer["text"]), answer["parsed"]) == (FIRST, SECOND)
        assert len(server.rows) == 3 and server.rows[1].usage.prompt > LONG
        assert len(server.errors) == (0 if threads else 2), "each run is refused a thread once, and does without"


@pytest.mark.parametrize("wire", ["anthropic", "chat"])
def test_langchain(run: Run, wire: str) -> None:
    python = installed("langchain", "bin/python")
    with serve(AGENT) as server:
        answer = last_object(run(python, DRIVERS / "langchain_agent.py", wire, SIMULATOR=server.url))
        assert answer["answers"] == [FIRST, SECOND, SECOND]
        assert answer["kinds"].count("human") == 2
        assert max(row.usage.prompt for row in server.rows) > LONG and server.errors == []


@pytest.mark.parametrize("wire", ["anthropic", "chat", "responses"])
def test_pydantic_ai(run: Run, wire: str) -> None:
    python = installed("pydantic-ai", "bin/python")
    with serve(AGENT) as server:
        answer = last_object(run(python, DRIVERS / "pydantic_agent.py", wire, SIMULATOR=server.url))
        assert answer["answers"] == [FIRST, SECOND]
        assert len(server.rows) == 3 and server.rows[1].usage.prompt > LONG and server.errors == []


def test_openai_agents(run: Run) -> None:
    python = installed("openai-agents", "bin/python")
    with serve(AGENT) as server:
        answer = last_object(run(python, DRIVERS / "openai_agent.py", SIMULATOR=server.url))
        assert answer["answers"] == [FIRST, SECOND]
        assert [row.endpoint for row in server.rows] == ["/v1/responses"] * 3
        assert server.rows[1].usage.prompt > LONG and answer["cached"] > LONG
        assert (server.misses, server.errors) == ([], [])
