"""The hook's client: it prints the answer of the service, and whatever goes wrong, it ends with 0 and says nothing."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from reverie.connect.plugin_files import hook_script
from reverie.daemon.client import daemon_status
from tests.daemon.services import hook_command, log_of, run_hook
from tests.waiting import LIMIT_S, wait_until

SAYS = {"say": 'Zwölf "Lampen"\nund eine \\ dazu'}


def test_it_prints_the_answer(served: Path) -> None:
    printed = json.loads(run_hook("UserPromptSubmit", served, json.dumps(SAYS, indent=2).encode()))
    assert printed == {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": SAYS["say"]}}
    assert run_hook("PreCompact", served, SAYS) == SAYS["say"]
    assert run_hook("UserPromptSubmit", served, {"prompt": "nothing to say"}) == ""


def test_input_that_is_not_one_object_changes_nothing(served: Path) -> None:
    for given in (b"", b"\xff\xfe", b"nonsense", b"[1]", b'{"say": "\xff"}', b'{"say": "x"', b"\x00" * 70_000):
        assert run_hook("Stop", served, given) == ""
    run_hook("Stop", served, b'{}, "do": "stop", "x": {}')
    found = daemon_status(served)
    assert found is not None and found["answers"]


def test_a_failed_and_a_late_handler_give_no_answer(served: Path) -> None:
    for _ in range(3):
        assert run_hook("UserPromptSubmit", served, {"raise": "a bug"}) == ""
    assert run_hook("SessionEnd", served, {"sleep": 1_000, "say": "late"}) == ""

    def faults() -> list[str]:
        return [fault["error"] for fault in log_of(served, "hook_fault")]

    wait_until(lambda: "TimeoutError: not done after 1 s" in faults())
    assert faults().count("ValueError: a bug") == 1
    assert run_hook("UserPromptSubmit", served, {"say": "on"}) != ""


def test_a_large_payload_is_read_in_time(served: Path) -> None:
    assert "ten" in run_hook("PostToolUse", served, {"say": "ten", "stdout": "x" * 10_000_000})
    assert run_hook("PostToolUse", served, {"say": "fifty", "stdout": "x" * 50_000_000}) == ""
    endless = subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE)
    try:
        command = hook_command("Stop", served, patient=False)
        done = subprocess.run(command, stdin=endless.stdout, capture_output=True, timeout=LIMIT_S)
    finally:
        endless.kill()
        endless.communicate()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "on" in run_hook("PostToolUse", served, {"say": "on"})


def test_closed_streams_and_small_limits(served: Path) -> None:
    def without(*streams: int) -> Callable[[], None]:
        return lambda: [os.close(stream) for stream in streams] and None

    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))

    for prepare in (without(0), without(1), without(0, 1, 2), without(1, 2), few_files):
        done = subprocess.run(
            hook_command("UserPromptSubmit", served), input=b'{"say": "x"}', preexec_fn=prepare, capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")
    reading, writing = os.pipe()
    os.close(reading)  # nobody reads what it prints
    hook = subprocess.Popen(
        hook_command("UserPromptSubmit", served), stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert hook.communicate(b'{"say": "x"}') == (None, b"")
    assert hook.returncode == 0
    found = daemon_status(served)
    assert found is not None and found["answers"]


@contextmanager
def listener(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """A foreign service that does what `answer` says with each connection."""
    path.parent.mkdir(parents=True, exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def serve() -> None:
        with suppress(OSError):
            while True:
                answer(server.accept()[0])

    threading.Thread(target=serve, daemon=True).start()
    yield
    server.close()


def test_a_service_that_misbehaves(home: Path, tmp_path: Path) -> None:
    kept: list[socket.socket] = []

    def half(connection: socket.socket) -> None:
        connection.recv(1_000_000)
        connection.sendall(b'{"ok": true, "hookSpecificOutput": {"hookEv')
        connection.close()

    def junk(connection: socket.socket) -> None:
        connection.recv(1_000_000)
        connection.sendall(b"\xff\n")
        connection.close()

    kinds: dict[str, Callable[[socket.socket], None]] = {
        "never answers": kept.append,
        "half a line": half,
        "junk": junk,
        "closes": socket.socket.close,
    }
    with ExitStack() as stack:
        for name, answer in kinds.items():
            stack.enter_context(listener(tmp_path / f"{name}.sock", answer))
        hooks = [
            subprocess.Popen(
                hook_command("Stop", home, tmp_path / f"{name}.sock", patient=name != "never answers"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for name in kinds
        ]
        for hook in hooks:
            assert hook.communicate(b'{"say": "x"}' + b" " * 300_000, timeout=LIMIT_S) == (b"", b"")
            assert hook.returncode == 0
    assert not (home / "run").exists()  # somebody listens: nothing was started


def test_what_is_not_a_socket_of_this_user_is_not_used(home: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no socket")
    assert run_hook("Stop", home, SAYS, plain) == ""
    assert not (home / "run").exists()


_OTHER_USER = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
if sys.argv[2] == "file":
    os.chown(sys.argv[1], 65534, 65534)
else:
    os.seteuid(65534)  # the file is of the one user, the process of the other
server.listen()
print("ready", flush=True)
connection = server.accept()[0]
print(connection.recv(100), flush=True)
connection.sendall(b'{"ok": true, "hookSpecificOutput": {}}\\n')
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.parametrize("whose", ["file", "process"])
def test_a_socket_of_another_user_gets_nothing(home: Path, tmp_path: Path, whose: str) -> None:
    path = tmp_path / "s.sock"
    other = subprocess.Popen([sys.executable, "-c", _OTHER_USER, str(path), whose], stdout=subprocess.PIPE)
    assert other.stdout is not None and other.stdout.readline() == b"ready\n"
    assert run_hook("Stop", home, SAYS, path) == ""
    other.kill()
    assert other.communicate()[0].strip() in (b"", b"b''")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_root_starts_nothing_in_the_home_of_a_user(home: Path) -> None:
    os.chown(home, 65_534, 65_534)
    assert run_hook("SessionStart", home, {"session_id": "x"}) == ""
    assert list(home.iterdir()) == [], "nothing that the user cannot write"


def test_without_a_home_it_starts_nothing(tmp_path: Path) -> None:
    assert run_hook("SessionStart", tmp_path / "gone", SAYS) == ""
    (tmp_path / "file").write_text("")
    assert run_hook("SessionStart", tmp_path / "file", SAYS) == ""
    assert not (tmp_path / "gone").exists()


def test_inside_our_own_models_it_does_nothing(served: Path) -> None:
    done = subprocess.run(
        hook_command("UserPromptSubmit", served),
        input=b'{"say": "x"}',
        capture_output=True,
        env={**os.environ, "REVERIE_INSIDE": "1"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_interpreter_that_cannot_start_stops_no_prompt(home: Path, tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho cannot open file >&2\nexit 2\n")
    broken.chmod(0o700)
    script = hook_script("claude-code", home, tmp_path / "socket").decode().replace(sys.executable, str(broken))
    done = subprocess.run(["sh", "-c", script, "hook.sh", "UserPromptSubmit"], input=b"{}", capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_recent_attempt_is_not_repeated(home: Path) -> None:
    mark = home / "run" / "daemon.started"
    mark.parent.mkdir()
    mark.touch()
    os.utime(mark, (time.time() - 30, time.time() - 30))
    before = mark.stat().st_mtime
    assert run_hook("SessionStart", home, SAYS) == ""
    assert mark.stat().st_mtime == before
    assert {path.name for path in mark.parent.iterdir()} == {mark.name, "hooks.skipped"}
