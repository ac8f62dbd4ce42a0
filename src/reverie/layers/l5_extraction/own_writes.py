"""Whether a call of the main agent's changes a memory: then what it says was saved, and extraction leaves it alone.

Write and Edit say which file they mean; of a shell command it is read from its words, without running anything. Where
that cannot be told for sure it counts as no write: what is then learnt twice is refused as a double by the write gate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from reverie.permissions.memory_paths import is_inside
from reverie.permissions.shell.commands import all_commands
from reverie.permissions.shell.read_only import is_read_only_shell
from reverie.types import JsonObject, ToolUseBlock

_READERS: Final = frozenset(
    {"ls", "find", "grep", "rg", "cat", "stat", "wc", "head", "tail", "less", "diff", "sort", "file", "echo", "printf"}
)
"""Programs that change no file they are given; what they print may still be sent into one."""
_SAVING: Final = frozenset({"remember", "forget"})
_INTO = re.compile(r">[>|]?\s*(?:'([^']*)'|\"([^\"]*)\"|([^\s;&|<>()]+))")


@dataclass(frozen=True, slots=True)
class OwnWrites:
    """Knows them by where the memory directory is, and by what the paths in a call start from."""

    root: Path
    cwd: Path
    home: Path

    def is_one(self, call: ToolUseBlock) -> bool:
        """Whether this call, if it went well, changed a memory."""
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
        """A cheap look first: a turn may have hundreds of commands, and reading one word by word takes its time."""
        return self.root.name in command or "reverie" in command or self.cwd.is_relative_to(self.root)

    def _spelt(self, word: str) -> str:
        """A word with the home folder written out, as the shell would."""
        for short in ("~", "$HOME", "${HOME}"):
            if word == short or word.startswith(f"{short}/"):
                return f"{self.home}{word.removeprefix(short)}"
        return word

    def _is_inside(self, path: str) -> bool:
        return bool(path) and is_inside(str(self.cwd / path), self.root)


def _commands(command: str) -> Iterator[list[str]]:
    """Each simple command as its program's name and its other words; words only the shell can work out are empty."""
    for one in all_commands(command):
        program, *rest = [word or "" for word in one.words] or [""]
        yield [program.rsplit("/", 1)[-1], *rest]
