"""MEMORY.md: one line per file, so that the user and the model see at a glance what is remembered. It is loaded within
two limits and changed one line at a time, so that headings, prose and order stay. Text in, text out."""

from __future__ import annotations

import posixpath
import re
from enum import StrEnum
from urllib.parse import quote, unquote

from reverie.quick import dataclass
from reverie.text.patterns import late

MAX_LINES = 200
MAX_BYTES = 25_000
LINE_CHARACTERS = 150

_LINES = late(r"[^\n]*\n|[^\n]+")
# An entry is a list item that begins with a link; titles may hold balanced brackets, targets are bare or in <>.
_TITLE = r"\[(?P<title>(?:[^\[\]\\\n]++|\\.|\[[^\[\]\n]*+\])*+)\]"
_TARGET = r"\((?:<(?P<angled>[^<>\n]*)>|(?P<bare>(?:[^()\s]++|\([^()\s]*+\))*+))(?:[ \t]+\"[^\"\n]*\")?\)"
_ENTRY = late(rf"(?P<lead>[ \t]*[-*+][ \t]+){_TITLE}{_TARGET}(?P<rest>[^\r\n]*)(?P<end>\r?\n?)")
_LINK = late(rf"(?<![!\\]){_TITLE}{_TARGET}")
_DASH = late(r"\A[ \t]*(?:—|–|--|-|:)?[ \t]*")

_SIMPLE = late(r"[\w-][\w.-]*\.md")
_SCHEME = late(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|/")


class Limit(StrEnum):
    """Which limit the whole index exceeds."""

    LINES = "lines"
    BYTES = "bytes"
    BOTH = "lines and bytes"


@dataclass(frozen=True, slots=True)
class LoadedIndex:
    """An index as the model sees it. `text` is cut to the limits and ends with a warning if it was cut; `lines` and
    `bytes` count the whole index."""

    text: str
    fired: Limit | None
    lines: int
    bytes: int


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One line that points to a file. `line` counts from 1; `file` is relative to the index's folder."""

    line: int
    file: str
    title: str
    hook: str
    text: str


def load_index(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> LoadedIndex:
    """The index within both limits, cut at a line end where possible."""
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
    what = {
        Limit.LINES: f"it has {lines:,} lines and only the first {max_lines:,} are loaded",
        Limit.BYTES: f"it has {size:,} bytes and only about {max_bytes:,} are loaded: its entries are too long",
        Limit.BOTH: f"it has {lines:,} lines and {size:,} bytes, and at most {max_lines:,} lines and {max_bytes:,} "
        "bytes are loaded",
    }[fired]
    return (
        f"> Note: this index is cut short, because {what}. Give every file one line of at most "
        f"{LINE_CHARACTERS} characters, and move detail into the files themselves."
    )


def index_line(title: str, file: str, hook: str) -> str:
    """The line for a file, `- [Title](file.md) — hook`; the hook is cut at a word so that the line stays short."""
    title = " ".join(title.split()) or file
    title = re.sub(r"([\[\]\\<`])" if _has_open_code(title) else r"([\[\]\\<])", r"\\\1", title)
    hook = " ".join(hook.split())
    start = f"- [{title}]({_as_target(file)})"
    room = LINE_CHARACTERS - len(start) - len(" — ")
    if len(hook) > room:
        cut = hook[: max(room - 1, 0)]
        hook = (cut.rpartition(" ")[0] or cut).rstrip(" ,;:—-")
        hook = f"{hook}…" if hook else ""
    return f"{start} — {hook}" if hook else start


def _has_open_code(title: str) -> bool:
    """Whether unpaired backticks would turn the link's end into code."""
    runs = [len(run) for run in re.findall(r"`+", title)]
    while runs:
        first, *runs = runs
        if first not in runs:
            return True
        runs = runs[runs.index(first) + 1 :]
    return False


def entries(text: str) -> tuple[IndexEntry, ...]:
    """Every line that is an entry, in order."""
    lines = _LINES.findall(text)
    return tuple(_entry(number + 1, entry) for number, entry in _numbered_entries(lines))


def entry_of(text: str, file: str) -> IndexEntry | None:
    """The first line that lists this file."""
    return next((entry for entry in entries(text) if entry.file == file), None)


def _entry(line: int, entry: re.Match[str]) -> IndexEntry:
    return IndexEntry(
        line=line,
        file=_file(entry) or "",
        title=re.sub(r"\\(.)", r"\1", entry["title"]),
        hook=_DASH.sub("", entry["rest"], count=1).strip(),
        text=entry[0].rstrip("\r\n"),
    )


def linked_files(text: str) -> frozenset[str]:
    """Every file that a link in the text points to, including links in prose."""
    return frozenset(file for match in _LINK.finditer(text) if (file := _file(match)))


def with_entry(text: str, file: str, title: str, hook: str) -> str:
    """The index with a line for this file: its present line is changed, else a line is added after the last."""
    line = index_line(title, file, hook)
    lines = _LINES.findall(text)
    own = [number for number, entry in _numbered_entries(lines) if _file(entry) == file]
    if own:
        entry = _ENTRY.fullmatch(lines[own[0]])
        assert entry is not None
        lines[own[0]] = entry["lead"] + line.removeprefix("- ") + entry["end"]
        return "".join(lines)
    end = "\r\n" if "\r\n" in text else "\n"
    last = max((number for number, _ in _numbered_entries(lines)), default=len(lines) - 1)
    if last >= 0 and not lines[last].endswith("\n"):
        lines[last] += end
    lead = "" if not lines or _ENTRY.fullmatch(lines[last]) or not lines[last].strip() else end
    lines.insert(last + 1, f"{lead}{line}{end}")
    return "".join(lines)


def follow_change(text: str, file: str, before: tuple[str, str] | None, after: tuple[str, str], hook: str = "") -> str:
    """The index after a file's name and description changed: its line is updated, or added if it is missing. A line
    that somebody worded differently stays, unless a hook is given."""
    own = entry_of(text, file)
    if own is not None and not hook:
        derived = index_line(before[0], file, before[1]) if before else ""
        if before == after or own.text.strip() != derived:
            return text
    return with_entry(text, file, after[0] or file.removesuffix(".md"), hook or after[1])


def without_entry(text: str, file: str) -> str:
    """The index without the lines for this file; links in prose stay."""
    lines = _LINES.findall(text)
    gone = {number for number, entry in _numbered_entries(lines) if _file(entry) == file}
    return "".join(line for number, line in enumerate(lines) if number not in gone)


def unlink(text: str, file: str) -> str:
    """The text with every link to this file replaced by its title."""
    return _LINK.sub(lambda match: match["title"] if _file(match) == file else match[0], text)


def _numbered_entries(lines: list[str]) -> list[tuple[int, re.Match[str]]]:
    return [(number, entry) for number, line in enumerate(lines) if (entry := _ENTRY.fullmatch(line)) and _file(entry)]


def _file(match: re.Match[str]) -> str | None:
    """The file of a link, or None if it leads elsewhere (the web, an anchor, out of the directory)."""
    target = match["angled"] if match["angled"] is not None else match["bare"]
    if _SIMPLE.fullmatch(target):
        return target
    if not target or _SCHEME.match(target):
        return None
    path = unquote(target.partition("#")[0])
    if not path.endswith(".md") or ".." in path.split("/"):
        return None
    return posixpath.normpath(path)


def _as_target(file: str) -> str:
    return re.sub(r"[\s()<>%#\"]", lambda found: quote(found[0], safe=""), file)
