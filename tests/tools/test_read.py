"""Read: lines with numbers, limits that say how to go on, and what is not text."""

from __future__ import annotations

import base64
import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.tools.base import ToolContext
from reverie.tools.read import Read
from reverie.types import ImageBlock
from tests.counts import count
from tests.tools.calls import make_context, refusal, text, use

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def test_lines_are_numbered_and_the_file_is_remembered(context: ToolContext) -> None:
    file = context.cwd / "a.txt"
    file.write_text("one\n\ntwo")
    output = use(context, "Read", file_path="a.txt")
    assert text(output) == "     1\tone\n     2\t\n     3\ttwo"
    assert output.structured["file"] == {"filePath": str(file), "numLines": 3, "startLine": 1, "totalLines": 3}
    seen = context.read_cache.get(file)
    assert seen and not seen.partial and seen.size == 8 and seen.order == 1


def test_a_range_of_a_long_file(context: ToolContext) -> None:
    (context.cwd / "long").write_text("".join(f"line {n}\n" for n in range(1, 10_001)))
    output = text(use(context, "Read", file_path="long", offset=5_000, limit=3))
    assert output.splitlines()[:3] == ["  5000\tline 5000", "  5001\tline 5001", "  5002\tline 5002"]
    assert output.splitlines()[3] == "[Lines 5,000 to 5,002 of 10,000 shown; continue with offset 5003.]"
    seen = context.read_cache.get(context.cwd / "long")
    assert seen and seen.partial


def test_a_long_file_is_cut_after_2000_lines(context: ToolContext) -> None:
    (context.cwd / "long").write_text("x\n" * 10_000)
    lines = text(use(context, "Read", file_path="long")).splitlines()
    assert len(lines) == 2_001
    assert lines[-1] == "[Lines 1 to 2,000 of 10,000 shown; continue with offset 2001.]"
    whole = text(use(context, "Read", file_path="long", limit=9_999)).splitlines()
    assert whole == lines


def test_the_last_lines_say_nothing_of_more(context: ToolContext) -> None:
    (context.cwd / "f").write_text("a\nb\nc\n")
    assert text(use(context, "Read", file_path="f", offset=2)) == "     2\tb\n     3\tc"
    assert text(use(context, "Read", file_path="f", offset=0)).startswith("     1\ta")


def test_an_offset_behind_the_end(context: ToolContext) -> None:
    (context.cwd / "f").write_text("a\nb\n")
    assert "has only 2 lines" in refusal(use(context, "Read", file_path="f", offset=3))


def test_a_long_line_is_cut_and_says_so(context: ToolContext) -> None:
    (context.cwd / "f").write_text("é" * 5_000 + "\nnext\n")
    first, second = text(use(context, "Read", file_path="f")).splitlines()
    assert first == f"     1\t{'é' * 2_000}… [3,000 more characters in this line]"
    assert second == "     2\tnext"
    seen = context.read_cache.get(context.cwd / "f")
    assert seen and seen.partial


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
@pytest.mark.parametrize("length", [1_999, 2_000, 2_001, 2_002, 2_003, 70_000])
def test_lines_around_the_limit(context: ToolContext, length: int, ending: str) -> None:
    (context.cwd / "f").write_bytes(b"x" * length + ending.encode() + b"tail")
    lines = text(use(context, "Read", file_path="f")).splitlines()
    tail = 0 if ending else 4
    more = length + tail - 2_000
    if more > 0:
        assert lines[0].endswith(f"… [{more:,} more characters in this line]")
        assert len(lines[0].split("…")[0]) == 2_007
    else:
        assert lines[0].removeprefix("     1\t") == "x" * length + "tail" * (not ending)
    if ending:
        assert lines[1] == "     2\ttail"


def test_a_large_file_needs_a_range(context: ToolContext) -> None:
    (context.cwd / "big").write_text(("x" * 99 + "\n") * 3_000)
    sentence = refusal(use(context, "Read", file_path="big"))
    assert "300,000 bytes" in sentence and "offset and limit" in sentence and "Grep" in sentence
    assert context.read_cache.get(context.cwd / "big") is None
    part = text(use(context, "Read", file_path="big", offset=2_990, limit=20))
    assert len(part.splitlines()) == 11


