"""One process at a time has a session, a dead one has none, and asking disturbs nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reverie.errors import SessionBusy, StorageError
from reverie.storage.lease import Lease
from tests.counts import count

# Obeys lines on stdin: "take", "release", "fork" (a child that outlives us), "exec" (the same, with another program).
WORKER = """
import os, subprocess, sys, time
from pathlib import Path
from reverie.errors import SessionBusy
from reverie.storage.lease import Lease
path, lease = Path(sys.argv[1]), None
def say(*words):
    print(*words, flush=True)
say("ready", os.getpid())
for line in sys.stdin:
    match line.split():
        case ["take"]:
            try:
                lease = Lease.take(path, info={"session": "abc", "socket": "/run/x.sock"})
                say("won", os.getpid())
            except SessionBusy as busy:
                say("busy", busy.pid)
        case ["release"]:
            if lease is not None:
                lease.release()
            lease = None
            say("released")
        case ["fork"]:
            child = os.fork()
            if child == 0:
                os.close(1)
                time.sleep(1_000)
                os._exit(0)
            say("child", child)
        case ["exec"]:
            child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, close_fds=False)
            say("child", child.pid)
"""


class Worker:
    """Another process that takes and releases on command."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = int(self.heard()[1])

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def heard(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def ask(self, word: str) -> list[str]:
        self.tell(word)
        return self.heard()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


def test_another_process_is_refused_and_told_the_pid(tmp_path: Path) -> None:
    path = tmp_path / "session.lock"
    other = Worker(path)
    try:
        assert other.ask("take") == ["won", str(other.pid)]
        with pytest.raises(SessionBusy, match=rf"Session abc is open in another process \(PID {other.pid}\)") as caught:
            Lease.take(path, info={})
        assert caught.value.pid == other.pid
        held = Lease.holder(path)
        assert held is not None and (held["pid"], held["socket"]) == (other.pid, "/run/x.sock")
        assert other.ask("release") == ["released"]
        assert Lease.holder(path) is None and not path.exists()
    finally:
        other.kill()


def test_twice_in_one_process_is_refused_and_leaving_frees(tmp_path: Path) -> None:
    path = tmp_path / "abc.lock"
    with Lease.take(path, info={}), pytest.raises(SessionBusy, match="already open in this process"):
        Lease.take(path, info={})
    with Lease.take(path, info={}) as again:
        assert (path.stat().st_mode & 0o777) == 0o600
        again.update({"socket": "later"})
        held = Lease.holder(path)
        assert held is not None and held["socket"] == "later" and abs(held["started"] - time.time()) < 60
        again.release()
        assert Lease.holder(path) is None
    again.release()
    with pytest.raises(ValueError, match="released"):
        again.update({})


@pytest.mark.soak
def test_kill_9_frees_the_lease_at_once(tmp_path: Path) -> None:
    path = tmp_path / "abc.lock"
    for _ in range(count(3, 100)):
        other = Worker(path)
        assert other.ask("take")[0] == "won"
        other.kill()
        assert path.exists(), "the dead process left its body behind"
        assert Lease.holder(path) is None
        with Lease.take(path, info={}):
            held = Lease.holder(path)
            assert held is not None and held["pid"] == os.getpid()


@pytest.mark.parametrize("way", ["fork", "exec"])
def test_children_do_not_keep_a_dead_parents_lease(tmp_path: Path, way: str) -> None:
    path = tmp_path / "abc.lock"
    other = Worker(path)
    assert other.ask("take")[0] == "won"
    child = int(other.ask(way)[1])
    try:
        time.sleep(0.1)
        assert Lease.holder(path) is not None, "the child took the parent's lease along"
        other.kill()
        os.kill(child, 0)
        assert Lease.holder(path) is None
        Lease.take(path, info={}).release()
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("body", [b"", b"{", b'{"pid": "x"}', b"\xff\xfe", b'{"pid": 1}', b"[1]", b"9" * 5000])
def test_a_body_without_a_lock_means_nothing(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "abc.lock"
    path.write_bytes(body)
    assert Lease.holder(path) is None
    with Lease.take(path, info={"a": 1}):
        held = Lease.holder(path)
        assert held is not None and (held["pid"], held["a"]) == (os.getpid(), 1)


def test_places_that_cannot_hold_a_lease_are_named(tmp_path: Path) -> None:
    assert Lease.holder(tmp_path / "gone" / "abc.lock") is None
    with pytest.raises(StorageError, match="not there"):
        Lease.take(tmp_path / "gone" / "abc.lock", info={})
    with pytest.raises(StorageError, match="folder"):
        Lease.take(tmp_path, info={})


@pytest.mark.soak
def test_of_two_who_race_exactly_one_wins_and_the_other_learns_who(tmp_path: Path) -> None:
    path = tmp_path / "abc.lock"
    workers = [Worker(path), Worker(path)]
    try:
        for _ in range(count(20, 500)):
            for worker in workers:
                worker.tell("take")
            for _ in range(5):
                Lease.holder(path)  # asking meanwhile must not make both lose
            heard = [worker.heard() for worker in workers]
            assert sorted(word for word, _ in heard) == ["busy", "won"]
            winner = next(worker for worker, (word, _) in zip(workers, heard, strict=True) if word == "won")
            assert {pid for _, pid in heard} == {str(winner.pid)}
            assert winner.ask("release") == ["released"]
    finally:
        for worker in workers:
            worker.kill()


CRITICAL = """
import os, sys, time
from pathlib import Path
from reverie.errors import SessionBusy
from reverie.storage.lease import Lease
path, inside, done = Path(sys.argv[1]), sys.argv[2], 0
until = time.monotonic() + 120
while done < int(sys.argv[3]):
    assert time.monotonic() < until, "starved"
    try:
        lease = Lease.take(path, info={})
    except SessionBusy:
        continue
    with lease:
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
        time.sleep(0.001)
        os.unlink(inside)
        done += 1
"""


@pytest.mark.soak
def test_taking_and_releasing_in_turn_never_lets_two_in(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", CRITICAL, str(tmp_path / "a.lock"), str(tmp_path / "in"), str(count(100, 3000))]
    racers = [subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [racer.communicate(timeout=200)[1] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0], said
