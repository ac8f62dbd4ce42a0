"""Files appear whole or not at all, whatever the disk or a kill does."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import StorageError
from reverie.storage.atomic import create_exclusive, make_private_dir, storage_error, write_atomic
from tests.counts import count


@pytest.fixture(params=[0o000, 0o027, 0o077, 0o177])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("fsync", [True, False])
def test_replaces_what_is_there_and_leaves_nothing_else(tmp_path: Path, fsync: bool) -> None:
    path = tmp_path / "a.md"
    write_atomic(path, b"one", fsync=fsync)
    write_atomic(path, b"two\x00\xff", fsync=fsync)
    assert path.read_bytes() == b"two\x00\xff"
    assert names(tmp_path) == ["a.md"]


def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    write_atomic(tmp_path / "private", b"x")
    write_atomic(tmp_path / "shared", b"x", mode=0o644)
    assert create_exclusive(tmp_path / "new", b"x")
    make_private_dir(tmp_path / "p" / "q")
    modes = [mode_of(tmp_path / name) for name in ("private", "shared", "new", "p", "p/q")]
    assert modes == [0o600, 0o644, 0o600, 0o700, 0o700]


def test_a_symbolic_link_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("mine")
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert target.read_text() == "mine" and link.read_text() == "new" and not link.is_symlink()


def test_a_name_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127 + "x")
    write_atomic(path, b"x")
    assert path.read_bytes() == b"x"
    assert create_exclusive(path, b"y") is False


FULL = """
import resource, sys
from pathlib import Path
from reverie.errors import StorageError
from reverie.storage.atomic import create_exclusive, write_atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
path, new = Path(sys.argv[1]), Path(sys.argv[2])
for do in (lambda: write_atomic(path, b"x" * 5000), lambda: create_exclusive(new, b"x" * 5000)):
    try:
        do()
    except StorageError as error:
        print(error)
"""


def test_a_disk_that_takes_no_more_keeps_the_old_file_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    write_atomic(path, b"old")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(tmp_path / "b")], capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first.startswith(f"Cannot write {path}: ") and second.startswith(f"Cannot create {tmp_path / 'b'}: ")
    assert path.read_bytes() == b"old" and names(tmp_path) == ["a.md"]


@pytest.mark.parametrize(
    ("where", "says"),
    [("gone/a", "not there"), ("file/a", "not a folder"), ("folder", "a folder, not a file"), ("x" * 300, "too long")],
)
def test_bad_places_get_one_sentence(tmp_path: Path, where: str, says: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    before = names(tmp_path)
    with pytest.raises(StorageError, match=says):
        write_atomic(tmp_path / where, b"x")
    assert names(tmp_path) == before


def test_exclusive_creation_keeps_the_first(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    assert create_exclusive(path, b"first") is True
    assert create_exclusive(path, b"second") is False
    assert path.read_bytes() == b"first" and names(tmp_path) == ["result.txt"]
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert create_exclusive(tmp_path / "dangling", b"x") is False
    assert not (tmp_path / "nowhere").exists()


def test_exclusive_creation_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "result.txt"
    assert [create_exclusive(path, b"first"), create_exclusive(path, b"second")] == [True, False]
    assert path.read_bytes() == b"first" and names(tmp_path) == ["result.txt"]


@pytest.mark.soak
def test_of_many_who_create_one_wins_and_its_bytes_stand(tmp_path: Path) -> None:
    for attempt in range(count(10, 500)):
        path = tmp_path / str(attempt)
        won: list[bytes] = []
        start = threading.Barrier(8)

        def create(body: bytes, path: Path = path, won: list[bytes] = won, start: threading.Barrier = start) -> None:
            start.wait()
            if create_exclusive(path, body, fsync=False):
                won.append(body)

        threads = [threading.Thread(target=create, args=(bytes([65 + i]) * 10_000,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [path.read_bytes()] == won
    assert sorted(map(int, names(tmp_path))) == list(range(count(10, 500)))


WRITER = """
import sys
from pathlib import Path
from reverie.storage.atomic import write_atomic
path, n = Path(sys.argv[1]), 0
while True:
    n += 1
    write_atomic(path, (b"%d\\n" % n) * 20000, fsync=False)
    print(n, flush=True)
"""


@pytest.mark.soak
def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    for _ in range(count(5, 200)):
        path.unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(random.uniform(0, 0.05))
            writer.send_signal(signal.SIGKILL)
            said = [b"1", *writer.stdout.read().split()]
        lines = path.read_bytes().splitlines()
        assert len(lines) == 20_000 and len(set(lines)) == 1
        assert int(lines[0]) >= int(said[-1]), "an acknowledged write is lost"


def test_private_folders_leave_others_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    (tmp_path / "there").chmod(0o755)
    make_private_dir(tmp_path / "there" / "a" / "b")
    make_private_dir(tmp_path / "there" / "a" / "b")
    assert [mode_of(tmp_path / p) for p in ("there", "there/a", "there/a/b")] == [0o755, 0o700, 0o700]
    (tmp_path / "file").write_text("")
    for bad in ("file", "file/below"):
        with pytest.raises(StorageError, match="not a folder"):
            make_private_dir(tmp_path / bad)


@given(code=st.sampled_from([*sorted(errno.errorcode), 0, 9999]), name=st.binary(min_size=1, max_size=20))
def test_every_refusal_is_one_sentence_that_can_be_shown(code: int, name: bytes) -> None:
    path = Path("/somewhere") / os.fsdecode(name.replace(b"\x00", b"").replace(b"/", b"").strip(b".") or b"x")
    said = str(storage_error(OSError(code, os.strerror(code)), path, "write"))
    assert said.startswith("Cannot write /somewhere/") and said.endswith(".")
    said.encode("utf-8")


@pytest.mark.parametrize(
    ("code", "says"),
    [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only"), (errno.EACCES, "permission denied")],
)
def test_the_usual_refusals_say_what_to_do(code: int, says: str) -> None:
    assert says in str(storage_error(OSError(code, "x"), Path("/a"), "write"))
