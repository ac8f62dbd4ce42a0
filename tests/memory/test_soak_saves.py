"""Many processes save into one directory and are killed meanwhile: nothing acknowledged is lost, nothing is torn."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.index import entries
from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile
from tests import warm
from tests.counts import count
from tests.memory.saver import SHARED_FILES, accept, body, whole


def acknowledged(path: Path) -> list[tuple[int, str, str]]:
    if not path.exists():
        return []
    rows = [line.split(" ", 2) for line in path.read_text().splitlines()]
    return [(int(number), done, name) for number, done, name in rows]


def run_workers(root: Path, tmp_path: Path, workers: int, saves: int, kills: int, chance: random.Random) -> int:
    """Runs all workers to their end, killing one now and then, which goes on where it stopped. Returns the kills."""

    def start(worker: int) -> warm.Process:
        acks = tmp_path / f"acks-{worker}"
        first = max((number + 1 for number, _, _ in acknowledged(acks)), default=0)
        arguments = [str(root), str(acks), str(worker), str(first), str(saves)]
        return warm.start(*arguments, module="tests.memory.saver")

    running = {worker: start(worker) for worker in range(workers)}
    killed = 0
    while running:
        time.sleep(chance.uniform(0.05, 0.4))
        for worker, process in list(running.items()):
            if process.poll() is not None:
                assert process.returncode in (0, -9), f"worker {worker} ended with {process.returncode}"
                del running[worker]
                if process.returncode:
                    running[worker] = start(worker)
        if running and killed < kills:
            running[chance.choice(list(running))].kill()
            killed += 1
    return killed


def save_and_die(tmp_path: Path, workers: int, each: int, kills: int, chance: random.Random) -> int:
    """Many processes save and die, and nothing is lost; returns the acknowledged saves."""
    root = tmp_path / "memory"
    directory = MemoryDirectory.open(root, gate=accept)
    for number in range(SHARED_FILES):
        shared = TopicFile.new(name=f"Shared {number}", description="all", type=MemoryType.FEEDBACK, body="Lines:\n")
        directory.create(f"feedback_shared_{number}.md", shared, WriteInfo(Writer.USER, "begin"))
    began = time.monotonic()
    killed = run_workers(root, tmp_path, workers, each, kills, chance)
    took = time.monotonic() - began
    assert directory.absorb() is None, "a change was on disk and in no version"

    acks = {worker: acknowledged(tmp_path / f"acks-{worker}") for worker in range(workers)}
    assert all(rows[-1][0] == each - 1 for rows in acks.values())
    assert killed >= kills // 2 or each < 25, "few saves may all be done before a kill, many may not"

    # History complete: every acknowledged save is a version that holds what was saved, whole.
    # A save that was killed between its version and its acknowledgement was made again, maybe to another shared file.
    made = {(version.info.message, change.name): change for version in directory.log() for change in version.files}
    assert all(version.info.writer in ("extraction", "user") for version in directory.log())
    for worker, rows in acks.items():
        for number, done, name in rows:
            change = made[f"{worker}-{number}", name]
            if done == "removed":
                assert change.after is None
                continue
            assert change.after is not None
            topic = TopicFile.parse(directory.history.read(change.after))
            if done == "shared":
                assert f"- {worker}-{number}\n" in topic.body
            else:
                assert topic.body == body(worker, number)

    # No acknowledged change of a shared file was overwritten by another process's.
    shared = {
        f"feedback_shared_{number}.md": directory.read(f"feedback_shared_{number}.md") for number in range(SHARED_FILES)
    }
    for worker, rows in acks.items():
        for number, done, name in rows:
            if done == "shared":
                assert f"- {worker}-{number}\n" in shared[name].text

    # No torn file, no leftovers; index and files agree; the newest version is what is on disk.
    names = directory.names()
    assert all(whole(directory.read(name).topic.body) for name in names if name not in shared)
    listed = [entry.file for entry in entries(directory.index())]
    assert sorted(listed) == names
    assert {path.name for path in root.iterdir()} == {*names, "MEMORY.md"}
    files = directory.history.files(directory.history.head())
    assert {name: directory.history.read(content) for name, content in files.items()} == {
        name: (root / name).read_bytes() for name in files
    }
    assert files.keys() == {*names, "MEMORY.md"}
    git_dir = str(directory.history.git_dir)
    fsck = subprocess.run(["git", "--git-dir", git_dir, "fsck", "--full"], capture_output=True, text=True, check=True)
    assert "dangling" not in fsck.stdout or killed
    log = subprocess.run(
        ["git", "--git-dir", git_dir, "rev-list", "--count", "main"], capture_output=True, text=True, check=True
    )
    saves = sum(map(len, acks.values()))
    assert int(log.stdout) >= saves + SHARED_FILES
    print(f"{saves} saves by {workers} processes in {took:.0f} s ({took / saves * 1e3:.1f} ms each), {killed} killed")
    return saves


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_many_processes_save_and_die_and_nothing_is_lost(tmp_path: Path) -> None:
    assert save_and_die(tmp_path, count(4, 16), count(25, 500), count(6, 120), random.Random(4))


@pytest.mark.soak
def test_many_processes_begin_at_once(tmp_path: Path) -> None:
    """Nothing is there yet: whoever comes first makes the directory and its history, and all use the same."""
    for attempt in range(count(3, 40)):
        place = tmp_path / str(attempt)
        root = place / "memory"
        started = [
            warm.start(str(root), f"{place}-{worker}", str(worker), "0", "3", module="tests.memory.saver")
            for worker in range(count(4, 8))
        ]
        assert [process.wait() for process in started] == [0] * len(started)
        directory = MemoryDirectory.open(root, gate=accept)
        messages = {version.info.message for version in directory.log()}
        assert messages == {f"{worker}-{number}" for worker in range(len(started)) for number in range(3)}
        assert [path.name for path in place.iterdir()].count("memory-history.git") == 1
        assert not (root / ".reverie").exists()
