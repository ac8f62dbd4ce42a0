"""The background log: shared by processes, bounded, readable when torn, free of secrets and conversation."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.runtime.background_log import BackgroundLog
from tests.counts import count
from tests.waiting import LIMIT_S


def test_lines_come_back_filtered_oldest_first(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "background.jsonl"
    one, two = BackgroundLog(path, "aaa-1"), BackgroundLog(path, "bbb-2")
    before = datetime.now(UTC) - timedelta(seconds=1)
    for n in range(5):
        one.write("task_started", n=n, ok=True, share=0.5, none=None, files=["a", "b"])
        two.write("retry", n=n)
    assert [entry.fields["n"] for entry in one.read(3)] == [3, 4, 4]
    assert [entry.fields["n"] for entry in one.read(2, kind="task")] == [3, 4]
    assert {entry.session for entry in one.read(session="bbb")} == {"bbb-2"}
    assert len(one.read(since=before)) == 10 and one.read(since=datetime.now(UTC) + timedelta(hours=1)) == []
    assert one.read(1, kind="task")[0].fields == {"n": 4, "ok": True, "share": 0.5, "none": None, "files": ["a", "b"]}
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert BackgroundLog(tmp_path / "none").read() == []


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-AbCdEf123456",
        "sk-proj-AbCdEf123456",
        "ghp_abcdefghij0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4",
        "Bearer abc.def-ghi",
        "api_key=abcdef",
        'password: "hunter2"',
        "https://me:hunter2@host/x",
    ],
)
def test_secrets_are_masked_wherever_they_stand(tmp_path: Path, secret: str) -> None:
    log = BackgroundLog(tmp_path / "log")
    log.write("task_failed", error=f"401 for {secret} at once", files=[secret])
    text = log.path.read_text()
    assert secret not in text and "hunter2" not in text and "AbCdEf" not in text and "[secret]" in text
    assert "401 for" in text and "at once" in text


def test_conversation_is_kept_as_its_length_only(tmp_path: Path) -> None:
    log = BackgroundLog(tmp_path / "log")
    log.write(
        "odd", prompt="tell nobody", messages=[{"content": "tell nobody"}], details={"q": "tell nobody"}, kind_="k"
    )
    log.write("odd", error="x" * 5000)
    text = log.path.read_text()
    assert "tell nobody" not in text and '"prompt_characters": 11' in text and '"details_keys": ["q"]' in text
    assert len(log.read()[1].fields["error"]) == 500


def test_torn_and_foreign_lines_are_skipped(tmp_path: Path) -> None:
    log = BackgroundLog(tmp_path / "log")
    log.write("one")
    with log.path.open("ab") as file:
        file.write(b'{"time": "2026-\n\xff\xfe\n[1]\n{"kind": "x"}\n{"time": "2026-01-01", "kind": "naive"}\n')
        file.write(b"[" * 100_000 + b"\n" + b'{"time": 5, "kind": 1}\n{"torn')
    log.write("two")  # joins the torn line, as after a crash
    log.write("three")
    assert [entry.kind for entry in log.read()] == ["one", "three"]


def test_two_files_of_bounded_size_are_kept(tmp_path: Path) -> None:
    log = BackgroundLog(tmp_path / "log", rotate_bytes=2_000)
    for n in range(200):
        log.write("line", n=n)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]
    assert all(path.stat().st_size <= 2_000 for path in tmp_path.iterdir())
    numbers = [entry.fields["n"] for entry in log.read()]
    assert numbers == list(range(numbers[0], 200)) and len(numbers) > 20
    tiny = BackgroundLog(tmp_path / "tiny", rotate_bytes=1)
    tiny.write("larger than the file may be")
    assert len(tiny.read()) == 1


WRITER = """
import sys
from pathlib import Path
from reverie.runtime.background_log import BackgroundLog
log = BackgroundLog(Path(sys.argv[1]), sys.argv[2], rotate_bytes=10**9)
for n in range(int(sys.argv[3])):
    log.write("line", n=n, pad="x" * 100)
assert log.lost == 0, log.error
"""


@pytest.mark.soak
def test_many_processes_share_one_file_without_tearing(tmp_path: Path) -> None:
    path, lines = tmp_path / "log", count(200, 5000)
    arguments = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*arguments, f"s{n}", str(lines)]) for n in range(4)]
    assert [writer.wait(LIMIT_S) for writer in writers] == [0] * 4
    raw = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(raw) == 4 * lines
    for n in range(4):
        assert [entry["n"] for entry in raw if entry["session"] == f"s{n}"] == list(range(lines))


@pytest.mark.soak
def test_of_many_who_find_the_file_full_one_moves_it_and_no_line_is_lost(tmp_path: Path) -> None:
    for attempt in range(count(40, 3000)):
        log = BackgroundLog(tmp_path / str(attempt), rotate_bytes=2_000)
        while not log.path.exists() or log.path.stat().st_size < 1_900:
            log.write("early")
        start = threading.Barrier(8)

        def write(n: int, log: BackgroundLog = log, start: threading.Barrier = start) -> None:
            start.wait()
            log.write("late", n=n)

        before = len(log.read())
        threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kinds = [entry.kind for entry in log.read()]
        assert (kinds.count("early"), kinds.count("late")) == (before, 8)


def test_a_disk_that_refuses_is_counted_not_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = BackgroundLog(tmp_path / "file" / "log")
    log.write("one")
    log.write("two")
    assert log.lost == 2 and "not a folder" in str(log.error)


@given(
    name=st.text(),
    value=st.recursive(st.none() | st.text() | st.floats(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)),
)
def test_whatever_is_written_can_be_read(tmp_path_factory: pytest.TempPathFactory, name: str, value: object) -> None:
    log = BackgroundLog(tmp_path_factory.mktemp("any") / "log")
    log.write("kind", **{name: value})
    (entry,) = log.read()
    assert entry.kind == "kind" and len(log.path.read_bytes()) < 150_000
