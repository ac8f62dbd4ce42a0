"""MEMORY.md: one line per file, so that a person and a model see at a glance what is remembered.

Loaded within two limits, with a warning that says which one fired; changed one line at a time, so that headings, prose
and order, which are people's own, stay as they are. Text in, text out: it never touches the disk.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, unquote

MAX_LINES = 200
MAX_BYTES = 25_000
LINE_CHARACTERS = 150

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
# An entry is a list item that begins with a link; titles may hold balanced brackets, targets stand bare or in <>.
_TITLE = r"\[(?P<title>(?:[^\[\]\\\n]++|\\.|\[[^\[\]\n]*+\])*+)\]"
_TARGET = r"\((?:<(?P<angled>[^<>\n]*)>|(?P<bare>(?:[^()\s]++|\([^()\s]*+\))*+))(?:[ \t]+\"[^\"\n]*\")?\)"
_ENTRY = re.compile(rf"(?P<lead>[ \t]*[-*+][ \t]+){_TITLE}{_TARGET}(?P<rest>[^\r\n]*)(?P<end>\r?\n?)")
_LINK = re.compile(rf"(?<![!\\]){_TITLE}{_TARGET}")
_DASH = re.compile(r"\A[ \t]*(?:—|–|--|-|:)?[ \t]*")
_BACKTICKS = re.compile(r"`+")
_SIMPLE = re.compile(r"[\w-][\w.-]*\.md")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|/")


class Limit(StrEnum):
    """Which limit an index went over, judged on the whole of it."""

    LINES = "lines"
    BYTES = "bytes"
    BOTH = "lines and bytes"


@dataclass(frozen=True, slots=True)
class LoadedIndex:
    """An index as the model is shown it."""

    text: str
    """Cut to the limits, the warning behind it if one fired."""
    fired: Limit | None
    lines: int
    """Of the whole index, trimmed."""
    bytes: int


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One line that points to a file."""

    line: int
    """From 1."""
    file: str
    """Where it points, relative to the index's folder, as the file is called on disk."""
    title: str
    hook: str
    text: str
    """The whole line, without its end."""


