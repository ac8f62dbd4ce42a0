"""Glob: lists files by name pattern, the most recently changed first, without files that git ignores.

ripgrep lists the files, and our own pattern filters them: ripgrep's `--glob` would bring ignored files back.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from reverie.errors import UserError
from reverie.permissions.path_glob import compile_glob, split_literal
from reverie.quick import dataclass
from reverie.tools.base import BuiltIn, ToolContext, ToolOutput
from reverie.tools.files import format_path, format_path_from, resolve
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
    """The Glob tool. It returns at most `shown_files` files, the newest."""

    shown_files: int = SHOWN_FILES
    timeout_s: float = TIME_LIMIT_SECONDS

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        folder, rest, anchored = _find_start(given["pattern"], given.get("path"), context)
        try:
            matcher = compile_glob(rest, anchored=anchored)
        except ValueError as error:
            raise UserError(f"The pattern {given['pattern']} cannot be used: {error}.") from error
        real = context.map_path(folder)
        if not real.is_dir():
            raise UserError(f"{format_path(folder)} is not a folder: give one that exists, or leave path out.")
        listed = await run_ripgrep(
            ["--no-config", "--files", "--hidden", "--glob=!.git", "--null"], real, lambda _: False, self.timeout_s
        )
        if listed.code == 2 and not listed.data and listed.complaint:
            raise UserError(f"The files could not be listed: {listed.complaint.removeprefix('rg: ')}")
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
            lines.append(f"[Not all files were checked, because {why}: start from a deeper folder.]")
        cut = len(found) > self.shown_files or listed.stopped
        structured = {"numFiles": min(len(found), self.shown_files), "truncated": cut}
        return ToolOutput("\n".join(lines), structured=structured)


def _find_start(pattern: str, path: str | None, context: ToolContext) -> tuple[Path, str, bool]:
    """Returns the folder to list, the pattern from there, and whether the pattern is anchored there."""
    if not pattern or len(pattern) > _MAX_PATTERN_CHARS or "\0" in pattern or not is_clean(pattern):
        raise UserError(f"{pattern[:50]!a} is not a pattern: give one such as src/**/*.py.")
    base = resolve(path, context, "folder") if path else context.cwd
    folder, rest = split_literal(pattern)
    start = resolve(folder, replace(context, cwd=base), "folder") if folder else base
    return Path(os.path.normpath(start)), rest, "/" in pattern


def _sort_newest_first(folder: Path, names: list[str]) -> list[str]:
    def age(name: str) -> tuple[int, str]:
        try:
            return -(folder / name).lstat().st_mtime_ns, name
        except OSError:
            return 0, name  # deleted meanwhile: last

    return sorted(names, key=age)
