"""The memory behind a proxy is that of the user who started it: nobody else reads it, and nobody else writes it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from reverie.cli.app import commands
from reverie.library.memory import Memory
from reverie.models.catalogue import Catalogue
from reverie.proxy.server import create_app, serve
from reverie.runtime.loopback import address, listen, user_of
from tests.proxy.proxied import TOOLS, Recorder, get, post, proxy, stats
from tests.proxy.users import needs_root, run_as, start_as

USER, OTHER = 54_321, 54_322
PORT = "The staging server listens on port 8417."
LEARNS: Mapping[str, Any] = {"layers": ("1", "2", "recall", "4"), "learns": True}


def opened(folder: Path) -> Memory:
    (folder / "work").mkdir(exist_ok=True)
    return Memory.open(cwd=folder / "work", home=folder / "home")


@contextmanager
def proxy_of(user: int, folder: Path, to: str) -> Generator[str]:
    """A proxy that recalls and learns, in a process of this user."""

    def work() -> None:
        upstreams = dict.fromkeys(("messages", "chat", "responses"), to)
        serve(create_app(folder / "home", upstreams, Catalogue.load(), memory=opened(folder), **LEARNS), listener)

    with listen(0) as listener:
        process = start_as(user, work)
        try:
            yield address(listener)
        finally:
            os.kill(process, signal.SIGTERM)
            os.waitpid(process, 0)


def speak(url: str, recorder: Recorder, tool: str, user: int | None = None, **headers: str) -> Any:
    """Asks for a test and corrects the answer: something to recall, and something to learn. Returns the first request
    as the upstream received it."""
    asked = f"Please write a test for the parser of {tool}. On which port does the staging server listen?"
    messages: list[dict[str, Any]] = [{"role": "user", "content": asked}]
    first = len(recorder.bodies)
    for said in ("I wrote one with unittest, because it is there on all machines.", f"Understood: {tool} from now on."):
        answer = {"id": "m", "model": "m", "content": [{"type": "text", "text": said}], "stop_reason": "end_turn"}
        recorder.answer = json.dumps({**answer, "usage": {"input_tokens": 5}}).encode()
        body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "tools": TOOLS, "messages": messages}
        if user is None:
            assert post(url, "/v1/messages", body, **headers)[0] == 200
        else:
            run_as(user, lambda body=body: post(url, "/v1/messages", body, **headers))
        messages.append({"role": "assistant", "content": said})
        messages.append({"role": "user", "content": f"No, always use {tool} in this project, never unittest."})
    assert len(recorder.bodies) == first + 2
    return json.loads(recorder.bodies[first])


@needs_root
def test_only_the_user_who_started_it_is_recalled_for_and_learnt_from(tmp_path: Path) -> None:
    asyncio.run(opened(tmp_path).remember(PORT, origin="typed"))
    recorder = Recorder()
    with recorder.running() as to, proxy_of(USER, tmp_path, to) as url:
        own = url.removeprefix("http://")
        strangers: dict[str, tuple[int | None, dict[str, str]]] = {
            "hypothesis": (OTHER, {}),
            "nose": (None, {}),  # root is not the user either
            "doctest": (USER, {"x-forwarded-for": "127.0.0.1"}),
            "robot": (USER, {"forwarded": "for=127.0.0.1"}),
            "behave": (USER, {"origin": f"http://{own}"}),
            "lettuce": (USER, {"sec-fetch-site": "same-origin"}),
        }
        for number, (tool, (user, headers)) in enumerate(strangers.items()):
            sent = speak(url, recorder, tool, user, **headers, **{"x-api-key": f"key {number % 2}"})
            assert "8417" not in json.dumps(sent), tool
        assert "8417" in json.dumps(speak(url, recorder, "pytest", USER, **{"x-api-key": "key 0"}))
    known = " ".join(memory.text for memory in asyncio.run(opened(tmp_path).list()))
    assert "pytest" in known and not [tool for tool in strangers if tool in known]


def test_no_page_of_a_browser_can_use_it(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        port = url.rpartition(":")[2]
        pages = [
            *({"origin": origin} for origin in ("http://localhost:3000", "http://127.0.0.1:1", "http://[::1]:80")),
            *({"origin": origin} for origin in (f"http://localhost:{port}", "null", "https://evil.example", "")),
            *({"sec-fetch-site": site} for site in ("same-site", "cross-site", "something-new")),
        ]
        for headers in pages:
            assert post(url, "/v1/messages", b"{}", **headers)[0] == 403, headers
            assert get(url, "/reverie/stats", **headers)[0] == 403, headers
        assert get(url, "/reverie/stats", **{"sec-fetch-site": "none"})[0] == 200, "typed by the user"
    assert recorder.bodies == []


@pytest.fixture
def silent_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that does not say whose a connection is, as those without the kernel's answer of Linux."""
    monkeypatch.delattr(socket, "AF_NETLINK")


