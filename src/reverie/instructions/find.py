"""Finds the possible instruction files in their order: managed, user, then from the root down to the cwd.

`load.py` decides which of them are read. `read_text` reads one regular file of limited size, and never raises.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from reverie.paths import Places
from reverie.quick import dataclass
from reverie.regular_files import open_regular
from reverie.settings.loading import MANAGED

NAMES = ("AGENTS.md", "CLAUDE.md")
LOCAL_NAMES = ("AGENTS.local.md", "CLAUDE.local.md")
HIDDEN = (".reverie", ".claude")
RULES = "rules"
MAX_RULES = 1_000
_MAX_RULE_DEPTH = 8


class InstructionScope(StrEnum):
    """Who a file comes from."""

    MANAGED = "managed"  # the administrator of this machine
    USER = "user"  # this user, in every project
    PROJECT = "project"  # everybody who works on the project; folders above it count too
    LOCAL = "local"  # this user, in this project


@dataclass(frozen=True, slots=True)
class InstructionCandidate:
    """A file that exists in a place for instructions."""

    path: Path
    scope: InstructionScope
    folder: Path  # the folder it applies to; patterns of a rule are relative to it
    rule: bool = False


def candidates(places: Places, managed_dir: Path | None = None) -> Iterator[InstructionCandidate]:
    """Yields every instruction file, the least specific first. `managed_dir` replaces `/etc/reverie`."""
    managed = managed_dir or MANAGED
    yield from _named(managed, NAMES, InstructionScope.MANAGED, places.checkout)
    yield from _rules(managed / RULES, InstructionScope.MANAGED, places.checkout)
    yield from _named(managed.parent / "claude-code", ("CLAUDE.md",), InstructionScope.MANAGED, places.checkout)
    yield from _named(places.home, NAMES, InstructionScope.USER, places.checkout)
    yield from _rules(places.home / RULES, InstructionScope.USER, places.checkout)
    for folder in reversed((places.cwd, *places.cwd.parents)):
        # A worktree inside its own repository has these files itself, in the version of its branch.
        if not _is_shadowed(folder, places):
            yield from _named(folder, NAMES, InstructionScope.PROJECT, folder)
            for hidden in HIDDEN:
                yield from _named(folder / hidden, NAMES, InstructionScope.PROJECT, folder)
            for hidden in HIDDEN:
                yield from _rules(folder / hidden / RULES, InstructionScope.PROJECT, folder)
        yield from _named(folder, LOCAL_NAMES, InstructionScope.LOCAL, folder)


def _is_shadowed(folder: Path, places: Places) -> bool:
    if places.checkout == places.root or not places.checkout.is_relative_to(places.root):
        return False
    return folder.is_relative_to(places.root) and not folder.is_relative_to(places.checkout)


def _named(
    where: Path, names: tuple[str, ...], scope: InstructionScope, folder: Path
) -> Iterator[InstructionCandidate]:
    for name in names:
        path = where / name
        if os.path.lexists(path) and not _is_folder(path):
            yield InstructionCandidate(path, scope, folder)


def _rules(where: Path, scope: InstructionScope, folder: Path) -> Iterator[InstructionCandidate]:
    if not _is_folder(where):
        return
    found: list[Path] = []
    seen: set[str] = set()

    def walk(here: Path, depth: int) -> None:
        real = os.path.realpath(here)
        if real in seen or depth > _MAX_RULE_DEPTH:
            return
        seen.add(real)
        try:
            with os.scandir(here) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in listed:
            if len(found) >= MAX_RULES or len(seen) > MAX_RULES:
                return
            is_folder = _is_folder(entry.path)
            if entry.name.endswith(".md") and not is_folder:
                found.append(Path(entry.path))
            elif is_folder and not entry.name.startswith("."):
                walk(Path(entry.path), depth + 1)

    walk(where, 0)
    yield from (InstructionCandidate(path, scope, folder, rule=True) for path in found)


def _is_folder(path: Path | str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 (False for any error, unlike Path.is_dir)


MAX_FILE_BYTES = 1_000_000  # larger files are not instructions


@dataclass(frozen=True, slots=True)
class ReadText:
    """The text of a file, or `problem`: why it cannot be used, as the end of a sentence."""

    text: str = ""
    problem: str = ""
    damaged: bool = False  # it contained bytes that are not UTF-8; each became a replacement character
    owner: int = 0


def read_text(path: Path, *, cut: bool = False) -> ReadText:
    """Reads a regular file and normalises line ends. With `cut`, a file that is too large is read up to the limit."""
    try:
        with os.fdopen(open_regular(path, follow=False), "rb") as file:
            owner, raw = os.fstat(file.fileno()).st_uid, file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        return ReadText(problem=f"cannot be read ({_reason(error)})")
    if len(raw) > MAX_FILE_BYTES and not cut:
        return ReadText(problem=f"is larger than {MAX_FILE_BYTES:,} bytes")
    if b"\0" in raw:
        return ReadText(problem="is not a text file")
    try:
        text, damaged = raw.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        text, damaged = raw.decode("utf-8-sig", "replace"), True
    return ReadText(text.replace("\r\n", "\n").replace("\r", "\n"), damaged=damaged, owner=owner)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
