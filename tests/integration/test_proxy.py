"""Clients of today through `reverie proxy`: the same answers and edits as directly, and one conversation each.

Every client is the vendor's own program, unchanged. Each has a task with an edit and long results, and goes on with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.library.read_tool import READ_TOOL
from reverie.proxy.bodies import items_of, results_of
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
from tests.integration.proxied_clients import Ask, Passage, passage
from tests.proxy.proxied import proxy, stats
from tests.proxy.reader import READ, Mind, assert_one_prefix, call, say, sent, thinking_upstream

pytestmark = pytest.mark.integration

LINES = "".join(f"{number:05} the server listens on port 8080\n" for number in range(1_900))
AGENT = agent_script(
    'call edit_file {"name": "server.py", "old": "8080", "new": "9090"}', 'call read_log {"name": "other.log"}'
)
Task = Callable[[Ask], Any]


class Compared:
    """One task done three times: directly, through the proxy, and through a proxy without layers."""

    def __init__(self, run: Run, tmp_path: Path) -> None:
        self._run, self.work, self._home = run, tmp_path / "work", tmp_path

    def __call__(
        self, name: str, script: str, task: Task, files: dict[str, str], *, per_run: dict[str, str] | None = None
    ) -> tuple[Passage, Passage]:
        """Compares answers, files and bytes, prints the bills; returns what passed with layers and without."""
        found = dict[str, tuple[Any, dict[str, str], Passage]]()
        for way, layers in (("direct", None), ("through", ("1", "2", "4")), ("plain", ())):
            own = self._home / way
            own.mkdir()
            environment = {key: value.replace("{home}", str(own)) for key, value in (per_run or {}).items()}
            for file, text in files.items():
                (self.work / file).write_text(text, encoding="utf-8")
            with passage(script, self._run, own / "reverie", layers, environment) as passed:
                answer = task(passed.ask)
            after = {file: (self.work / file).read_text() for file in files}
            found[way] = answer, after, passed
            assert passed.server.errors == [], way
        direct, through, plain = (found[way][2] for way in ("direct", "through", "plain"))
        sums = through.stats["total"]
        print(
            f"{name}: {len(through.came)} requests, directly ${direct.cost:.4f}, through the proxy ${through.cost:.4f} "
            f"({through.cost / direct.cost:.0%}), foretold ${sums['direct']:.4f}, {sums['results']} results changed"
        )
        assert through.cost <= 1.01 * direct.cost, "at most 1% more"
        assert found["through"][:2] == found["plain"][:2] == found["direct"][:2], "the same answers and edits"
        assert sorted(plain.arrived) == sorted(plain.came), "without layers, every body is as it came"
        _only_results_differ(through)
        for passed in (through, plain):
            assert not passed.stats["failures"], passed.stats["failures"]
        return through, plain


def _only_results_differ(passed: Passage) -> None:
    """A body that differs from what the client sent has fewer characters in a result, markers, or the tool that reads
    such results back; nothing else."""
    arrived, changed = list(passed.arrived), 0
    assert len(arrived) == len(passed.came)
    for came in passed.came:
        if came in arrived:
            arrived.remove(came)
            continue
        shown = _without_results(came)
        same = next(one for one in arrived if _without_results(one) == shown)
        arrived.remove(same)
        changed += 1
    assert passed.stats["total"]["changed"] == changed


def _without_results(raw: bytes) -> Any:
    body = json.loads(raw)
    api = "responses" if "input" in body else "chat" if _is_chat(body) else "messages"
    for result in list(results_of(api, body)):
        result.holder[result.key] = ""
    if "tools" in body:
        body["tools"] = [one for one in body["tools"] if READ_TOOL not in (one.get("function") or one).get("name", "")]
    holders = [(body, "system"), *((item, "content") for item in items_of(api, body))]
    for holder, key in holders if api == "messages" else []:
        if isinstance(holder.get(key), str):
            holder[key] = [{"type": "text", "text": holder[key]}]
        for block in holder.get(key) or []:
            block.pop("cache_control", None)
    return body


def _is_chat(body: dict[str, Any]) -> bool:
    return any(one.get("role") in ("system", "tool", "developer") for one in body["messages"])


@pytest.fixture
def compared(run: Run, tmp_path: Path) -> Compared:
    return Compared(run, tmp_path)


def test_claude_code(compared: Compared) -> None:
    claude = claude_code()
    script = """
    when /Look around/
      call Bash {"command": "ls -a", "description": "list"}
      ---
      say Nothing there.
    end
    when /And where/
      say In the log.
    end
    say Let me look.
    call Read {"file_path": "{work}/server.log"}
    ---
    call Read {"file_path": "{work}/server.py"}
    ---
    call Edit {"file_path": "{work}/server.py", "old_string": "8080", "new_string": "9090"}
    ---
    say I ask another.
    call Agent {agent}
    ---
    call Bash {"command": "seq 1 5000", "description": "count"}
    ---
    repeat forever
      say The port is 8080.
    end
    """.replace("{work}", str(compared.work))
    agent = {"description": "look", "prompt": "Look around, please.", "subagent_type": "general-purpose"}
    script = script.replace("{agent}", json.dumps({**agent, "run_in_background": False}))
    environment = {**CLAUDE_ENVIRONMENT, "CLAUDE_CONFIG_DIR": "{home}"}
    common = claude_options("Bash,Agent,Read,Edit")

    def task(ask: Ask) -> list[str]:
        first = json.loads(ask(claude, "-p", "Which port?", *common))
        second = json.loads(ask(claude, "-p", "And where was it?", "--resume", first["session_id"], *common))
        return [first["result"], second["result"]]

    through, _ = compared(
        "Claude Code", script, task, {"server.log": LINES, "server.py": "PORT = 8080\n"}, per_run=environment
    )
    assert len(through.sessions("claude-opus-5-5")) == 2, "the conversation, and that of its sub-agent"


def test_codex(compared: Compared) -> None:
    program = codex()
    script = """
    when /And where/
      say In the log.
    end
    say Let me look.
    call exec_command {"cmd": "cat server.log", "login": false, "max_output_tokens": 20000}
    ---
    call exec_command {"cmd": "sed -i s/8080/9090/ server.py", "login": false}
    ---
    call exec_command {"cmd": "cat server.log server.py", "login": false, "max_output_tokens": 20000}
    ---
    say The port is 8080.
    """

    def task(ask: Ask) -> list[str]:
        said = list[str]()
        for arguments in (("Which port?",), ("resume", "--last", "And where was it?")):
            events = objects(ask(program, "exec", *arguments, *CODEX_OPTIONS, "-m", "gpt-5"))
            assert events[-1]["type"] == "turn.completed", events
            said.append([event["item"] for event in events if event["type"] == "item.completed"][-1]["text"])
        return said

    through, _ = compared(
        "Codex",
        script,
        task,
        {"server.log": LINES, "server.py": "PORT = 8080\n"},
        per_run={"CODEX_HOME": "{home}", "OPENAI_API_KEY": "simulated"},
    )
    assert len(through.sessions("gpt-5")) == 1


def test_opencode(compared: Compared) -> None:
    program = opencode()
    script = """
    when /And where/
      say In the log.
    end
    say Let me look.
    call read {"filePath": "{work}/server.log"}
    ---
    call read {"filePath": "{work}/server.py"}
    ---
    call edit {"filePath": "{work}/server.py", "oldString": "8080", "newString": "9090"}
    ---
    call bash {"command": "seq 1 5000", "description": "count"}
    ---
    say The port is 8080.
    """.replace("{work}", str(compared.work))
    environment = {**OPENCODE_ENVIRONMENT, "OPENCODE_CONFIG_CONTENT": opencode_settings(), "XDG_DATA_HOME": "{home}"}

    def task(ask: Ask) -> list[str]:
        first = objects(ask(program, "run", "--format", "json", "Which port?"))
        said = [event["part"]["text"] for event in first if event["type"] == "text"]
        second = objects(ask(program, "run", "--format", "json", "--continue", "And where was it?"))
        return [said[-1], *(event["part"]["text"] for event in second if event["type"] == "text")]

    through, _ = compared(
        "opencode", script, task, {"server.log": LINES, "server.py": "PORT = 8080\n"}, per_run=environment
    )
    assert len(through.sessions("claude-opus-5")) == 1


def test_aider(compared: Compared) -> None:
    """aider has no tools, and writes its history and its map of the files anew in every request."""
    common = aider()

    def task(ask: Ask) -> bool:
        (compared.work / ".aider.chat.history.md").unlink(missing_ok=True)
        applied = "Applied edit" in ask(*common, "--message", "Make it 9090", "server.py")
        ask(*common, "--restore-chat-history", "--message", "Now make it 7070", "server.py")
        return applied

    through, _ = compared(
        "aider",
        aider_script(),
        task,
        {"server.py": AIDER_FILE},
        per_run=AIDER_ENVIRONMENT,
    )
    assert through.stats["total"]["results"] == 0


AGENTS = [
    ("langchain", "langchain_agent.py", "anthropic"),
    ("langchain", "langchain_agent.py", "chat"),
    ("pydantic-ai", "pydantic_agent.py", "anthropic"),
    ("pydantic-ai", "pydantic_agent.py", "chat"),
    ("pydantic-ai", "pydantic_agent.py", "responses"),
    ("openai-agents", "openai_agent.py", "responses"),
]


@pytest.mark.parametrize(("folder", "driver", "wire"), AGENTS)
def test_agents(compared: Compared, folder: str, driver: str, wire: str) -> None:
    python = installed(folder, "bin/python")

    def task(ask: Ask) -> Any:
        (compared.work / "sessions.db").unlink(missing_ok=True)
        return last_object(ask(python, DRIVERS / driver, wire))["answers"]

    through, _ = compared(f"{folder} ({wire})", AGENT, task, {"server.py": "PORT = 8080\n"})
    assert (compared.work / "server.py").read_text() == "PORT = 9090\n"
    assert len(through.stats["sessions"]) == (2 if folder == "langchain" else 1), "langchain asks once more, apart"


@pytest.mark.parametrize(("folder", "driver", "wire"), AGENTS)
def test_agents_get_results_read_back_and_see_nothing_of_it(
    run: Run, tmp_path: Path, folder: str, driver: str, wire: str
) -> None:
    """The model reads a copy in a round of its own, and once more beside a call of the agent."""
    python = installed(folder, "bin/python")
    edit = {"name": "server.py", "old": "8080", "new": "9090"}
    mind = Mind(
        [{**call("read_log"), "input": {"name": "server.log"}}],
        [say("Let me see."), READ],
        [{**call("edit_file"), "input": edit}, READ],
        [say(json.dumps(FIRST))],
        otherwise=say(json.dumps(SECOND)),
    )
    (tmp_path / "work" / "server.py").write_text("PORT = 8080\n")
    with thinking_upstream(mind) as (_, tee), proxy(tmp_path / "reverie", tee.url, layers=("1",)) as url:
        addresses = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1", "SIMULATOR": url}
        answers = last_object(run(python, DRIVERS / driver, wire, **addresses))["answers"]
        found = stats(url)
    assert answers[:2] == [FIRST, SECOND] and (tmp_path / "work" / "server.py").read_text() == "PORT = 9090\n"
    assert [len(text) > 10_000 for text in mind.results] == [True, True]
    assert (found["total"]["rounds"], found["total"]["reads"], found["failures"]) == (1, 2, {})
    assert_one_prefix(sent(tee)[:5], "input" if wire == "responses" else "messages")


def test_the_command_starts_a_client_and_ends_with_it(run: Run, tmp_path: Path) -> None:
    claude = claude_code()
    environment = {**CLAUDE_ENVIRONMENT, "REVERIE_HOME": str(tmp_path / "reverie")}
    reverie = (sys.executable, "-m", "reverie", "proxy")
    with serve("say The port is 8080.") as server:
        said = run(*reverie, "--upstream", server.url, "--", claude, "-p", "Which port?", **environment)
        assert said.strip() == "The port is 8080." and server.errors == []
        told = json.loads(run(*reverie, "stats", "--json", **environment))
    assert told["total"]["requests"] == len(server.rows) and told["failures"] == {}
    assert told["total"]["paid"] == pytest.approx(server.simulator.ledger.totals()["cost_usd"])