def test_a_range_too_is_bounded_in_bytes(context: ToolContext) -> None:
    (context.cwd / "big").write_text(("x" * 1_000 + "\n") * 3_000)
    output = text(use(context, "Read", file_path="big", offset=1, limit=2_000))
    assert len(output) < 270_000
    last = output.splitlines()[-2].split("\t")[0].strip()
    assert f"continue with offset {int(last) + 1}" in output.splitlines()[-1]


def test_a_huge_file_is_not_held_in_memory(context: ToolContext) -> None:
    with (context.cwd / "huge").open("wb") as file:
        file.write(b"first\nsecond\n" + b"x" * 10_000)
        file.seek(3_000_000_000)
        file.write(b"end")
    output = text(use(context, "Read", file_path="huge", offset=2, limit=1))
    assert output.splitlines() == ["     2\tsecond", "[Lines 2 to 2 shown; continue with offset 3.]"]


def test_an_empty_file(context: ToolContext) -> None:
    (context.cwd / "empty").touch()
    output = use(context, "Read", file_path="empty")
    assert not output.is_error and text(output).endswith("empty is empty.")
    assert context.read_cache.get(context.cwd / "empty")


def test_invalid_utf8_is_shown_and_said(context: ToolContext) -> None:
    (context.cwd / "latin").write_bytes(b"caf\xe9\nfine\n")
    lines = text(use(context, "Read", file_path="latin")).splitlines()
    assert lines == ["     1\tcaf\ufffd", "     2\tfine", "[Bytes that are not valid UTF-8 are shown as \ufffd.]"]
    (context.cwd / "honest").write_text("caf\ufffd\n")  # the character itself is no error
    assert text(use(context, "Read", file_path="honest")) == "     1\tcaf\ufffd"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_and_windows_line_ends_are_not_shown(context: ToolContext, encoding: str) -> None:
    (context.cwd / "w").write_bytes("a\r\né\r\n".encode(encoding))
    assert text(use(context, "Read", file_path="w")) == "     1\ta\n     2\té"


