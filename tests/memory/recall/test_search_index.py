"""The derived index: follows the files, shared by processes, thrown away when it is no good."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.memory.recall.search_index import SearchIndex
from reverie.text.words import terms
from tests.counts import count


def note(folder: Path, name: str, text: str, when: float = 1_700_000_000) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (when, when))
    return path


def paths_with(index: SearchIndex, word: str) -> set[str]:
    (term,) = terms(word)
    found = index.terms([term]).get(term)
    if found is None:
        return set()
    files = index.files([file for file, _ in index.postings(found.id)])
    return {file.path for file in files.values()}


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


def test_topic_files_at_any_depth_are_indexed_and_nothing_else(memory: Path, tmp_path: Path) -> None:
    for name in ("a.md", "team/b.md", "team/deep/c.md", "team/logs/d.md"):
        note(memory, name, "walrus")
    for name in ("MEMORY.md", "team/MEMORY.md", "logs/2026/01/x.md", ".hidden.md", ".git/y.md", "z.txt"):
        note(memory, name, "walrus")
    (memory / "link.md").symlink_to(note(tmp_path, "outside.md", "walrus"))
    with SearchIndex(memory, tmp_path / "i" / "index.sqlite") as index:
        assert index.refresh().changed == 4
        assert paths_with(index, "walrus") == {"a.md", "team/b.md", "team/deep/c.md", "team/logs/d.md"}
        assert index.totals()[0] == 4


def test_only_what_changed_is_read_again(memory: Path, tmp_path: Path) -> None:
    note(memory, "a.md", "walrus")
    note(memory, "b.md", "penguin")
    note(memory, "c.md", "otter")
    with SearchIndex(memory, tmp_path / "index.sqlite") as index:
        index.refresh()
        assert not index.refresh().anything
        note(memory, "b.md", "albatross", when=1_700_000_100)
        (memory / "c.md").unlink()
        again = index.refresh()
        assert (again.changed, again.removed) == (1, 1)
        assert paths_with(index, "penguin") == paths_with(index, "otter") == set()
        assert paths_with(index, "albatross") == {"b.md"}
        assert index.totals()[0] == 2
    with SearchIndex(memory, tmp_path / "index.sqlite") as index:
        assert not index.refresh().anything, "another process finds everything done"


def test_a_file_written_twice_within_one_tick_of_the_clock_is_not_missed(memory: Path, tmp_path: Path) -> None:
    path = memory / "a.md"
    path.write_text("walrus", encoding="utf-8")
    stamp = path.stat().st_mtime_ns
    with SearchIndex(memory, tmp_path / "index.sqlite") as index:
        index.refresh()
        path.write_text("weasel", encoding="utf-8")
        os.utime(path, ns=(stamp, stamp))
        index.refresh()
        assert paths_with(index, "weasel") == {"a.md"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_left_out_alone(memory: Path, tmp_path: Path) -> None:
    note(memory, "a.md", "walrus")
    note(memory, "b.md", "walrus").chmod(0)
    with SearchIndex(memory, tmp_path / "index.sqlite") as index:
        index.refresh()
        assert paths_with(index, "walrus") == {"a.md"}


@pytest.mark.parametrize("damage", ["garbage", "empty header", "cut", "other version", "other database"])
def test_a_damaged_index_is_built_again_by_itself(memory: Path, tmp_path: Path, damage: str) -> None:
    for n in range(300):
        note(memory, f"n{n}.md", f"walrus number{n}")
    path = tmp_path / "index.sqlite"
    with SearchIndex(memory, path) as index:
        index.refresh()
    match damage:
        case "garbage":
            path.write_bytes(b"this is not a database at all, " * 500)
        case "empty header":
            path.write_bytes(b"\0" * 4096 + path.read_bytes()[4096:])
        case "cut":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
        case "other version":
            with sqlite3.connect(path) as db:
                db.execute("UPDATE meta SET value = '0' WHERE key = 'version'")
            db.close()
        case _:
            path.unlink()
            with sqlite3.connect(path) as db:
                db.execute("CREATE TABLE something (else_ TEXT)")
            db.close()
    with SearchIndex(memory, path) as index:
        if index.problem or not _whole(index):
            index.recover(sqlite3.DatabaseError("malformed"))
        index.refresh()
        assert not index.problem
        assert len(paths_with(index, "walrus")) == 300


def _whole(index: SearchIndex) -> bool:
    try:
        index.refresh()
        return len(paths_with(index, "walrus")) == 300
    except sqlite3.DatabaseError:
        return False


def test_a_damaged_index_that_somebody_else_has_open_is_left_to_them(memory: Path, tmp_path: Path) -> None:
    note(memory, "a.md", "walrus")
    path = tmp_path / "index.sqlite"
    with SearchIndex(memory, path) as theirs:
        theirs.refresh()
        with SearchIndex(memory, path) as ours:
            ours.recover(sqlite3.DatabaseError("malformed"))
            assert "another process" in ours.problem
            ours.refresh()
            assert paths_with(ours, "walrus") == {"a.md"}
        assert paths_with(theirs, "walrus") == {"a.md"}


def test_without_a_place_to_write_the_index_lives_in_memory(memory: Path, tmp_path: Path) -> None:
    note(memory, "a.md", "walrus")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with SearchIndex(memory, blocked / "index.sqlite") as index:
        assert index.problem
        index.refresh()
        assert paths_with(index, "walrus") == {"a.md"}


_WORKER = """
import sys, random
from pathlib import Path
from reverie.text.words import terms
from reverie.memory.recall.search_index import SearchIndex
memory, path, seed, rounds = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)
for n in range(rounds):
    fresh = memory / f".{seed}.{n}.tmp"
    fresh.write_text(f"shared walrus w{seed}x{n}", encoding="utf-8")
    fresh.replace(memory / f"note{chance.randrange(20)}.md")
    with SearchIndex(memory, path) as index:
        index.refresh()
        assert not index.problem, index.problem
