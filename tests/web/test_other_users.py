"""A web view that runs as one user, and another user of the machine who has its cookie and its token."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.topic_file import TopicFile
from reverie.runtime.loopback import is_other_user, listen
from reverie.web.site import Site
from tests.other_users import OWNER, STRANGER, become, folder_of, forked, give, needs_root, run_as
from tests.web.served import Browser, served

FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip", "x-client-ip", "x-forwarded-host", "x-forwarded-proto")
pytestmark = needs_root


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    folder = folder_of(OWNER)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("REVERIE_HOME", str(folder / ".reverie"))
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _serve(home: Path, send: Callable[[Any], None]) -> None:
    """The web view of the owner, in a process of its own, with one memory."""
    site = Site.open(home)
    memory = site.memory_of(site.here)
    memory.directory.create("kept.md", TopicFile.parse("Deploys are on Tuesday.\n"), WriteInfo(Writer.USER, "A test."))
    with served(home) as browser:
        own = Browser(browser.port, browser.token).enter()
        assert own.get("/memory").status == 200  # what it loads late is loaded now
        give(home, OWNER)
        become(OWNER)
        send((browser.port, browser.token, own.cookies, site.here.name, memory.directory.root / "kept.md"))
        signal.pause()


def test_the_owner_gets_in_and_nobody_else_whatever_a_request_says(home: Path) -> None:
    with forked(lambda send: _serve(home, send)) as (_pid, (port, token, cookies, project, file)):

        def visit() -> list[int]:
            browser, bearer = Browser(port, token, dict(cookies)), {"authorization": f"Bearer {token}"}
            answers = [browser.get("/memory"), browser.get("/api/overview", **bearer)]
            for name in FORWARDED:
                for value in ("10.9.8.7", "127.0.0.1", "for=10.9.8.7", "unix:", ""):
                    answers.append(browser.get("/memory", **{name: value}))
            form = {"file": "kept.md"}
            answers.append(
                browser.post(f"/api/memory/{project}/forget", form, **bearer, **{"x-forwarded-for": "10.9.8.7"})
            )
            return [answer.status for answer in answers]

        assert set(run_as(STRANGER, visit)) == {403}
        assert file.exists()
        assert set(run_as(OWNER, visit)) == {200}
        assert not file.exists()


def test_a_stranger_who_hangs_up_before_the_answer_changes_nothing(home: Path) -> None:
    """The kernel knows the user of a socket only while a process has it."""
    with forked(lambda send: _serve(home, send)) as (pid, (port, token, _cookies, project, file)):

        def send_and_go() -> None:
            body = b"file=kept.md"
            head = (
                f"POST /api/memory/{project}/forget HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n"
                f"authorization: Bearer {token}\r\ncontent-type: application/x-www-form-urlencoded\r\n"
                f"content-length: {len(body)}\r\n\r\n"
            )
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(head.encode() + body)

        os.kill(pid, signal.SIGSTOP)
        run_as(STRANGER, send_and_go)
        os.kill(pid, signal.SIGCONT)
        answered = [run_as(OWNER, lambda: Browser(port, token, {}).get("/memory").status) for _ in range(20)]
        assert set(answered) == {401}  # the server has read what came before
        time.sleep(0.2)
        assert file.exists()


@pytest.mark.parametrize("has_netlink", [True, False], ids=["kernel", "lsof"])
def test_whose_a_connection_is(monkeypatch: pytest.MonkeyPatch, has_netlink: bool) -> None:
    if not has_netlink:
        if shutil.which("lsof") is None:
            pytest.skip("needs lsof")
        monkeypatch.delattr(socket, "AF_NETLINK")

    def ask(connects: int) -> bool:
        with listen(0) as server:
            place = server.getsockname()

            def connect(send: Callable[[Any], None]) -> None:
                become(connects)
                with socket.create_connection(place) as connection:
                    send(True)
                    connection.recv(1)

            with forked(connect):
                theirs, address = server.accept()
                with theirs:
                    return run_as(OWNER, lambda: is_other_user(address, place))

    assert not ask(OWNER)
    assert ask(STRANGER)
    if has_netlink:
        assert not ask(0)


def test_a_peer_that_nobody_knows_is_refused() -> None:
    assert is_other_user(None, ("127.0.0.1", 80))
    assert is_other_user(("127.0.0.1", 9), None)
    assert is_other_user(("10.9.8.7", 0), ("127.0.0.1", 80))
    assert is_other_user(("127.0.0.1", 1), ("127.0.0.1", 2))
    assert is_other_user(("::1", 1), ("::1", 2))


def test_root_is_not_everybody() -> None:
    """A view that runs as root belongs to root."""
    with listen(0) as server:
        place = server.getsockname()

        def connect(send: Callable[[Any], None]) -> None:
            become(STRANGER)
            with socket.create_connection(place) as connection:
                send(True)
                connection.recv(1)

        with forked(connect):
            theirs, address = server.accept()
            with theirs:
                assert is_other_user(address, place)
