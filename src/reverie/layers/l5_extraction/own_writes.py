"""Finds calls of the main agent that change a memory: then it is saved already, and extraction skips the turn.

Write and Edit name their file; a shell command is read word by word, without running it. An unclear command does not
count as a write: the write gate refuses what would then be learnt twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from reverie.permissions.inside import is_inside
from reverie.permissions.shell.commands import all_commands
from reverie.permissions.shell.read_only import is_read_only_shell
from reverie.types import JsonObject, ToolUseBlock

_READERS: Final = frozenset(
    {"ls", "find", "grep", "rg", "cat", "stat", "wc", "head", "tail", "less", "diff", "sort", "file", "echo", "printf"}
)
"""Programs that change none of their files. Their output may still be redirected into one."""
_SAVING: Final = frozenset({"remember", "forget"})
_INTO = re.compile(r">[>|]?\s*(?:'([^']*)'|\"([^\"]*)\"|([^\s;&|<>()]+))")


@dataclass(frozen=True, slots=True)
class OwnWrites:
    """Recognises them by the memory directory and by the folder that relative paths start from."""

    root: Path
    cwd: Path
    home: Path

    def is_one(self, call: ToolUseBlock) -> bool:
        """Returns whether this call changed a memory, if it succeeded."""
        given: Any = call.input
        if not isinstance(given, dict):
            return False
        about = cast(JsonObject, given)
        match call.name:
            case "Write" | "Edit":
                return self._is_inside(str(about.get("file_path")))
            case "Bash":
                return self._changes(str(about.get("command") or ""))
            case _:
                return False

    def _changes(self, command: str) -> bool:
        if not self._may_mean_it(command) or is_read_only_shell(command):
            return False
        if any(self._is_inside(self._spelt(found[1] or found[2] or found[3])) for found in _INTO.finditer(command)):
            return True
        at = self.cwd
        for program, *rest in _commands(command):
            words = [at / self._spelt(word) for word in rest if word]
            if program == "reverie":
                if _SAVING & set(rest[:1]):
                    return True
            elif program == "cd":
                at = words[0] if words else self.home
            elif program not in _READERS and any(self._is_inside(str(path)) for path in (at, *words)):
                return True
        return self._is_inside(str(at)) and ">" in command

    def _may_mean_it(self, command: str) -> bool:
        """A cheap check first: a turn may have hundreds of commands."""
        return self.root.name in command or "reverie" in command or self.cwd.is_relative_to(self.root)

    def _spelt(self, word: str) -> str:
        """Returns a word with the home folder written out."""
        for short in ("~", "$HOME", "${HOME}"):
            if word == short or word.startswith(f"{short}/"):
                return f"{self.home}{word.removeprefix(short)}"
        return word

    def _is_inside(self, path: str) -> bool:
        return bool(path) and is_inside(str(self.cwd / path), self.root)


def _commands(command: str) -> Iterator[list[str]]:
    """Yields each simple command as its program's name and its words; words that only the shell knows are empty."""
    for one in all_commands(command):
        program, *rest = [word or "" for word in one.words] or [""]
        yield [program.rsplit("/", 1)[-1], *rest]