"""


@pytest.mark.soak
def test_several_processes_share_one_index(memory: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    rounds = str(count(12, 150))
    command = [sys.executable, "-c", _WORKER, str(memory), str(path)]
    workers = [
        subprocess.Popen([*command, str(seed), rounds], stderr=subprocess.PIPE, text=True)
        for seed in range(count(4, 8))
    ]
    for worker in workers:
        assert worker.wait(timeout=240) == 0, worker.stderr and worker.stderr.read()
        if worker.stderr:
            worker.stderr.close()
    with SearchIndex(memory, path) as index, SearchIndex(memory, None) as fresh:
        time.sleep(0.1)
        index.refresh()
        fresh.refresh()
        names = {file.path for file in fresh.files().values()}
        assert {file.path for file in index.files().values()} == names
        assert paths_with(index, "walrus") == names
        assert index.totals() == fresh.totals()
        for file in names:
            word = (memory / file).read_text(encoding="utf-8").split()[-1]
            assert paths_with(index, word) == {file}


_TEXTS = st.lists(st.sampled_from(["walrus", "otter", "penguin", "日本語", "Straße", "x"]), min_size=1, max_size=6)
_CHANGES = st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), _TEXTS)), min_size=1, max_size=15)


@settings(max_examples=count(30, 400), deadline=None)
@given(changes=_CHANGES)
def test_following_changes_gives_what_a_fresh_index_gives(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, list[str] | None]]
) -> None:
    folder = tmp_path_factory.mktemp("walk")
    memory = folder / "memory"
    memory.mkdir()
    with SearchIndex(memory, folder / "index.sqlite") as index:
        for n, (which, words) in enumerate(changes):
            if words is None:
                (memory / f"{which}.md").unlink(missing_ok=True)
            else:
                note(memory, f"{which}.md", " ".join(words), when=1_700_000_000 + n)
            index.refresh()
        with SearchIndex(memory, None) as fresh:
            fresh.refresh()
            assert index.totals() == fresh.totals()
            for word in ("walrus", "otter", "penguin", "日本", "Straße", "x"):
                assert paths_with(index, word) == paths_with(fresh, word)
                known, told = index.terms(terms(word)), fresh.terms(terms(word))
                assert [term.files for term in known.values()] == [term.files for term in told.values()]