@pytest.mark.parametrize(
    ("start", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89arest", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_an_image_by_its_content(context: ToolContext, start: bytes, media_type: str) -> None:
    (context.cwd / "picture.txt").write_bytes(start)
    output = use(context, "Read", file_path="picture.txt")
    assert not output.is_error and isinstance(output.content, tuple)
    (image,) = output.content
    assert isinstance(image, ImageBlock)
    assert image.source["media_type"] == media_type
    assert base64.b64decode(image.source["data"]) == start


def test_an_image_too_large_for_the_api(context: ToolContext) -> None:
    (context.cwd / "large.png").write_bytes(PNG + bytes(4_000_000))
    assert "smaller copy" in refusal(use(context, "Read", file_path="large.png"))


def test_what_is_not_text_is_named(context: ToolContext) -> None:
    (context.cwd / "doc").write_bytes(b"%PDF-1.7\n...")
    assert "is a PDF" in refusal(use(context, "Read", file_path="doc"))
    (context.cwd / "program").write_bytes(b"\x7fELF\0\0\0")
    assert "binary file of 7 bytes" in refusal(use(context, "Read", file_path="program"))
    (context.cwd / "fake.png").write_text("no image")
    assert text(use(context, "Read", file_path="fake.png")) == "     1\tno image"


def test_folders_pipes_sockets_and_devices_do_not_hang(context: ToolContext) -> None:
    assert "is a folder" in refusal(use(context, "Read", file_path="."))
    os.mkfifo(context.cwd / "pipe")
    assert "is a named pipe" in refusal(use(context, "Read", file_path="pipe"))
    assert "is a device" in refusal(use(context, "Read", file_path="/dev/zero"))
    with socket.socket(socket.AF_UNIX) as listening, tempfile.TemporaryDirectory(dir="/tmp") as short:
        listening.bind(f"{short}/s")
        refusal(use(context, "Read", file_path=f"{short}/s"))


def test_a_file_of_the_kernel_reports_no_size(context: ToolContext) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    assert "Name:" in text(use(context, "Read", file_path="/proc/self/status"))


def test_a_missing_file_and_a_near_name(context: ToolContext) -> None:
    (context.cwd / "settings.py").touch()
    assert refusal(use(context, "Read", file_path="setings.py")).endswith(
        "did you mean " + str(context.cwd / "settings.py?")
    )
    assert "find it with Glob" in refusal(use(context, "Read", file_path="zzz"))
    assert "folder" in refusal(use(context, "Read", file_path="nowhere/x.py"))


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", "~no_such_user_here/x", "x" * 300, "a/" * 3_000 + "b"])
def test_what_cannot_be_a_path(context: ToolContext, path: str) -> None:
    refusal(use(context, "Read", file_path=path))


def test_a_loop_of_links(context: ToolContext) -> None:
    (context.cwd / "a").symlink_to("b")
    (context.cwd / "b").symlink_to("a")
    assert "loop" in refusal(use(context, "Read", file_path="a"))


@pytest.mark.parametrize("name", ["new\nline", "ünï©ode-日本", " lead", "tab\t", "quote'\"", "-rf", "*", "\u202egnp"])
def test_odd_names(context: ToolContext, name: str) -> None:
    (context.cwd / name).write_text("here")
    assert text(use(context, "Read", file_path=name)) == "     1\there"


def test_a_link_and_its_target_are_one_file(context: ToolContext) -> None:
    (context.cwd / "target").write_text("x")
    (context.cwd / "link").symlink_to("target")
    use(context, "Read", file_path="link")
    assert context.read_cache.get(context.cwd / "target")


def test_a_mapped_path_is_read_from_the_copy_and_shown_as_itself(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    context = make_context(tmp_path, map_path=lambda path: copy / path.name)
    (copy / "a.txt").write_text("from the copy")
    output = use(context, "Read", file_path="a.txt")
    assert text(output) == "     1\tfrom the copy"
    assert output.structured["file"]["filePath"] == str(context.cwd / "a.txt")
    assert context.read_cache.newest() == [context.cwd / "a.txt"]
    assert str(copy) not in refusal(use(context, "Read", file_path="b.txt"))


def test_seeing_a_part_again_does_not_forget_the_whole(context: ToolContext) -> None:
    file = context.cwd / "f"
    file.write_text("a\nb\n")
    use(context, "Read", file_path="f")
    use(context, "Read", file_path="f", limit=1)
    seen = context.read_cache.get(file)
    assert seen and not seen.partial
    file.write_text("a\nc\n")
    use(context, "Read", file_path="f", limit=1)
    seen = context.read_cache.get(file)
    assert seen and seen.partial


@settings(max_examples=count(20, 600), deadline=None)
@given(
    lines=st.lists(
        st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=30), max_size=40
    ),
    offset=st.integers(1, 45),
    limit=st.integers(1, 45),
)
def test_any_range_is_that_slice_of_the_lines(lines: list[str], offset: int, limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        context = make_context(Path(folder))
        content = "\n".join(["start", *lines])
        if "\0" in content or content.startswith("\ufeff"):
            return
        (context.cwd / "f").write_text(content, "utf-8", newline="")
        wanted = content.split("\n")
        if wanted[-1] == "":
            wanted.pop()
        output = use(context, "Read", file_path="f", offset=offset, limit=limit)
        if offset > len(wanted):
            refusal(output)
            return
        shown = [line.split("\t", 1) for line in text(output).split("\n") if not line.startswith("[Lines ")]
        part = wanted[offset - 1 : offset - 1 + limit]
        assert [line for _, line in shown] == part
        assert [int(number) for number, _ in shown] == list(range(offset, offset + len(part)))


def test_limits_scale_without_changing_the_schema() -> None:
    assert Read(max_lines=10, max_bytes=1_000).schema == Read().schema
