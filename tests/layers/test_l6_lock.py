"""The lock of dreaming: its meanings, and that two processes never both have it, whatever is killed when."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reverie.layers.l6_dreaming.lock import NAME, SIDE, ConsolidationLock, LockLost
from tests.counts import count
from tests.waiting import LIMIT_S

NOW = 1_790_000_000.0


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    return process.pid


def test_taken_it_names_the_holder_and_the_time(tmp_path: Path) -> None:
    lock = ConsolidationLock(tmp_path)
    assert lock.mtime() is None
    holding = lock.take(NOW)
    assert holding is not None
    assert (tmp_path / NAME).read_text() == str(os.getpid())
    assert lock.mtime() == NOW
    assert lock.take(NOW + 1) is None
    state = lock.state(NOW + 1)
    assert state.held and state.pid == os.getpid() and state.last_success is None


def test_success_empties_it_and_tells_when(tmp_path: Path) -> None:
    lock = ConsolidationLock(tmp_path)
    holding = lock.take(NOW)
    assert holding is not None and holding.succeed(NOW + 90)
    assert (tmp_path / NAME).read_bytes() == b""
    assert lock.mtime() == NOW + 90
    assert not lock.state(NOW + 91).held
    assert lock.take(NOW + 100) is not None


def test_failure_puts_the_last_success_back(tmp_path: Path) -> None:
    lock = ConsolidationLock(tmp_path)
    first = lock.take(NOW)
    assert first is not None and first.succeed(NOW + 1)
    second = lock.take(NOW + 90_000)
    assert second is not None
    assert lock.state(NOW + 90_001).last_success == NOW + 1
    assert second.give_back(NOW + 90_010)
    assert lock.mtime() == NOW + 1
    assert (tmp_path / NAME).read_bytes() == b""


def test_failure_of_the_first_dream_ever_leaves_no_file(tmp_path: Path) -> None:
    holding = ConsolidationLock(tmp_path).take(NOW)
    assert holding is not None and holding.give_back(NOW + 5)
    assert not (tmp_path / NAME).exists()


def test_a_dead_holder_is_recovered_once_and_the_time_gate_opens_again(tmp_path: Path) -> None:
    lock = ConsolidationLock(tmp_path)
    first = lock.take(NOW)
    assert first is not None and first.succeed(NOW + 1)
    assert lock.take(NOW + 90_000) is not None
    pid = dead_pid()
    (tmp_path / NAME).write_text(str(pid))
    side = json.loads((tmp_path / SIDE).read_text())
    (tmp_path / SIDE).write_text(json.dumps({**side, "pid": pid}))
    os.utime(tmp_path / NAME, (NOW + 90_000, NOW + 90_000))
    assert lock.state(NOW + 90_001).stale
    assert lock.recover(NOW + 90_001)
    assert lock.mtime() == NOW + 1
    assert not lock.recover(NOW + 90_002)


def test_the_lock_of_another_program_keeps_its_time(tmp_path: Path) -> None:
    """Others leave their PID in it after a success and keep no note: the mtime is all that is known."""
    (tmp_path / NAME).write_text(str(dead_pid()))
    os.utime(tmp_path / NAME, (NOW, NOW))
    lock = ConsolidationLock(tmp_path)
    assert lock.recover(NOW + 10)
    assert lock.mtime() == NOW
    (tmp_path / NAME).write_text(str(os.getpid()))
    os.utime(tmp_path / NAME, (NOW + 20, NOW + 20))
    assert lock.take(NOW + 30) is None


def test_a_living_holder_has_it_for_an_hour_and_no_longer(tmp_path: Path) -> None:
    lock = ConsolidationLock(tmp_path)
    late = lock.take(NOW)
    assert late is not None
    assert lock.take(NOW + 3_599) is None
    other = lock.take(NOW + 3_601)
    assert other is not None
    with pytest.raises(LockLost), late.landing(NOW + 3_602):
        pytest.fail("a lost lock lets nothing land")
    assert not late.succeed(NOW + 3_603)
    with other.landing(NOW + 3_604):
        pass
    assert other.give_back(NOW + 3_605)
    assert lock.mtime() is None


def test_what_is_no_pid_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("??")
    (tmp_path / SIDE).write_text("{torn")
    assert ConsolidationLock(tmp_path).take(time.time()) is not None


HOLDER = """
import os, random, signal, sys, time
from pathlib import Path
from reverie.layers.l6_dreaming.lock import ConsolidationLock
root, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
lock = ConsolidationLock(root)
inside = root / "inside"
for _ in range(rounds):
    holding = lock.take(time.time())
    if holding is None:
        time.sleep(random.random() * 0.004)
        continue
    fd = os.open(inside, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(what, *more):
        os.write(fd, " ".join([what, str(os.getpid()), *map(repr, more)]).encode() + b"\\n")

    tell("in", lock.state(time.time()).last_success, time.time())
    fate = random.random()
    if fate < 0.08:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(random.random() * 0.002)
    now = time.time()
    tell("success" if fate < 0.5 else "failure", now)
    os.close(fd)
    assert holding.succeed(now) if fate < 0.5 else holding.give_back(now)
"""


@pytest.mark.soak
def test_never_two_holders_and_never_stuck(tmp_path: Path) -> None:
    """Many processes take and leave it, and some are killed while they have it."""
    processes, rounds = count(8, 64), count(40, 100)
    running = [
        subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path), str(rounds), str(seed)])
        for seed in range(processes)
    ]
    codes = [process.wait(timeout=600) for process in running]
    killed = {process.pid for process, code in zip(running, codes, strict=True) if code == -signal.SIGKILL}
    assert all(code in (0, -signal.SIGKILL) for code in codes), codes
    holder, succeeded, taken, crashed = "", None, 0, 0
    for line in (tmp_path / "inside").read_text().splitlines():
        verb, pid, *more = line.split()
        if verb == "in":
            assert holder == "" or int(holder) in killed, f"{pid} got it while {holder} had it"
            crashed += holder != ""
            last = None if more[0] == "None" else float(more[0])
            assert (last is None) == (succeeded is None), "a time of success without one, or the other way round"
            assert last is None or succeeded is None or abs(last - succeeded) < 0.001, "the mtime is the last success's"
            holder, taken = pid, taken + 1
        else:
            assert holder == pid
            holder, succeeded = "", float(more[0]) if verb == "success" else succeeded
    assert taken >= processes and crashed <= len(killed)
    lock = ConsolidationLock(tmp_path)
    lock.recover(time.time())
    state = lock.state(time.time())
    assert not state.held and state.pid is None
    assert state.mtime == state.last_success == (None if succeeded is None else pytest.approx(succeeded, abs=0.001))
    assert lock.take(time.time()) is not None, "after everything it can be taken"


def test_nothing_is_left_when_the_disk_is_full(tmp_path: Path) -> None:
    """A file-size limit of zero in a process of its own: the name can be made, its content cannot be written."""
    (tmp_path / SIDE).touch()
    code = (
        "import resource, signal, sys, time; from pathlib import Path\n"
        "from reverie.errors import ReverieError\n"
        "from reverie.layers.l6_dreaming.lock import ConsolidationLock\n"
        "lock = ConsolidationLock(Path(sys.argv[1])); holding = lock.take(time.time())\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try: lock._put(b'1', 1)\n"
        "except OSError: print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout == "refused\n", done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, SIDE]


def test_what_a_killed_process_left_goes_when_the_next_session_begins(tmp_path: Path) -> None:
    left = tmp_path / f"{NAME}.0123456789ab.tmp"
    left.touch()
    assert not ConsolidationLock(tmp_path).recover(time.time())
    assert not left.exists()
