"""The service: exactly one per home, gone when it is not needed, back after a kill, and its memory does not grow."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import reverie
from reverie.daemon.client import daemon_status, stop_daemon
from reverie.paths import daemon_lock, daemon_socket
from reverie.runtime.live_client import ask_live
from tests.counts import count
from tests.daemon.services import STAND_IN, lives, log_of, run_hook, start_service, wait_until_it_answers
from tests.waiting import FOREVER_S, LIMIT_S, wait_until


def test_of_many_that_start_at_once_one_serves(home: Path) -> None:
    services = [start_service(home) for _ in range(count(4, 16))]
    pid = wait_until_it_answers(home)["pid"]
    wait_until(lambda: sum(service.poll() is None for service in services) == 1)
    assert [service.pid for service in services if service.poll() is None] == [pid]
    assert {service.poll() for service in services} == {None, 7}
    assert stop_daemon(home)
    assert not stop_daemon(home)
    assert not daemon_socket(home).exists() and not daemon_lock(home).exists()
    assert [entry["event"] for entry in log_of(home, "hook_service")] == ["started", "ended"]


def test_it_comes_back_after_a_kill(home: Path) -> None:
    for moment in (None, 0.02, 0.1, 0.15, 0.2)[: count(3, 5)]:  # None: when it answers
        service = start_service(home)
        if moment is None:
            wait_until_it_answers(home)
        else:
            time.sleep(moment)
        service.kill()
        service.wait()
    service = start_service(home)
    assert wait_until_it_answers(home)["pid"] == service.pid
    assert run_hook("UserPromptSubmit", home, {"say": "back"}) != ""
    service.send_signal(signal.SIGTERM)
    assert service.wait(LIMIT_S) == 0
    assert daemon_status(home) is None


def test_a_service_that_is_killed_while_it_answers(home: Path) -> None:
    service = start_service(home)
    wait_until_it_answers(home)

    def kill() -> None:
        wait_until(lambda: (daemon_status(home) or {})["hooks"]["seen"])
        service.kill()

    killing = threading.Thread(target=kill)
    killing.start()
    assert run_hook("UserPromptSubmit", home, {"say": "x", "sleep": FOREVER_S}) == ""
    killing.join()
    service.wait()


def test_it_ends_when_nothing_happens(home: Path) -> None:
    service = start_service(home, idle_s=0.3)
    assert service.wait(LIMIT_S) == 0
    assert log_of(home, "hook_service")[-1]["reason"] == "idle"


def test_it_ends_when_its_socket_is_gone(home: Path) -> None:
    service = start_service(home)
    wait_until_it_answers(home)
    shutil.rmtree(home)
    assert service.wait(LIMIT_S) == 0


@pytest.mark.soak
def test_it_ends_when_another_version_is_installed(home: Path, tmp_path: Path) -> None:
    package = tmp_path / "lib" / "reverie"
    shutil.copytree(Path(reverie.__file__).parent, package)
    arguments = [str(home), str(daemon_socket(home)), "60", "reverie.daemon.work", "600"]
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    service = subprocess.Popen([sys.executable, str(STAND_IN), *arguments], env=environment)
    wait_until_it_answers(home)
    (package / "__init__.py").write_text((package / "__init__.py").read_text() + "\n")
    assert service.wait(LIMIT_S) == 0
    assert "version" in log_of(home, "hook_service")[-1]["reason"]


def test_one_that_hangs_can_be_stopped(home: Path) -> None:
    service = start_service(home)
    wait_until_it_answers(home)
    service.send_signal(signal.SIGSTOP)
    threading.Timer(0.5, service.send_signal, (signal.SIGCONT,)).start()
    assert stop_daemon(home)
    service.wait(LIMIT_S)


def test_clients_that_say_nothing_do_not_keep_others_out(served: Path) -> None:
    silent = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for one in silent:
        one.connect(str(daemon_socket(served)))
    assert run_hook("UserPromptSubmit", served, {"say": "x"}) != ""
    for one in silent:
        one.close()


@pytest.mark.soak
def test_its_memory_does_not_grow(served: Path) -> None:
    path, events = daemon_socket(served), count(1_500, 100_000)
    pid = (daemon_status(served) or {})["pid"]

    def send(number: int) -> None:
        for step in range(number):
            payload = {"raise": f"{step}"} if step % 7 == 0 else {"say": "x" * 2_000}
            ask_live(path, {"do": "hook", "agent": "codex", "event": f"E{step % 50}", "payload": payload})

    send(500)
    before = resident(pid)
    send(events)
    assert resident(pid) < before + 4_000_000
    assert lives(pid)


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