@pytest.mark.usefixtures("silent_system")
def test_where_the_system_does_not_say_whose_a_connection_is_the_token_does(
    tmp_path: Path,
) -> None:
    memory, token = opened(tmp_path), "a-token-that-nobody-guesses-0123456789"
    recorder = Recorder()
    with recorder.running() as to:
        with proxy(tmp_path / "home", to, memory=memory, **LEARNS) as url:
            speak(url, recorder, "nose")
            assert stats(url)["sessions"] == [] and "upstreams" not in stats(url)
        with proxy(tmp_path / "home", to, memory=memory, token=token, **LEARNS) as url:
            speak(url, recorder, "hypothesis", **{"x-reverie-token": token, "origin": "http://localhost:3000"})
            speak(url, recorder, "pytest", **{"x-reverie-token": token})
    known = " ".join(memory.text for memory in asyncio.run(opened(tmp_path).list()))
    assert "pytest" in known and "nose" not in known and "hypothesis" not in known


def test_where_it_does_a_connection_of_nobody_is_not_the_users(tmp_path: Path) -> None:
    """Everybody who shares the proxy has the token. The other end of a connection may be closed already."""
    token = "a-token-that-nobody-guesses-0123456789"
    upstreams = dict.fromkeys(("messages", "chat", "responses"), "http://127.0.0.1:9")
    app = create_app(tmp_path, upstreams, Catalogue.load(), token=token)
    with TestClient(app, base_url="http://127.0.0.1:1", client=("127.0.0.1", 1)) as nobody:
        assert "upstreams" not in nobody.get("/reverie/stats", headers={"x-reverie-token": token}).json()


@pytest.mark.usefixtures("silent_system")
def test_the_command_asks_for_a_token_there_or_gives_its_program_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    program = [sys.executable, "-c", "import os; open('url', 'w').write(os.environ['OPENAI_BASE_URL'])"]

    def address_with(*arguments: str) -> str:
        CliRunner().invoke(commands, ["proxy", *arguments, "--", *program], standalone_mode=False)
        return (tmp_path / "url").read_text()

    for arguments in (["--learn"], ["--layers", "recall"]):
        done = CliRunner().invoke(commands, ["proxy", *arguments], standalone_mode=False)
        assert "--token-file" in str(done.exception)
        assert "/token/" in address_with(*arguments)
    assert "/token/" not in address_with(), "without memory, nobody has to prove anything"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::"])
def test_the_system_says_whose_a_connection_is(host: str) -> None:
    with listen(0, host) as listener:
        near = ("::1" if host == "::1" else "127.0.0.1", listener.getsockname()[1])
        with socket.create_connection(near) as client:
            accepted, place = listener.accept()
            assert user_of(place[:2], accepted.getsockname()[:2]) == os.getuid()
            accepted.close()
            assert user_of(client.getsockname()[:2], ("127.0.0.1", 1)) is None
