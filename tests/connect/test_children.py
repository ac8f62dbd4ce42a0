"""`reverie proxy -- PROGRAM`: the program gets the address of the proxy, and its requests go where they would have gone
without it. Programs of this test read their settings as the real ones do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reverie.connect.children import Child, child_of
from reverie.errors import UserError
from tests.proxy.proxied import Recorder

URL = "http://127.0.0.1:8790"
ANTHROPIC = f"{URL}/reverie/anthropic"
VENDORS = {
    "messages": "https://api.anthropic.com",
    "chat": "https://api.openai.com",
    "responses": "https://api.openai.com",
}
PROGRAM = """
import json, os, sys, urllib.request
for path, base in json.loads(sys.argv[-1]):
    address = os.environ[base] + path
    key = {"x-api-key": "key-of-" + base, "content-type": "application/json"}
    body = {"model": "nobody-knows-it", "messages": [{"role": "user", "content": "hi"}]}
    print(urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), key)).status)
"""


def run(home: Path, program: Sequence[str], *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`reverie proxy -- PROGRAM` in an environment that knows only these addresses."""
    names = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "ANTHROPIC_API_BASE", "OPENAI_API_BASE")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    environment = {**kept, "HOME": str(home), "REVERIE_HOME": str(home), **variables}
    command = [sys.executable, "-m", "reverie", "proxy", *options, "--", *program]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=120, check=False)


def program(home: Path, asks: Sequence[tuple[str, str]]) -> list[str]:
    file = home / "client.py"
    file.write_text(PROGRAM)
    return [sys.executable, str(file), json.dumps(asks)]


def test_requests_go_to_the_addresses_that_are_set(tmp_path: Path) -> None:
    anthropic, openai = Recorder(), Recorder()
    with anthropic.running() as gateway, openai.running() as other:
        asks = [
            ("/v1/messages", "ANTHROPIC_BASE_URL"),
            ("/chat/completions", "OPENAI_BASE_URL"),
            ("/responses", "OPENAI_API_BASE"),
        ]
        variables = {
            "ANTHROPIC_BASE_URL": f"{gateway}/team/",
            "OPENAI_BASE_URL": f"{other}/api/v1",
            "OPENAI_API_BASE": f"{other}/api/v1/",
        }
        done = run(tmp_path, program(tmp_path, asks), **variables)
    assert done.stdout == "200\n200\n200\n", done.stderr
    assert anthropic.paths == ["/team/v1/messages"] and openai.paths == [
        "/api/v1/chat/completions",
        "/api/v1/responses",
    ]
    assert [head["x-api-key"] for head in anthropic.headers] == ["key-of-ANTHROPIC_BASE_URL"]
    first = done.stderr.partition("\n")[0]
    assert f"{gateway}/team" in first and f"{other}/api" in first, "the start says where requests go"


def test_an_address_without_a_version_stays_without_one(tmp_path: Path) -> None:
    """`https://x.openai.azure.com/openai`, `https://…/api/paas/v4`: the program adds only what it always adds."""
    recorder = Recorder()
    with recorder.running() as gateway:
        done = run(
            tmp_path,
            program(tmp_path, [("/chat/completions", "OPENAI_BASE_URL"), ("/v1/messages", "ANTHROPIC_BASE_URL")]),
            OPENAI_BASE_URL=f"{gateway}/api/paas/v4",
            ANTHROPIC_BASE_URL=f"{gateway}/anthropic/v1",
        )
    assert done.stdout == "200\n200\n", done.stderr
    assert recorder.paths == ["/api/paas/v4/chat/completions", "/anthropic/v1/v1/messages"]


def test_whatever_a_client_of_anthropic_asks_for_goes_to_its_server(tmp_path: Path) -> None:
    """Requests without the header of the API have the key too."""
    anthropic, openai = Recorder(), Recorder()
    paths = ["/api/hello", "/v1/models", "/v1/v1/messages", "/v1/chat/completions", "/v1/responses"]
    with anthropic.running() as gateway, openai.running() as other:
        asks = [*((path, "ANTHROPIC_BASE_URL") for path in paths), ("/models", "OPENAI_BASE_URL")]
        variables = {"ANTHROPIC_BASE_URL": gateway, "OPENAI_BASE_URL": f"{other}/v1"}
        done = run(tmp_path, program(tmp_path, asks), **variables)
    assert done.stdout == "200\n" * len(asks), done.stderr
    assert (anthropic.paths, openai.paths) == (paths, ["/v1/models"])