def load_index(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> LoadedIndex:
    """The index within both limits, whole lines only where there are lines, never half a character."""
    trimmed = text.removeprefix("\ufeff").strip()
    lines = trimmed.split("\n")
    size = len(trimmed.encode("utf-8", "replace"))
    over_lines, over_bytes = len(lines) > max_lines, size > max_bytes
    if not over_lines and not over_bytes:
        return LoadedIndex(trimmed, None, len(lines) if trimmed else 0, size)
    kept = "\n".join(lines[:max_lines]).encode("utf-8", "replace")
    if len(kept) > max_bytes:
        newline = kept.rfind(b"\n", 0, max_bytes + 1)
        kept = kept[: newline if newline > 0 else max_bytes]
    shown = kept.decode("utf-8", "ignore").rstrip("\r")
    fired = Limit.BOTH if over_lines and over_bytes else Limit.LINES if over_lines else Limit.BYTES
    warning = _warning(fired, len(lines), size, max_lines, max_bytes)
    return LoadedIndex(f"{shown}\n\n{warning}", fired, len(lines), size)


def _warning(fired: Limit, lines: int, size: int, max_lines: int, max_bytes: int) -> str:
    match fired:
        case Limit.LINES:
            what = f"it has {lines:,} lines and only the first {max_lines:,} are loaded"
        case Limit.BYTES:
            what = f"it has {size:,} bytes and only about {max_bytes:,} are loaded: its entries are too long"
        case Limit.BOTH:
            what = (
                f"it has {lines:,} lines and {size:,} bytes, and at most {max_lines:,} lines "
                f"and {max_bytes:,} bytes are loaded"
            )
    return (
        f"> Note: this index is cut short, because {what}. Give every file one line of at most "
        f"{LINE_CHARACTERS} characters, and move detail into the files themselves."
    )


def index_line(title: str, file: str, hook: str) -> str:
    """The line for a file: `- [Title](file.md) — hook`, the hook cut at a word so that the line stays short."""
    title = " ".join(title.split()) or file
    title = re.sub(r"([\[\]\\<`])" if _has_open_code(title) else r"([\[\]\\<])", r"\\\1", title)
    hook = " ".join(hook.split())
    start = f"- [{title}]({_written(file)})"
    room = LINE_CHARACTERS - len(start) - len(" — ")
    if len(hook) > room:
        cut = hook[: max(room - 1, 0)]
        hook = (cut.rpartition(" ")[0] or cut).rstrip(" ,;:—-")
        hook = f"{hook}…" if hook else ""
    return f"{start} — {hook}" if hook else start


def _has_open_code(title: str) -> bool:
    """Whether backticks are left over that would take the link's end, and the hook, for code."""
    runs = [len(run) for run in _BACKTICKS.findall(title)]
    while runs:
        first, *runs = runs
        if first not in runs:
            return True
        runs = runs[runs.index(first) + 1 :]
    return False


def entries(text: str) -> tuple[IndexEntry, ...]:
    """Every line that is an entry, in order; people's own lines are not."""
    lines = _LINES.findall(text)
    return tuple(_entry(number + 1, entry) for number, entry in _numbered(lines))


def entry_of(text: str, file: str) -> IndexEntry | None:
    """The first line that lists this file."""
    for number, entry in _numbered(_LINES.findall(text)):
        if _file(entry) == file:
            return _entry(number + 1, entry)
    return None


def _entry(line: int, entry: re.Match[str]) -> IndexEntry:
    return IndexEntry(
        line=line,
        file=_file(entry) or "",
        title=re.sub(r"\\(.)", r"\1", entry["title"]),
        hook=_DASH.sub("", entry["rest"], count=1).strip(),
        text=entry[0].rstrip("\r\n"),
    )


def linked_files(text: str) -> frozenset[str]:
    """Every file that any link in the text points to, also inside prose."""
    return frozenset(file for match in _LINK.finditer(text) if (file := _file(match)))


def with_entry(text: str, file: str, title: str, hook: str) -> str:
    """The index with this file's line in it: the one it has is changed in place, else one is added behind the last."""
    line = index_line(title, file, hook)
    lines = _LINES.findall(text)
    own = [number for number, entry in _numbered(lines) if _file(entry) == file]
    if own:
        entry = _ENTRY.fullmatch(lines[own[0]])
        assert entry is not None
        lines[own[0]] = entry["lead"] + line.removeprefix("- ") + entry["end"]
        return "".join(lines)
    end = "\r\n" if "\r\n" in text else "\n"
    last = max((number for number, _ in _numbered(lines)), default=len(lines) - 1)
    if last >= 0 and not lines[last].endswith("\n"):
        lines[last] += end
    lead = "" if not lines or _ENTRY.fullmatch(lines[last]) or not lines[last].strip() else end
    lines.insert(last + 1, f"{lead}{line}{end}")
    return "".join(lines)


def following(text: str, file: str, before: tuple[str, str] | None, after: tuple[str, str], hook: str = "") -> str:
    """The index after a file's name and description changed: its line follows, or is added if it is missing.

    A line that a person has worded otherwise is left as it is, unless a hook is given.
    """
    own = entry_of(text, file)
    if own is not None and not hook:
        derived = index_line(before[0], file, before[1]) if before else ""
        if before == after or own.text.strip() != derived:
            return text
    return with_entry(text, file, after[0] or file.removesuffix(".md"), hook or after[1])


def without_entry(text: str, file: str) -> str:
    """The index without the lines that list this file; links to it inside prose stay."""
    lines = _LINES.findall(text)
    gone = {number for number, entry in _numbered(lines) if _file(entry) == file}
    return "".join(line for number, line in enumerate(lines) if number not in gone)


def unlinked(text: str, file: str) -> str:
    """The text with every link to this file replaced by its title, for prose that points to what is gone."""
    return _LINK.sub(lambda match: match["title"] if _file(match) == file else match[0], text)


def _numbered(lines: list[str]) -> list[tuple[int, re.Match[str]]]:
    return [(number, entry) for number, line in enumerate(lines) if (entry := _ENTRY.fullmatch(line)) and _file(entry)]


def _file(match: re.Match[str]) -> str | None:
    """The file a link means, or None if it leads elsewhere (the web, an anchor, out of the directory)."""
    target = match["angled"] if match["angled"] is not None else match["bare"]
    if _SIMPLE.fullmatch(target):
        return target
    if not target or _SCHEME.match(target):
        return None
    path = unquote(target.partition("#")[0])
    if not path.endswith(".md") or ".." in path.split("/"):
        return None
    return posixpath.normpath(path)


def _written(file: str) -> str:
    """A file name as a link target: bare where Markdown can read it so."""
    return re.sub(r"[\s()<>%#\"]", lambda found: quote(found[0], safe=""), file)
