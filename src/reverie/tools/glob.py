"""Glob: lists files by name pattern, the most recently changed first, without those git ignores.

ripgrep lists, the pattern decides: given to ripgrep itself, a pattern would bring ignored files back. Bounded in what
it collects and in what it shows.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from reverie.errors import ReverieError, UserError
from reverie.permissions.path_glob import compile_glob, split_literal
from reverie.tools.base import BuiltIn, ToolContext, ToolOutput
from reverie.tools.files import format_path, format_path_from
from reverie.tools.ripgrep import MAX_READ_BYTES, TIME_LIMIT_SECONDS, run_ripgrep
from reverie.tools.text_form import is_clean
from reverie.types import JsonObject

SHOWN_FILES = 100
_MAX_PATTERN_CHARS = 1_000
_PROPERTIES: JsonObject = {
    "pattern": {"type": "string", "description": "The pattern to match, such as **/*.py"},
    "path": {"type": "string", "description": "The folder to start from"},
}


@dataclass(frozen=True)
class Glob(BuiltIn, prompt="glob.md", properties=_PROPERTIES, required=["pattern"], reads_only=True):
    """The Glob tool. At most `shown_files` are returned, the newest."""

    shown_files: int = SHOWN_FILES
    timeout_s: float = TIME_LIMIT_SECONDS

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        try:
            folder, rest, anchored = _find_start(given["pattern"], given.get("path"), context)
            matcher = compile_glob(rest, anchored=anchored)
            real = context.map_path(folder)
            if not real.is_dir():
                raise UserError(f"{format_path(folder)} is not a folder: give one that exists, or leave path out.")
            listed = await run_ripgrep(
                ["--no-config", "--files", "--hidden", "--glob=!.git", "--null"], real, lambda _: False, self.timeout_s
            )
        except ReverieError as error:
            return ToolOutput(str(error), is_error=True)
        except ValueError as error:
            return ToolOutput(f"The pattern {given['pattern']} cannot be used: {error}.", is_error=True)
        if listed.code == 2 and not listed.data and listed.complaint:
            return ToolOutput(f"The files could not be listed: {listed.complaint.removeprefix('rg: ')}", is_error=True)
        names = [os.fsdecode(raw) for raw in listed.data.split(b"\0")[:-1]]
        found = await asyncio.to_thread(
            lambda: _sort_newest_first(real, [name for name in names if matcher.matches(name)])
        )
        lines = [format_path_from(folder / name, context.cwd) for name in found[: self.shown_files]]
        if not found:
            lines.append("No files found (files ignored by git are not listed).")
        if len(found) > self.shown_files:
            lines.append(f"[The newest {self.shown_files} of {len(found):,} files are shown: narrow the pattern.]")
        if listed.stopped or listed.late:
            why = f"the list exceeds {MAX_READ_BYTES:,} bytes" if listed.stopped else "it took too long"
            lines.append(f"[Not all files were looked at, because {why}: start from a folder further down.]")
        cut = len(found) > self.shown_files or listed.stopped
        structured = {"numFiles": min(len(found), self.shown_files), "truncated": cut}
        return ToolOutput("\n".join(lines), structured=structured)


def _find_start(pattern: str, path: str | None, context: ToolContext) -> tuple[Path, str, bool]:
    """The folder to list, the pattern from there, and whether it is bound to that folder."""
    if not pattern or len(pattern) > _MAX_PATTERN_CHARS or "\0" in pattern or not is_clean(pattern):
        raise UserError(f"{pattern[:50]!a} is not a pattern: give one such as src/**/*.py.")
    if path is not None and ("\0" in path or not is_clean(path)):
        raise UserError(f"{path!a} is not a path: give the path of a folder.")
    folder, rest = split_literal(pattern)
    try:
        base = context.resolve(path) if path else context.cwd
        prefix = Path(folder).expanduser()
    except RuntimeError as error:
        raise UserError(f"{path or folder} names a home folder that is not there: give an absolute path.") from error
    return Path(os.path.normpath(base / prefix)), rest, "/" in pattern


def _sort_newest_first(folder: Path, names: list[str]) -> list[str]:
    def age(name: str) -> tuple[int, str]:
        try:
            return -(folder / name).lstat().st_mtime_ns, name
        except OSError:
            return 0, name  # gone meanwhile: last

    return sorted(names, key=age)