def test_a_password_in_an_address_is_used_and_not_shown(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as gateway:
        with_password = gateway.replace("http://", "http://user:hunter2@")
        done = run(
            tmp_path, program(tmp_path, [("/v1/messages", "ANTHROPIC_BASE_URL")]), ANTHROPIC_BASE_URL=with_password
        )
    assert done.stdout == "200\n" and recorder.headers[0]["authorization"].startswith("Basic "), done.stderr
    assert gateway in done.stderr and "hunter2" not in done.stderr


def test_upstream_wins_over_what_is_set(tmp_path: Path) -> None:
    meant, other = Recorder(), Recorder()
    with meant.running() as to, other.running() as gateway:
        asks = [("/v1/messages", "ANTHROPIC_BASE_URL"), ("/chat/completions", "OPENAI_BASE_URL")]
        done = run(
            tmp_path, program(tmp_path, asks), "--upstream", to, ANTHROPIC_BASE_URL=gateway, OPENAI_BASE_URL=gateway
        )
    assert done.stdout == "200\n200\n", done.stderr
    assert meant.paths == ["/v1/messages", "/v1/chat/completions"] and other.paths == []


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"OPENAI_BASE_URL": "http://a:1/v1", "OPENAI_API_BASE": "http://b:2/v1"}, "OPENAI_API_BASE"),
        ({"ANTHROPIC_BASE_URL": "https://:8080"}, "ANTHROPIC_BASE_URL"),
        ({"ANTHROPIC_BASE_URL": "https://gateway.example/x?key=1"}, "ANTHROPIC_BASE_URL"),
        ({"OPENAI_BASE_URL": "https://:secret@/v1"}, "OPENAI_BASE_URL"),
    ],
)
def test_an_address_that_cannot_be_kept_is_one_sentence(tmp_path: Path, variables: dict[str, str], says: str) -> None:
    done = run(tmp_path, program(tmp_path, []), **variables)
    assert done.returncode != 0 and done.stdout == ""
    assert says in done.stderr and "--upstream" in done.stderr and "secret" not in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_the_address_of_the_proxy_itself_is_none(tmp_path: Path) -> None:
    for base in (URL, f"{URL}/v1", "http://localhost:8790/v1/", "http://[::1]:8790"):
        child = child_of(["claude"], URL, {"ANTHROPIC_BASE_URL": base, "OPENAI_BASE_URL": base})
        assert child.upstreams == VENDORS
        assert child.environment == {"ANTHROPIC_BASE_URL": ANTHROPIC, "OPENAI_BASE_URL": f"{URL}/v1"}
    outer = child_of(["claude"], URL, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9999/token/abc"})
    assert outer.upstreams["messages"] == "http://127.0.0.1:9999/token/abc", "one proxy behind another"


def codex(home: Path, config: str, *arguments: str, **variables: str) -> tuple[Child, dict[str, Any]]:
    """What Codex is started with, and which of its settings are changed for it."""
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text(config)
    child = child_of(["codex", *arguments], URL, {"HOME": str(home), **variables})
    given = [value for flag, value in zip(child.arguments[1:], child.arguments[2:], strict=False) if flag == "-c"]
    return child, {key: value for key, _, value in (one.partition("=") for one in given)}


AZURE = """
model_provider = "azure"
[model_providers.azure]
name = "Azure"
base_url = "https://team.openai.azure.com/openai"
env_key = "AZURE_OPENAI_API_KEY"
query_params = { api-version = "2025-04-01-preview" }
[model_providers.proxy]
base_url = "https://llm.example/v1"
[profiles.work]
model_provider = "proxy"
"""


def test_codex_keeps_its_own_provider_with_our_address(tmp_path: Path) -> None:
    child, given = codex(tmp_path, AZURE, "exec", "hi")
    assert child.upstreams["responses"] == child.upstreams["chat"] == "https://team.openai.azure.com/openai"
    assert given == {"model_providers.azure.base_url": f'"{URL}"'}, "its key and its parameters stay its own"
    for chosen in (("-c", 'model_provider="proxy"'), ("--config=model_provider=proxy",), ("-p", "work")):
        child, given = codex(tmp_path, AZURE, *chosen)
        assert child.upstreams["responses"] == "https://llm.example"
        assert given["model_providers.proxy.base_url"] == f'"{URL}/v1"'
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config.toml").write_text(AZURE.replace("team.", "other."))
    child, _ = codex(tmp_path, "", CODEX_HOME=str(elsewhere))
    assert child.upstreams["responses"] == "https://other.openai.azure.com/openai"
    (elsewhere / "quick.config.toml").write_text('model_provider = "proxy"')
    child, _ = codex(tmp_path, "", "--profile=quick", CODEX_HOME=str(elsewhere))
    assert child.upstreams["responses"] == "https://llm.example"


def test_codex_with_openai_goes_to_the_address_of_its_settings(tmp_path: Path) -> None:
    child, given = codex(tmp_path, "")
    assert child.upstreams == VENDORS and given["model_provider"] == '"reverie"'
    assert given["model_providers.reverie.base_url"] == f'"{URL}/v1"'
    child, given = codex(tmp_path, 'openai_base_url = "https://gateway.example/openai/v1"')
    assert child.upstreams["responses"] == "https://gateway.example/openai"
    assert given["model_providers.reverie.base_url"] == f'"{URL}/v1"'
    child, _ = codex(tmp_path, "", OPENAI_BASE_URL="https://old.example/v1")
    assert child.upstreams["responses"] == "https://old.example"


def test_a_provider_of_codex_without_an_address_is_left_alone(tmp_path: Path) -> None:
    child, given = codex(tmp_path, 'model_provider = "ollama"')
    assert given == {} and child.arguments == ("codex",)
    with pytest.raises(UserError, match=r"config\.toml.*--upstream"):
        codex(tmp_path, "model_provider = ")


def opencode(home: Path, files: Mapping[str, str], **variables: str) -> tuple[Child, dict[str, Any]]:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    work = home / "work" / "inner"
    work.mkdir(parents=True, exist_ok=True)
    child = child_of(["opencode"], URL, {"HOME": str(home), **variables}, cwd=work)
    config = json.loads(child.environment["OPENCODE_CONFIG_CONTENT"])
    return child, {name: one["options"]["baseURL"] for name, one in config["provider"].items()}


def test_opencode_goes_to_the_addresses_of_its_settings(tmp_path: Path) -> None:
    child, given = opencode(tmp_path, {})
    assert child.upstreams == VENDORS and given == {"anthropic": f"{ANTHROPIC}/v1", "openai": f"{URL}/v1"}

    def config(name: str, base: str) -> str:
        return json.dumps({"provider": {name: {"options": {"baseURL": base}}}}).replace("}}}}", ", }}}} // mine\n")

    home = {
        ".config/opencode/opencode.json": config("anthropic", "https://global.example/v1"),
        "work/opencode.jsonc": config("openai", "{env:GATEWAY}/openai/v2"),
    }
    child, given = opencode(tmp_path, home, GATEWAY="https://gateway.example")
    assert child.upstreams["messages"] == "https://global.example"
    assert child.upstreams["chat"] == child.upstreams["responses"] == "https://gateway.example/openai/v2"
    assert given == {"anthropic": f"{ANTHROPIC}/v1", "openai": URL}
    own = config("anthropic", "https://inline.example/v1")
    child, _ = opencode(tmp_path, {}, OPENCODE_CONFIG_CONTENT=own, GATEWAY="https://g.example")
    assert child.upstreams["messages"] == "https://inline.example"
    with pytest.raises(UserError, match="--upstream"):
        opencode(tmp_path, {"work/opencode.jsonc": config("openai", "{file:~/address}")}, GATEWAY="https://g.example")


def test_aider_gets_every_name_of_the_address(tmp_path: Path) -> None:
    child = child_of(["aider"], URL, {"OPENAI_API_BASE": "https://gateway.example/v1"})
    assert child.environment == {
        "ANTHROPIC_BASE_URL": ANTHROPIC,
        "ANTHROPIC_API_BASE": ANTHROPIC,
        "OPENAI_BASE_URL": f"{URL}/v1",
        "OPENAI_API_BASE": f"{URL}/v1",
    }
    assert child.upstreams["chat"] == "https://gateway.example"


def test_a_proxy_by_itself_goes_to_the_addresses_that_are_set(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as gateway:
        environment = {
            **os.environ,
            "HOME": str(tmp_path),
            "REVERIE_HOME": str(tmp_path),
            "OPENAI_BASE_URL": f"{gateway}/v1",
        }
        environment.pop("ANTHROPIC_BASE_URL", None)
        command = [sys.executable, "-m", "reverie", "proxy"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
            try:
                assert process.stdout is not None
                head = [process.stdout.readline() for _ in range(3)]
            finally:
                process.terminate()
    assert any("https://api.anthropic.com" in line and gateway in line for line in head), head
