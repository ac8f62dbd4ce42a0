"""Old tool results go, but never those that an open or resumable session could ask for."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from reverie.session import Session
from reverie.storage.cleanup import CleanupResult, clean_tool_results, needs_cleaning
from reverie.storage.lease import Lease
from tests.sessions import script
from tests.waiting import LIMIT_S

DAY = 86_400


def kept(project: Path, session: str, name: str, *, days: float = 0, size: int = 10) -> Path:
    path = project / session / "tool-results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return path


def test_results_of_deleted_sessions_go_by_age(tmp_path: Path) -> None:
    old, young = kept(tmp_path, "gone", "a.txt", days=31), kept(tmp_path, "gone", "b.txt", days=29)
    done = clean_tool_results(tmp_path, keep_days=30, keep_bytes=0)
    assert done == CleanupResult(1, 10)
    assert not old.exists() and young.exists()


def test_what_a_transcript_names_stays_however_old(tmp_path: Path) -> None:
    named, crashed = kept(tmp_path, "s1", "toolu_1.txt", days=900), kept(tmp_path, "s1", "toolu_2.txt", days=900)
    (tmp_path / "s1.jsonl").write_text('{"content": "All of it is in /somewhere/s1/tool-results/toolu_1.txt"}\n')
    assert clean_tool_results(tmp_path, keep_days=1, keep_bytes=1).files == 1
    assert named.exists() and not crashed.exists()
    assert (tmp_path / "s1" / "tool-results").is_dir(), "the folder of a session that can go on stays"


def test_what_an_open_session_has_stays(tmp_path: Path) -> None:
    path = kept(tmp_path, "open", "a.txt", days=900)
    lease = Lease.take(tmp_path / "open" / Lease.NAME, info={})
    try:
        assert clean_tool_results(tmp_path, keep_days=1, keep_bytes=1) == CleanupResult()
        assert path.exists()
    finally:
        lease.release()
    assert clean_tool_results(tmp_path, keep_days=1, keep_bytes=1).files == 1


def test_beyond_the_size_the_oldest_go_first(tmp_path: Path) -> None:
    paths = [kept(tmp_path, f"g{i}", "a.txt", days=9 - i, size=100) for i in range(5)]
    assert clean_tool_results(tmp_path, keep_days=0, keep_bytes=250) == CleanupResult(3, 300)
    assert [path.exists() for path in paths] == [False, False, False, True, True]
    assert not (tmp_path / "g0").exists(), "a folder of a deleted session goes with its last file"


def test_nothing_else_is_touched_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = kept(tmp_path / "elsewhere", "x", "precious.txt", days=900)
    project = tmp_path / "project"
    notes = project / "gone" / "session-memory" / "summary.md"
    notes.parent.mkdir(parents=True)
    notes.write_text("notes")
    (project / "gone" / "tool-results").symlink_to(outside.parent)
    (project / "link").symlink_to(outside.parent.parent)
    inside = kept(project, "other", "real.txt", days=900)
    (inside.parent / "link.txt").symlink_to(outside)
    clean_tool_results(project, keep_days=1, keep_bytes=1)
    assert outside.exists() and notes.exists() and not inside.exists()


def test_no_limits_and_no_folder(tmp_path: Path) -> None:
    path = kept(tmp_path, "gone", "a.txt", days=900)
    assert clean_tool_results(tmp_path, keep_days=0, keep_bytes=0) == CleanupResult()
    assert path.exists() and needs_cleaning(tmp_path) and not needs_cleaning(tmp_path, skip="gone")
    assert clean_tool_results(tmp_path / "none", keep_days=1, keep_bytes=1) == CleanupResult()


def test_a_session_cleans_up_in_the_background(tmp_path: Path, own_home: Path) -> None:
    model = script(tmp_path, "say Done.\n")

    async def work() -> None:
        async with await Session.open(cwd=tmp_path, model=model) as session:
            old = kept(session.places.project, "gone", "a.txt", days=400)
            own = kept(session.places.project, session.id, "b.txt", days=400)
        async with await Session.open(cwd=tmp_path, model=model) as session:
            await session.tasks.drain(LIMIT_S)
            assert not old.exists()
            assert not own.exists(), "nothing in that session's transcript names it"

    asyncio.run(work())


def test_a_session_that_leaves_nothing_leaves_no_folder(tmp_path: Path) -> None:
    async def opened() -> Path:
        async with await Session.open(cwd=tmp_path, model=script(tmp_path, "say Hello.\n")) as session:
            folder = session.parts.places.session(session.id)
            assert (folder / Lease.NAME).exists()
        return folder

    assert not asyncio.run(opened()).exists()


def test_the_folder_of_a_killed_session_goes_unless_it_is_just_beginning(tmp_path: Path) -> None:
    for name in ("killed", "beginning", "memory", "went_on", "open"):
        (tmp_path / name).mkdir()
        if name != "memory":
            (tmp_path / name / Lease.NAME).write_text('{"pid": 1}')
        if name != "beginning":
            os.utime(tmp_path / name, (1_000, 1_000))
    (tmp_path / "went_on.jsonl").touch()
    with Lease.take(tmp_path / "open" / Lease.NAME, info={}):
        os.utime(tmp_path / "open", (1_000, 1_000))
        assert needs_cleaning(tmp_path) and not needs_cleaning(tmp_path / "open")
        clean_tool_results(tmp_path, keep_days=0, keep_bytes=0)
        left = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    assert left == ["beginning", "memory", "open", "went_on"]


def test_no_folder_stays_when_the_disk_is_full_from_the_start(tmp_path: Path, own_home: Path) -> None:
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from reverie.cli.app import commands; commands(['run', '--model', 'embedded', 'Hello'])\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=LIMIT_S)
    [project] = (own_home / ".reverie" / "projects").iterdir()
    assert [path.name for path in project.iterdir()] == ["memory"]
