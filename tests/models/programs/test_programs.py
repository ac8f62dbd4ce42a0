"""Programs as models, with small programs as real processes: answers, usage, failures, and no process left behind."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import (
    AuthenticationFailed,
    ModelError,
    Overloaded,
    PromptTooLong,
    ReverieError,
    UnknownModel,
    Unreachable,
    UserError,
)
from reverie.models.base import Model
from reverie.models.catalogue import Catalogue
from reverie.models.registry import ModelAccess, facts_of, open_model, small_model_name, split_name
from reverie.types import ToolUseBlock
from tests.models.requests import answered, ask, collect, person, request
from tests.waiting import FOREVER_S, LIMIT_S, until


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs; temporary files are in it too."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path


def program(folder: Path, text: str, name: str = "program") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def opened(name: str, **access: Any) -> Model:
    return open_model(name, ModelAccess(**access), Catalogue.load())


def claude(folder: Path, *results: dict[str, Any], before: str = "", **access: Any) -> Model:
    lines = "\n".join(json.dumps(result) for result in results)
    text = f"{before}\nprintf '%s\\n' \"$@\" >{folder}/options\ncat >{folder}/stdin\ncat <<'END'\n{lines}\nEND"
    return opened("claude-code:haiku", claude_code_program=program(folder, text), **access)


RESULT: dict[str, Any] = {
    "type": "result",
    "is_error": False,
    "result": "",
    "structured_output": {"text": "Look.", "calls": [{"name": "Read", "input": {"file_path": "a"}}]},
    "usage": {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 80},
    "modelUsage": {"claude-haiku-5-5": {"outputTokens": 5}, "small": {"outputTokens": 1}},
    "total_cost_usd": 0.01,
}


def test_claude_code_answers_with_calls_and_its_usage(folder: Path) -> None:
    model = claude(folder, {"type": "system"}, RESULT, before=f"env >{folder}/env; ls -A >{folder}/there")
    asked = request(person("hello"), effort="low")
    events, response = ask(model, asked)
    assert (response.model, response.stop_reason, len(events)) == ("claude-haiku-5-5", "tool_use", 3)
    assert (response.usage.prompt, response.usage.output_tokens) == (987, 5)
    (call,) = (block for block in response.content if isinstance(block, ToolUseBlock))
    assert (call.name, call.input) == ("Read", {"file_path": "a"})
    assert response.raw_usage["total_cost_usd"] == 0.01
    options = (folder / "options").read_text().splitlines()
    for wanted in ("--safe-mode", "--strict-mcp-config", "--no-session-persistence", "--model=haiku", "--json-schema"):
        assert wanted in options
    assert options[options.index("--tools") + 1] == "" and "--bare" not in options
    env = (folder / "env").read_text()
    assert "\nREVERIE_INSIDE=1\n" in env and "\nCLAUDECODE=" not in env
    assert (folder / "there").read_text() == "", "it runs in an empty folder"
    assert list((folder / "tmp").iterdir()) == [], "which is gone afterwards"
    (first,) = (json.loads(line) for line in (folder / "stdin").read_text().splitlines())
    ask(model, answered(asked, response))
    (second,) = (json.loads(line) for line in (folder / "stdin").read_text().splitlines())
    blocks, more = first["message"]["content"], second["message"]["content"]
    assert [block["text"] for block in more[:1]] == [block["text"] for block in blocks[:1]] and len(more) == 4
    assert "cache_control" in blocks[-2] and "cache_control" in more[-2], "the end of the conversation is marked"


QUOTED = json.dumps({"text": "", "calls": [{"name": "Write", "input": {"file_path": "a", "content": "b"}}]})


@pytest.mark.parametrize("said", [QUOTED, f"```json\n{QUOTED}\n```"])
def test_calls_that_claude_code_only_quotes_are_not_made(folder: Path, said: str) -> None:
    """An older version, or a model that ends without the form: its text may be that of a page."""
    without = {key: value for key, value in RESULT.items() if key != "structured_output"}
    _, response = ask(claude(folder, {**without, "result": said}), request())
    assert response.stop_reason == "end_turn" and [block.wire()["text"] for block in response.content] == [said]


@pytest.mark.parametrize("name", ["--dangerously-x", "-c", "x -c a=b", "x; touch y", "$(touch y)"])
@pytest.mark.parametrize("kind", ["claude-code", "codex"])
def test_the_name_of_a_model_is_never_an_option(folder: Path, kind: str, name: str) -> None:
    found = program(folder, f"printf '%s\\n' \"$@\" >{folder}/options; cat >/dev/null; exit 3")
    model = opened(f"{kind}:{name}", claude_code_program=found, codex_program=found)
    with pytest.raises(ModelError):
        ask(model, request())
    options = (folder / "options").read_text().splitlines()
    assert f"--model={name}" in options and name not in options[options.index(f"--model={name}") :]
    assert not (folder / "y").exists()


def test_an_error_does_not_quote_the_conversation(folder: Path) -> None:
    text = "grep -o 'my secret plan.*' >&2; echo 'No such model' >&2; exit 1"
    with pytest.raises(ModelError, match="No such model") as caught:
        ask(opened(f"command:{program(folder, text)}"), request(person("Here is my secret plan for the year")))
    assert "secret plan" not in str(caught.value)


FAILURES = [
    ({"result": "Not logged in · Please run /login"}, AuthenticationFailed, "not logged in"),
    ({"result": "API Error: 401 bad token", "api_error_status": 401}, AuthenticationFailed, "/login"),
    ({"result": "You've hit your session limit · resets 3pm", "api_error_status": 429}, Overloaded, "resets 3pm"),
    ({"result": "API Error: 529 Overloaded.", "api_error_status": 529}, Overloaded, "529"),
    ({"result": "Prompt is too long · ~300000 tokens (limit 200000)"}, PromptTooLong, "too long"),
    ({"result": "", "subtype": "error_max_structured_output_retries"}, ModelError, "error_max_structured"),
]


@pytest.mark.parametrize(("given", "kind", "words"), FAILURES, ids=[str(one[2]) for one in FAILURES])
def test_failures_that_claude_code_reports(
    folder: Path, given: dict[str, Any], kind: type[ModelError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        ask(claude(folder, {"type": "result", "is_error": True, **given}), request())
    if "session limit" in str(given):
        assert caught.value.retry_after == 3_600, "nobody tries again at once"
    if isinstance(caught.value, PromptTooLong):
        assert (caught.value.actual, caught.value.limit) == (300_000, 200_000)


def test_a_limit_that_says_when_it_ends(folder: Path) -> None:
    said = f"Claude AI usage limit reached|{int(time.time()) + 7_200}"
    with pytest.raises(Overloaded) as caught:
        ask(claude(folder, {"type": "result", "is_error": True, "result": said}), request())
    assert 7_000 < (caught.value.retry_after or 0) <= 7_200


def test_markers_that_are_refused_are_left_out(folder: Path) -> None:
    failed = {
        "type": "result",
        "is_error": True,
        "api_error_status": 400,
        "result": "API Error: 400 cache_control: five",
    }
    text = f"if grep -q cache_control; then echo '{json.dumps(failed)}'; else echo '{json.dumps(RESULT)}'; fi"
    model = opened("claude-code:", claude_code_program=program(folder, f"echo >>{folder}/runs\n{text}"))
    for runs in (2, 3):
        assert ask(model, request())[1].model == "claude-haiku-5-5"
        assert (folder / "runs").read_text().count("\n") == runs, "once is enough to know"


def codex(folder: Path, *events: dict[str, Any], code: int = 0) -> Model:
    lines = "\n".join(json.dumps(event) for event in events)
    text = f"printf '%s\\n' \"$@\" >{folder}/options\ncat >{folder}/stdin\ncat <<'END'\n{lines}\nEND\nexit {code}"
    return opened("codex:gpt-5.5", codex_program=program(folder, text) + " -c 'a = 1'")


def test_codex_answers_with_calls_and_its_usage(folder: Path) -> None:
    said = {"text": "", "calls": [{"name": "Read", "input": '{"file_path": "a"}'}]}
    item = {"type": "agent_message", "text": json.dumps(said)}
    usage = {"input_tokens": 1_000, "cached_input_tokens": 640, "output_tokens": 5}
    warning = {"type": "item.completed", "item": {"type": "error", "message": "one setting is ignored"}}
    events = [warning, {"type": "item.completed", "item": item}, {"type": "turn.completed", "usage": usage}]
    _, response = ask(codex(folder, *events), request())
    (call,) = response.content
    assert isinstance(call, ToolUseBlock) and call.input == {"file_path": "a"}
    assert (response.model, response.usage.input_tokens) == ("gpt-5.5", 360)
    assert response.usage.cache_read_input_tokens == 640
    options = (folder / "options").read_text().splitlines()
    assert options[:3] == ["-c", "a = 1", "exec"] and "features.hooks=false" in options and "--ephemeral" in options
    for message, kind in (
        ("unexpected status 401 Unauthorized: no", AuthenticationFailed),
        ("exceeded retry limit, last status: 429 Too Many Requests", Overloaded),
        ("You've hit your usage limit. Try again at 3:05 PM.", Overloaded),
        ("Rate limit reached for gpt-5.5. Please try again in 2s.", Overloaded),
        ('{"error": {"message": "prompt is too long: 300000 tokens > 200000 maximum"}}', PromptTooLong),
        ("Connection failed: error sending request", Unreachable),
    ):
        with pytest.raises(kind) as caught:
            ask(codex(folder, {"type": "turn.failed", "error": {"message": message}}, code=1), request())
        assert (caught.value.retry_after is not None) == ("usage limit" in message), (
            "nobody waits hours for a rate limit"
        )


def test_any_command_answers(folder: Path) -> None:
    """The contract: the prompt on standard input, the answer on standard output. The tokens are an estimate."""
    path = program(folder, f'cat >{folder}/stdin\necho "$1: Ja, größer"')
    _, response = ask(opened(f"command:{path} 'two words'"), request())
    assert response.content[0].wire()["text"] == "two words: Ja, größer"
    sent = (folder / "stdin").read_text()
    assert sent.startswith("You are terse.") and '{"role":"user"' in sent and '`"key": "' in sent
    assert response.model == f"command:{path} 'two words' (estimated)"
    assert abs(response.usage.input_tokens - len(sent.encode()) / 4) < 2 and response.usage.output_tokens > 0


BAD = [
    ("echo 'the key is wrong' >&2; exit 3", ModelError, "exit code 3: the key is wrong"),
    ("exec 0<&-; exit 1", ModelError, "it printed nothing"),
    ("kill -9 $$", ModelError, "exit code -9"),
    (f"sleep {FOREVER_S} & sleep {FOREVER_S}", Unreachable, r"within 0.3 s \(model.timeout_s\)"),
    ("head -c 100000000 /dev/zero", ModelError, "printed more than 16 MB"),
]


@pytest.mark.parametrize(("text", "kind", "words"), BAD, ids=["exit", "closed", "killed", "time", "output"])
def test_programs_that_fail(folder: Path, text: str, kind: type[ModelError], words: str) -> None:
    limit = 0.3 if kind is Unreachable else LIMIT_S
    large = request(person("x" * 300_000))
    with pytest.raises(kind, match=words):
        ask(opened(f"command:{program(folder, text)}", timeout_s=limit), large)
    assert left(folder) == []


def test_output_without_a_result(folder: Path) -> None:
    old = "echo '{bad'; echo \"unknown option '--x'\" >&2; exit 1"
    for text, words in (("echo hello", "no result: hello"), (old, "update")):
        with pytest.raises(ModelError, match=words):
            ask(opened("claude-code", claude_code_program=program(folder, text)), request())


def left(folder: Path) -> list[str]:
    """The processes that programs in this folder have left behind."""
    marked = f"TMPDIR={folder}/tmp".encode()
    found = list[str]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(process.name) != os.getpid() and marked in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
    return found


def test_no_process_is_left_behind(folder: Path) -> None:
    """Neither by a program that leaves children, in the session or out of it, nor when the turn is cancelled."""
    leaving = program(folder, f"sleep {FOREVER_S} & setsid sleep {FOREVER_S} & echo done", "leaving")
    _, response = ask(opened(f"command:{leaving}"), request())
    assert response.content[0].wire()["text"] == "done" and left(folder) == []

    async def cancelled() -> None:
        slow = f"sleep {FOREVER_S} & touch {folder}/began; sleep {FOREVER_S}"
        model = opened(f"command:{program(folder, slow, 'slow')}")
        task = asyncio.create_task(collect(model.stream(request())))
        await until((folder / "began").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert left(folder) == [] and list((folder / "tmp").iterdir()) == []


def test_programs_take_turns(folder: Path) -> None:
    path = program(folder, f"echo + >>{folder}/log; sleep 0.1; echo - >>{folder}/log; echo ok")

    async def many() -> None:
        models = [opened(f"command:{path}", programs_at_once=2) for _ in range(5)]
        await asyncio.gather(*(collect(model.stream(request())) for model in models))

    asyncio.run(many())
    running = [0]
    for line in (folder / "log").read_text().split():
        running.append(running[-1] + (1 if line == "+" else -1))
    assert max(running) == 2 and running[-1] == 0


NAMES = [
    ("claude-code:", ("claude-code", "")),
    ("claude-code", ("claude-code", "")),
    ("codex:gpt-5.5", ("codex", "gpt-5.5")),
    ("command:llm -m x", ("command", "llm -m x")),
]


@pytest.mark.parametrize(("name", "parts"), NAMES)
def test_names(name: str, parts: tuple[str, str]) -> None:
    assert split_name(name, Catalogue.load()) == parts


def test_what_is_known_about_them() -> None:
    catalogue = Catalogue.load()
    haiku, default = facts_of("claude-code:haiku", catalogue), facts_of("claude-code:", catalogue)
    assert haiku.known and "haiku" in haiku.name and not default.known
    assert small_model_name("claude-code:opus", facts_of("claude-code:opus", catalogue), catalogue) == (
        f"claude-code:{default.cheapest}"
    )
    own = facts_of("command:llm -m x", catalogue)
    assert not own.known and small_model_name("command:llm -m x", own, catalogue) == "command:llm -m x"


REFUSED: list[tuple[str, dict[str, Any], type[ReverieError], str]] = [
    ("claude-code:", {"claude_code_program": "no-such-claude"}, UserError, "no-such-claude was not found. Install"),
    ("codex:", {"codex_program": "/no/codex"}, UserError, "/no/codex was not found. Install Codex"),
    ("command:", {}, UnknownModel, "command:<"),
    ("command:'x", {}, UserError, "close its quotes"),
    ("claude-code:", {"claude_code_program": "sh", "inside": True}, UserError, "REVERIE_INSIDE is set"),
    ("command:sh", {"inside": True}, UserError, "inside a program of a model"),
]


@pytest.mark.parametrize(("name", "access", "kind", "words"), REFUSED)
def test_what_does_not_open_is_one_sentence(
    name: str, access: dict[str, Any], kind: type[ReverieError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        opened(name, **access)


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CLAUDECODE", "1")
    yield
