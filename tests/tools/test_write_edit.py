"""Write and Edit: only what was read, only if unchanged, whole or not at all, all else byte for byte as it was."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.tools.base import ToolContext
from reverie.tools.edit import Edit
from reverie.tools.write import Write
from tests.counts import count
from tests.tools.calls import make_context, refusal, text, use

# -- Write


def test_a_new_file_with_its_folders(context: ToolContext) -> None:
    output = use(context, "Write", file_path="a/b/c.txt", content="x\ny\n")
    assert text(output) == f"Created {context.cwd}/a/b/c.txt (2 lines)."
    assert (context.cwd / "a/b/c.txt").read_bytes() == b"x\ny\n"
    seen = {"digest": hashlib.sha256(b"x\ny\n").hexdigest(), "partial": False}
    assert output.structured == {"type": "create", "filePath": f"{context.cwd}/a/b/c.txt", "seen": seen}
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((context.cwd / "a/b/c.txt").stat().st_mode) == 0o666 & ~mask


def test_what_was_written_counts_as_read(context: ToolContext) -> None:
    use(context, "Write", file_path="f", content="one")
    assert not use(context, "Write", file_path="f", content="two").is_error
    assert not use(context, "Edit", file_path="f", old_string="two", new_string="three").is_error
    assert not use(context, "Write", file_path="f", content="four").is_error
    assert (context.cwd / "f").read_text() == "four"


def test_an_existing_file_must_have_been_read(context: ToolContext) -> None:
    (context.cwd / "f").write_text("precious")
    assert "Read it first" in refusal(use(context, "Write", file_path="f", content="x"))
    assert (context.cwd / "f").read_text() == "precious"
    use(context, "Read", file_path="f")
    assert "Replaced" in text(use(context, "Write", file_path="f", content="x"))


def test_an_empty_file_has_nothing_to_lose(context: ToolContext) -> None:
    (context.cwd / "f").touch()
    assert not use(context, "Write", file_path="f", content="x").is_error


def test_a_part_is_not_enough_to_replace_the_whole(context: ToolContext) -> None:
    (context.cwd / "f").write_text("a\nb\n")
    use(context, "Read", file_path="f", limit=1)
    assert "Only a part" in refusal(use(context, "Write", file_path="f", content="x"))
    assert not use(context, "Edit", file_path="f", old_string="a", new_string="c").is_error
    assert "Only a part" in refusal(use(context, "Write", file_path="f", content="x"))


@pytest.mark.parametrize("tool", ["Write", "Edit"])
def test_a_file_changed_since_is_refused_even_with_the_same_time_and_size(context: ToolContext, tool: str) -> None:
    file = context.cwd / "f"
    file.write_text("old text")
    use(context, "Read", file_path="f")
    before = file.stat()
    file.write_text("new text")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    given = {"content": "x"} if tool == "Write" else {"old_string": "text", "new_string": "x"}
    assert "changed since it was read" in refusal(use(context, tool, file_path="f", **given))
    assert file.read_text() == "new text"


def test_a_file_only_touched_since_is_unchanged(context: ToolContext) -> None:
    file = context.cwd / "f"
    file.write_text("same")
    use(context, "Read", file_path="f")
    os.utime(file, ns=(0, 0))
    assert not use(context, "Edit", file_path="f", old_string="same", new_string="other").is_error


def test_a_link_is_followed_and_kept(context: ToolContext, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("one")
    (context.cwd / "link").symlink_to(target)
    use(context, "Read", file_path="link")
    use(context, "Edit", file_path="link", old_string="one", new_string="two")
    use(context, "Write", file_path=str(target), content="three")
    assert (context.cwd / "link").is_symlink() and target.read_text() == "three"
    (context.cwd / "dangling").symlink_to(tmp_path / "new")
    use(context, "Write", file_path="dangling", content="made")
    assert (context.cwd / "dangling").is_symlink() and (tmp_path / "new").read_text() == "made"


def test_mode_and_owner_are_kept(context: ToolContext) -> None:
    file = context.cwd / "script"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o750)
    if os.getuid() == 0:
        os.chown(file, 12_345, 12_346)
    before = file.stat()
    use(context, "Read", file_path="script")
    use(context, "Edit", file_path="script", old_string="sh", new_string="bash")
    after = file.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert [path.name for path in context.cwd.iterdir()] == ["script"]


def test_write_keeps_windows_line_ends_and_mark(context: ToolContext) -> None:
    (context.cwd / "w").write_bytes("a\r\nb\r\n".encode("utf-8-sig"))
    use(context, "Read", file_path="w")
    assert "CRLF" in text(use(context, "Write", file_path="w", content="c\nd\n"))
    assert (context.cwd / "w").read_bytes() == "c\r\nd\r\n".encode("utf-8-sig")


def test_where_nothing_can_be_written(context: ToolContext) -> None:
    (context.cwd / "file").write_text("x")
    assert "is a folder" in refusal(use(context, "Write", file_path=".", content="x"))
    assert "part of the path is a file" in refusal(use(context, "Write", file_path="file/inside", content="x"))
    assert "is a device" in refusal(use(context, "Write", file_path="/dev/full", content="x"))
    assert "too long" in refusal(use(context, "Write", file_path="x" * 300, content="x"))
    assert "half a character" in refusal(use(context, "Write", file_path="s", content="a\ud800"))
    assert not (context.cwd / "s").exists()


_ON_A_SMALL_DISK = """
import asyncio, sys
from pathlib import Path
from tests.tools.calls import make_context, use
root = Path(sys.argv[1])
context = make_context(root)
use(context, "Write", file_path="small", content="kept")
full = use(context, "Write", file_path="large", content="x" * 5_000_000)
again = use(context, "Write", file_path="small", content="y" * 5_000_000)
shell = use(context, "Bash", command="yes | head -c 3000000")
print(full.content); print(again.content); print(shell.is_error, "the rest could not be kept: Cannot" in shell.content)
print(sorted(path.name for path in root.rglob("*") if path.is_file()), (context.cwd / "small").read_text())
"""


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    script = f'mount -t tmpfs -o size=1m none "$1" && exec "{sys.executable}" -c \'{_ON_A_SMALL_DISK}\' "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "--user", "--map-root-user", "sh", "-c", script, "sh", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no small file system can be made here: {done.stderr.strip()[:100]}")
    large, small, shell, left = done.stdout.splitlines()
    assert large == f"Cannot write {tmp_path}/work/large: the disk is full; free some space and try again."
    assert small == f"Cannot write {tmp_path}/work/small: the disk is full; free some space and try again."
    assert shell == "False True"
    assert left == "['small'] kept"


def test_a_read_only_file_system(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    script = (
        'mount -t tmpfs -o ro none "$1/work" && exec "$2" -c "'
        "import sys; from pathlib import Path; from tests.tools.calls import make_context, use;"
        "print(use(make_context(Path(sys.argv[1])), 'Write', file_path='f', content='x').content)\" \"$1\""
    )
    done = subprocess.run(
        ["unshare", "--mount", "--user", "--map-root-user", "sh", "-c", script, "sh", str(tmp_path), sys.executable],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    if done.stderr:
        pytest.skip(f"no read-only file system can be made here: {done.stderr.strip()[:100]}")
    assert done.stdout.strip().startswith(f"Cannot write {work}/f: the file system is read-only")


def test_many_writers_of_one_new_file(tmp_path: Path) -> None:
    contexts = [make_context(tmp_path) for _ in range(8)]
    results: list[bool] = []
    barrier = threading.Barrier(8)

    def create(number: int) -> None:
        barrier.wait()
        results.append(use(contexts[number], "Write", file_path="one", content=str(number) * 1_000).is_error)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count(False) == 1
    assert len(set((tmp_path / "work/one").read_text())) == 1


def test_a_cancelled_write_is_whole_or_not_there(context: ToolContext) -> None:
    async def cancelled(delay: float) -> None:
        task = asyncio.ensure_future(Write().run({"file_path": "f", "content": "x" * 3_000_000}, context))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.wait([task])  # it may have been done just before

    for delay in (0, 0.0005, 0.001, 0.002):
        asyncio.run(cancelled(delay))
        names = [path.name for path in context.cwd.iterdir()]
        assert names in ([], ["f"])
        if names:
            assert (context.cwd / "f").stat().st_size == 3_000_000
            (context.cwd / "f").unlink()


# -- Edit


def test_the_one_place_is_replaced(context: ToolContext) -> None:
    (context.cwd / "f").write_text("a\nb\nc\n")
    use(context, "Read", file_path="f")
    output = use(context, "Edit", file_path="f", old_string="b\n", new_string="B\nBB\n")
    assert text(output) == f"Changed {context.cwd}/f at line 2."
    assert (context.cwd / "f").read_text() == "a\nB\nBB\nc\n"
    assert not use(context, "Edit", file_path="f", old_string="BB", new_string="").is_error


def test_what_edit_refuses(context: ToolContext) -> None:
    file = context.cwd / "f"
    file.write_text("def one():\n    return 1\n\ndef two():\n    return 1\n")
    edit = {"file_path": "f", "old_string": "return 1", "new_string": "return 2"}
    assert "has not been read" in refusal(use(context, "Edit", **edit))
    use(context, "Read", file_path="f")
    assert "more than once" in refusal(use(context, "Edit", **edit)) and "lines 2, 5" in text(
        use(context, "Edit", **edit)
    )
    assert "nothing to change" in refusal(use(context, "Edit", **edit | {"new_string": "return 1"}))
    assert "is empty" in refusal(use(context, "Edit", **edit | {"old_string": ""}))
    assert "does not occur" in refusal(use(context, "Edit", **edit | {"old_string": "return 3"}))
    numbered = edit | {"old_string": "     1\tdef one():\n     2\t    return 1"}
    assert "line numbers" in refusal(use(context, "Edit", **numbered))
    indented = edit | {"old_string": "def one():\n  return 1"}
    assert "like line 1" in refusal(use(context, "Edit", **indented))
    assert "does not exist" in refusal(use(context, "Edit", **edit | {"file_path": "g"}))
    assert "is a folder" in refusal(use(context, "Edit", **edit | {"file_path": "."}))
    assert file.read_text() == "def one():\n    return 1\n\ndef two():\n    return 1\n"


def test_overlapping_places_are_two(context: ToolContext) -> None:
    (context.cwd / "f").write_text("aaa")
    use(context, "Read", file_path="f")
    assert "more than once" in refusal(use(context, "Edit", file_path="f", old_string="aa", new_string="b"))
    use(context, "Edit", file_path="f", old_string="aa", new_string="b", replace_all=True)
    assert (context.cwd / "f").read_text() == "ba"


def test_every_place_is_replaced(context: ToolContext) -> None:
    (context.cwd / "f").write_text("x\n" * 10_000)
    use(context, "Read", file_path="f", limit=1)
    output = use(context, "Edit", file_path="f", old_string="x", new_string="y", replace_all=True)
    assert "in 10000 places (lines 1, 2, 3" in text(output) and "9990 more" in text(output)
    assert (context.cwd / "f").read_text() == "y\n" * 10_000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
def test_line_ends_mark_and_encoding_are_kept(context: ToolContext, encoding: str) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    (context.cwd / "w").write_bytes(mark + "ä\r\nb\r\nc\r\n".encode(encoding))
    use(context, "Read", file_path="w")
    assert not use(context, "Edit", file_path="w", old_string="ä\nb", new_string="1\n2\n3").is_error
    assert (context.cwd / "w").read_bytes() == mark + "1\r\n2\r\n3\r\nc\r\n".encode(encoding)
    assert not use(context, "Edit", file_path="w", old_string="c", new_string="d\ne").is_error
    assert (context.cwd / "w").read_bytes() == mark + "1\r\n2\r\n3\r\nd\r\ne\r\n".encode(encoding)


def test_mixed_line_ends_stay_mixed(context: ToolContext) -> None:
    (context.cwd / "m").write_bytes(b"a\r\nb\nc\r\nd\n")
    use(context, "Read", file_path="m")
    use(context, "Edit", file_path="m", old_string="b\nc", new_string="B\nC")
    assert (context.cwd / "m").read_bytes() == b"a\r\nB\nC\r\nd\n"
    use(context, "Edit", file_path="m", old_string="d\n", new_string="D\nE\n")
    assert (context.cwd / "m").read_bytes() == b"a\r\nB\nC\r\nD\nE\n"


def test_bytes_that_are_not_utf8_survive(context: ToolContext) -> None:
    (context.cwd / "l").write_bytes(b"caf\xe9 name \xff\n")
    use(context, "Read", file_path="l")
    use(context, "Edit", file_path="l", old_string="name", new_string="word")
    assert (context.cwd / "l").read_bytes() == b"caf\xe9 word \xff\n"
    assert "mix encodings" in refusal(use(context, "Edit", file_path="l", old_string="word", new_string="wörd"))
    (context.cwd / "b").write_bytes(b"\0\1\2")
    assert "binary" in refusal(use(context, "Edit", file_path="b", old_string="x", new_string="y"))


def test_edits_go_to_the_copy(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    context = make_context(tmp_path, map_path=lambda path: copy / path.name)
    for folder in (context.cwd, copy):
        (folder / "f").write_text("one")
    use(context, "Read", file_path="f")
    assert str(copy) not in text(use(context, "Edit", file_path="f", old_string="one", new_string="two"))
    assert ((context.cwd / "f").read_text(), (copy / "f").read_text()) == ("one", "two")


def test_a_writer_in_between_is_never_overwritten_unseen(context: ToolContext) -> None:
    """Somebody else replaces the file all the time: every edit either saw the newest content or was refused."""
    file = context.cwd / "f"
    file.write_text("count 0\n")
    stop = threading.Event()

    def disturb() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            (context.cwd / "tmp").write_text(f"count {number}\nedited 0\n")
            (context.cwd / "tmp").replace(file)
            stop.wait(0.003)

    other = threading.Thread(target=disturb)
    other.start()
    refused = 0
    try:
        for _ in range(60):
            use(context, "Read", file_path="f")
            output = use(context, "Edit", file_path="f", old_string="count", new_string="total")
            refused += output.is_error
            if output.is_error:
                assert "Read it again" in refusal(output) or "does not occur" in text(output)
    finally:
        stop.set()
        other.join()
    assert refused, "the race never happened, so this test has shown nothing"


@settings(max_examples=count(25, 800), deadline=None)
@given(
    before=st.text("ab\n é", max_size=12),
    old=st.text("ab\n é", min_size=1, max_size=5),
    after=st.text("ab\n é", max_size=12),
    new=st.text("xyz\n", max_size=5),
    windows=st.booleans(),
)
def test_around_a_unique_place_not_a_byte_changes(before: str, old: str, after: str, new: str, windows: bool) -> None:
    newline = "\r\n" if windows else "\n"
    whole = (before + old + after).replace("\n", newline)
    with tempfile.TemporaryDirectory() as folder:
        context = make_context(Path(folder))
        (context.cwd / "f").write_bytes(whole.encode())
        use(context, "Read", file_path="f")
        output = asyncio.run(Edit().run({"file_path": "f", "old_string": old, "new_string": new}, context))
        result = (context.cwd / "f").read_bytes().decode()
        if output.is_error:
            assert result == whole
        elif windows and "\r\n" not in whole:
            assert result == before + new + after  # a file of one line says nothing about line ends
        else:
            assert result == (before + new + after).replace("\n", newline)
