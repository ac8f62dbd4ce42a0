"""Grep and Read on lines of many megabytes: the right answer, cut around the match, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import count
from tests.tools.calls import make_context, text, use

MB = 1_000_000

_SEARCH = """
import asyncio, json, resource, sys
from pathlib import Path
from tests.tools.calls import make_context, text, use
from reverie.tools.registry import make_builtin_tools
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
name, given = sys.argv[2], json.loads(sys.argv[3])
found = text(use(make_context(Path(sys.argv[1])), name, **given))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"text": found, "kb": after - before}))
"""


def apart(root: Path, name: str, **given: object) -> tuple[str, float]:
    """A tool's answer in a process of its own, and the megabytes that process needed for it."""
    done = subprocess.run(
        [sys.executable, "-c", _SEARCH, str(root), name, json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    told = json.loads(done.stdout)
    return told["text"], told["kb"] / 1_000


@pytest.mark.soak
def test_a_line_of_many_megabytes_takes_little_memory_and_shows_its_match(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    size = count(20, 100) * MB
    (work / "long.txt").write_bytes(b"head\n" + b"x" * (size * 3 // 4) + b"NEEDLE" + b"y" * (size // 4) + b"\nend\n")
    found, megabytes = apart(tmp_path, "Grep", pattern="NEEDLE", output_mode="content", **{"-C": 1})
    assert megabytes < 40
    before, line, after = found.splitlines()
    assert before == "long.txt-1-head" and after == "long.txt-3-end"
    assert line.startswith("long.txt:2:…x") and "xNEEDLEy" in line and line.endswith("y…") and len(line) < 600


def test_many_matches_on_one_long_line_are_one_short_line(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    (context.cwd / "a.txt").write_bytes(b"ab" * (2 * MB))
    found = text(use(context, "Grep", pattern="a", output_mode="content"))
    assert found.startswith("a.txt:1:abab") and found.endswith("…") and len(found) < 600


@pytest.mark.parametrize("more", [{}, {"multiline": True}, {"-i": True}, {"-n": False}])
def test_every_way_of_asking_finds_the_match_in_a_long_line(tmp_path: Path, more: dict[str, bool]) -> None:
    context = make_context(tmp_path)
    (context.cwd / "a.bin.txt").write_bytes(b"\xf1\xfe1" * MB + b"needle" + b"\x80" * MB + b"\n")
    found = text(use(context, "Grep", pattern="needle", output_mode="content", **more))
    assert "No matches" not in found and "needle" in found and len(found) < 2_000


def test_a_match_longer_than_any_piece_shows_the_beginning(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    (context.cwd / "a.txt").write_bytes(b"<" + b"z" * (3 * MB) + b">\n")
    found = text(use(context, "Grep", pattern="^<z+>$", output_mode="content"))
    assert found.startswith("a.txt:1:<zzz") and found.endswith("…")


def test_names_with_line_ends_and_long_context_lines(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    (context.cwd / "a\nb.txt").write_bytes(b"c" * MB + b"\nhit\n" + b"d" * MB + b"\n")
    found = text(use(context, "Grep", pattern="hit", output_mode="content", **{"-C": 1})).splitlines()
    assert found[0].startswith("a\\nb.txt-1-ccc") and found[0].endswith("…")
    assert found[1] == "a\\nb.txt:2:hit" and found[2].startswith("a\\nb.txt-3-ddd")
