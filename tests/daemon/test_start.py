"""A hook starts the service: detached, once, and never twice in a minute."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.daemon.client import daemon_status, stop_daemon
from reverie.daemon.hook import SKIPPED
from reverie.daemon.skipped import find_skipped
from reverie.paths import daemon_lock
from reverie.runtime.background_log import BackgroundLog
from tests.daemon.services import ensure_daemon, hook_command, lives, log_of, run_hook
from tests.waiting import wait_until


@pytest.fixture
def empty(home: Path) -> Iterator[Path]:
    yield home
    stop_daemon(home)


def payload(event: str, cwd: Path) -> bytes:
    found = {"session_id": "1", "cwd": str(cwd), "hook_event_name": event, "source": "startup", "prompt": "Hello"}
    return json.dumps(found).encode()


def test_the_first_hooks_start_one_service(empty: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()  # an open file of the agent
    hooks = [
        subprocess.Popen(
            hook_command("SessionStart", empty),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(writing,),
        )
        for _ in range(3)
    ]
    os.close(writing)
    for hook in hooks:
        assert hook.communicate(payload("SessionStart", tmp_path))[1] == b""
        assert hook.returncode == 0
    assert os.read(reading, 1) == b""  # the service does not hold it
    os.close(reading)
    found = daemon_status(empty)
    assert found is not None and found["answers"] and found["events"] == 3
    pid = found["pid"]
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    assert [entry["event"] for entry in log_of(empty, "hook_service")] == ["started"]

    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not lives(pid))
    mark = daemon_lock(empty).with_name("daemon.started")
    os.utime(mark, (time.time() - 20, time.time() - 20))
    assert run_hook("UserPromptSubmit", empty, payload("UserPromptSubmit", tmp_path)) == ""
    assert daemon_status(empty) is None  # not again in the same minute
    os.utime(mark, (time.time() - 61, time.time() - 61))
    run_hook("SessionStart", empty, payload("SessionStart", tmp_path))
    assert ensure_daemon(empty)["events"] == 1
    assert ensure_daemon(empty)["pid"] != pid


def test_a_service_that_cannot_start_does_not_keep_the_agent_waiting(empty: Path, tmp_path: Path) -> None:
    (empty / "run").mkdir()
    daemon_lock(empty).mkdir()
    assert run_hook("SessionStart", empty, payload("SessionStart", tmp_path)) == ""
    assert "daemon.lock" in log_of(empty, "hook_service")[-1]["error"]
    daemon_lock(empty).rmdir()


def test_no_service_starts_inside_of_a_model(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_INSIDE", "1")
    assert not ensure_daemon(empty), "it ended before it answered"
    assert "inside of a program" in log_of(empty, "hook_service")[-1]["error"]


def test_a_stop_lets_the_next_hook_start_the_service_at_once(empty: Path, tmp_path: Path) -> None:
    run_hook("SessionStart", empty, payload("SessionStart", tmp_path))
    assert stop_daemon(empty)
    run_hook("SessionStart", empty, payload("SessionStart", tmp_path))
    found = daemon_status(empty)
    assert found is not None and found["events"] == 1 and found["skipped"]["events"] == 0


def test_the_next_service_works_on_sessions_whose_hooks_it_missed(empty: Path, tmp_path: Path) -> None:
    mark = daemon_lock(empty).with_name("daemon.started")
    mark.parent.mkdir(mode=0o700)
    mark.touch()
    os.utime(mark, (time.time() - 20, time.time() - 20))  # a service that did not start
    log = BackgroundLog(empty / "logs" / "background.jsonl")
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        run_hook(event, empty, payload(event, tmp_path))
    assert find_skipped(empty, log)[::2] == (4, 4)
    assert b"Hello" not in b"".join(
        line for line in (empty / SKIPPED).read_bytes().splitlines() if b'"UserPromptSubmit"' in line
    ), "only what the next service needs is kept"
    stop_daemon(empty)
    assert ensure_daemon(empty)["skipped"]["events"] == 4
    wait_until(lambda: log_of(empty, "hook_job"))
    assert find_skipped(empty, log).waiting == 0 and not list((empty / "run").glob("hooks.skipped*"))
    assert [entry["sessions"] for entry in log_of(empty, "hook_skipped")] == [1]
