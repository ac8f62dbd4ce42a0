"""Grep: searches the content of files with ripgrep and shows matches, paths or counts, limited and in a fixed order.

Paths are relative to the working folder, even if the folder is mapped to a copy. It skips files that git ignores and
files whose name suggests secrets, unless `path` names them. A long line is shown around its first match, which is
searched in pieces of 1 MB.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.regular_files import open_regular
from reverie.tools.base import BuiltIn, ToolContext, ToolOutput
from reverie.tools.files import format_path, format_path_from, resolve
from reverie.tools.ripgrep import TIME_LIMIT_SECONDS, SearchOutput, find_first_match, make_listing_options, run_ripgrep
from reverie.tools.text_form import is_clean
from reverie.types import JsonObject

DEFAULT_HEAD_LIMIT = 250
SHOWN_BYTES = 500
_PIECE = 1 << 20
_OVERLAP = 4_096
_MOST_LINES = 20
_MOST_PIECES = 300
_OMITTED = b" [... omitted end of long line]"  # ripgrep's own words
_BINARY = b": binary file matches (found"
_LINE = re.compile(rb"(?P<number>\d+)(?P<mark>[:-])(?P<at>\d+)(?P=mark)(?P<text>.*)", re.DOTALL)
_MAX_OUTPUT_BYTES = 400_000
_PROPERTIES: JsonObject = {
    "pattern": {"type": "string", "description": "The regular expression to search for"},
    "path": {"type": "string", "description": "The file or folder to search in"},
    "glob": {"type": "string", "description": "Only files whose path matches, such as *.{ts,tsx}"},
    "type": {"type": "string", "description": "Only files of a type that ripgrep knows, such as py, rust, md"},
    "output_mode": {
        "type": "string",
        "enum": ["content", "files_with_matches", "count"],
        "description": "What to return (default files_with_matches)",
    },
    "-A": {"type": "integer", "minimum": 0, "description": "Lines to show after each match"},
    "-B": {"type": "integer", "minimum": 0, "description": "Lines to show before each match"},
    "-C": {"type": "integer", "minimum": 0, "description": "Lines to show before and after each match"},
    "context": {"type": "integer", "minimum": 0, "description": "The same as -C"},
    "-n": {"type": "boolean", "description": "Show line numbers (default true)"},
    "-i": {"type": "boolean", "description": "Ignore case"},
    "head_limit": {"type": "integer", "minimum": 0, "description": "The most lines or entries to show"},
    "offset": {"type": "integer", "minimum": 0, "description": "How many lines or entries to skip first"},
    "multiline": {"type": "boolean", "description": "Let matches span lines"},
}


@dataclass(frozen=True, slots=True)
class _Target:
    """Where to search: the folder for ripgrep, what to search in it, and how results show its paths."""

    cwd: Path
    operand: str
    shown: Callable[[str], str]


@dataclass(frozen=True)
class Grep(BuiltIn, prompt="grep.md", properties=_PROPERTIES, required=["pattern"], reads_only=True):
    """The Grep tool."""

    timeout_s: float = TIME_LIMIT_SECONDS

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        mode = given.get("output_mode", "files_with_matches")
        limit, offset = int(given.get("head_limit", DEFAULT_HEAD_LIMIT)), int(given.get("offset", 0))
        wanted = offset + limit if limit else sys.maxsize
        target = _find_target(given.get("path"), context)
        _check_text(given)
        searched = await run_ripgrep(_options(given, mode, target), target.cwd, _make_enough(wanted), self.timeout_s)
        if searched.code == 2 and not searched.data:
            raise UserError(f"The search failed: {_join_lines(searched.complaint)}")
        entries = _read_entries(mode, searched.data, target, numbered=bool(given.get("-n", True)))
        page = entries[offset : offset + limit] if limit else entries[offset:]
        page, cut = _cut_to_bytes(await cut_long_lines(page, _matching_options(given), self.timeout_s))
        more = cut or len(entries) > offset + len(page) or searched.stopped
        structured = {"mode": mode, "numLines" if mode == "content" else "numFiles": len(page)}
        return ToolOutput("\n".join([*page, *_make_notes(searched, page, more, mode)]), structured=structured)


def _find_target(given: str | None, context: ToolContext) -> _Target:
    path = resolve(given, context, "file or folder") if given else context.cwd
    real = context.map_path(path)
    if real.is_dir():
        return _Target(real, "./", lambda name: format_path_from(path / name.removeprefix("./"), context.cwd))
    if not real.exists():
        raise UserError(
            f"{format_path(path)} does not exist: check the path, or leave it out to search the working folder."
        )
    if not real.is_file():
        raise UserError(f"{format_path(path)} is not a file or a folder: Grep searches only those.")
    return _Target(real.parent, f"./{real.name}", lambda _name: format_path_from(path, context.cwd))


def _check_text(given: JsonObject) -> None:
    for key in ("pattern", "glob", "type"):
        value = given.get(key, "")
        if "\0" in value or not is_clean(value):
            raise UserError(
                f"{key} holds a character that cannot be searched for: write it as an escape such as \\x00."
            )


def _options(given: JsonObject, mode: str, target: _Target) -> list[str]:
    options = [f"--glob={given['glob']}"] if given.get("glob") else []
    options += make_listing_options(target.cwd)  # after the caller's glob, because the last one that matches decides
    if given.get("type"):
        options.append(f"--type={given['type']}")
    options += _matching_options(given)
    match mode:
        case "content":
            around = given.get("-C", given.get("context"))
            before, after = given.get("-B", around), given.get("-A", around)
            # Never `--json`: it holds whole lines with all their matches in memory, even very long ones.
            options += ["--no-heading", "--with-filename", "--null", "--line-number", "--byte-offset", "--sort=path"]
            options += [f"--max-columns={SHOWN_BYTES}", "--max-columns-preview"]
            options += [f"--before-context={before}"] if before else []
            options += [f"--after-context={after}"] if after else []
        case "count":
            options += ["--count", "--null", "--with-filename", "--sort=path"]
        case _:
            options += ["--files-with-matches", "--null", "--sortr=modified"]
    return [*options, "--", target.operand]


def _matching_options(given: JsonObject) -> list[str]:
    options = [f"--regexp={given['pattern']}"]
    options += ["--ignore-case"] if given.get("-i") else []
    return [*options, "--multiline", "--multiline-dotall"] if given.get("multiline") else options


def _make_enough(wanted: int) -> Callable[[bytes], bool]:
    """Returns a check that stops the search after `wanted` entries and one more, which shows that there is more."""
    seen = 0

    def enough(chunk: bytes) -> bool:
        nonlocal seen
        seen += chunk.count(b"\0")
        return seen > wanted

    return enough


def _read_entries(mode: str, data: bytes, target: _Target, *, numbered: bool) -> Sequence[str | LongLine]:
    match mode:
        case "content":
            return _read_matching_lines(data, target, numbered=numbered)
        case "count":  # path NUL count LF path NUL count LF …: names may hold line ends, so split at NUL
            pieces = data.split(b"\0")
            paths = [pieces[0], *(piece.partition(b"\n")[2] for piece in pieces[1:])]
            counts = [piece.partition(b"\n")[0].decode() for piece in pieces[1:]]
            return [f"{target.shown(os.fsdecode(path))}:{count}" for path, count in zip(paths, counts, strict=False)]
        case _:
            return [target.shown(os.fsdecode(path)) for path in data.split(b"\0")[:-1]]


def _read_matching_lines(data: bytes, target: _Target, *, numbered: bool) -> list[str | LongLine]:
    """`path:12:text` for a match, `path-11-text` for a line around it, `--` between groups."""
    out: list[str | LongLine] = []
    pending: list[bytes] = []  # a name may hold line ends: everything before its NUL belongs to it
    shown_path = cache(target.shown)
    for raw in data.split(b"\n")[:-1]:  # the text after the last line end is incomplete
        name, nul, rest = raw.partition(b"\0")
        found = _LINE.match(rest) if nul else None
        if found is None:
            if raw == b"--" and not pending:
                out.append("--")
            elif _BINARY not in raw:
                pending.append(raw)
            continue
        real = os.fsdecode(b"\n".join([*pending, name]))
        pending = []
        mark, text = found["mark"].decode(), found["text"].removesuffix(b"\r")
        path = shown_path(real)
        lead = f"{path}{mark}{int(found['number'])}{mark}" if numbered else f"{path}{mark}"
        if not text.endswith(_OMITTED):
            out.append(lead + text.decode("utf-8", "replace"))
            continue
        shown = text.removesuffix(_OMITTED).decode("utf-8", "replace") + "…"
        is_match = mark == ":"
        out.append(LongLine(target.cwd / real, int(found["at"]), lead, shown) if is_match else lead + shown)
    return out


def _cut_to_bytes(entries: list[str]) -> tuple[list[str], bool]:
    size = 0
    for index, entry in enumerate(entries):
        size += len(entry.encode("utf-8", "replace")) + 1
        if size > _MAX_OUTPUT_BYTES:
            return entries[:index], True
    return entries, False


def _make_notes(searched: SearchOutput, page: list[str], more: bool, mode: str) -> list[str]:
    notes: list[str] = []
    if searched.late:
        notes.append("[The search was stopped at its time limit: narrow it with path or glob.]")
    elif more and page:
        notes.append("[There is more: narrow the pattern, or continue with offset and head_limit.]")
    elif not page:
        notes.append("No matches found." if mode != "files_with_matches" else "No files found.")
    if searched.code == 2 and searched.complaint and not searched.stopped:
        notes.append(f"[Some files could not be searched: {_join_lines(searched.complaint)}]")
    return notes


def _join_lines(complaint: str) -> str:
    """Puts an error message of several lines on one line, without the name of the program."""
    return " ".join(line.strip() for line in complaint.removeprefix("rg: ").splitlines() if line.strip())[:500]


@dataclass(frozen=True, slots=True)
class LongLine:
    """A matching line that is too long to show: its file, its position there, and the text to show before it."""

    path: Path
    start: int
    lead: str
    beginning: str


async def cut_long_lines(entries: Sequence[str | LongLine], options: list[str], timeout_s: float) -> list[str]:
    """Returns the entries as text and cuts long lines around their first match for `options`."""
    out: list[str] = []
    lines = pieces = 0
    for entry in entries:
        if isinstance(entry, str):
            out.append(entry)
            continue
        lines += 1
        found = None
        if lines <= _MOST_LINES and pieces < _MOST_PIECES:
            found, used = await _find_around(entry, options, _MOST_PIECES - pieces, timeout_s)
            pieces += used
        out.append(entry.lead + (found or entry.beginning))
    return out


async def _find_around(line: LongLine, options: list[str], most: int, timeout_s: float) -> tuple[str | None, int]:
    """Returns the text around the first match, if it is found, and how many pieces were searched."""
    with suppress(OSError):
        fd = open_regular(line.path)
        try:
            at, step = line.start, 0
            while step < most and (piece := os.pread(fd, _PIECE, at)):
                step += 1
                piece, ended, _ = piece.partition(b"\n")
                match = await find_first_match(options, piece, timeout_s)
                if match is not None:
                    return _read_around(fd, line.start, at + match), step
                if ended or len(piece) <= _OVERLAP:
                    break
                at += len(piece) - _OVERLAP
            return None, step
        finally:
            os.close(fd)
    return None, 0


def _read_around(fd: int, start: int, match: int) -> str:
    first = max(start, match - SHOWN_BYTES // 4)
    piece, ended, _ = os.pread(fd, SHOWN_BYTES, first).partition(b"\n")
    more = not ended and os.pread(fd, 1, first + len(piece)) not in (b"", b"\n")
    return f"{'…' if first > start else ''}{piece.decode('utf-8', 'replace')}{'…' if more else ''}"
