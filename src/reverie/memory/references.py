"""Which files of the repository a memory names, and which of them are missing. Only names written as code count
(`src/app.py`, `app.py:12`), and only names that can be files of this repository. It reads names, never contents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

_CODE = re.compile(r"(?<!`)`([^`\n]{2,200})`(?!`)")
_FILE = re.compile(r"(?:\./)?((?:[\w@.+-]+/)*[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,9})(?::\d+(?:-\d+)?)?")
_FOLDER = re.compile(r"(?:\./)?((?:[\w@.+-]+/){2,})")
_EXTENSION = re.compile(
    r"astro|bash|bat|c|cc|cfg|cjs|clj|cmake|conf|cpp|cs|css|csv|cts|cxx|dart|dockerfile|env|erb|ex|exs|fish|go|"
    r"gradle|graphql|groovy|h|hcl|hpp|hs|htm|html|ini|ipynb|java|jinja|jl|js|json|jsonl|jsx|kt|kts|less|lock|"
    r"lua|m|md|mdx|mjs|ml|mm|mts|nim|nix|php|pl|plist|po|prisma|properties|proto|ps1|py|pyi|pyx|r|rb|rs|rst|"
    r"sass|scala|scss|sh|sql|svelte|swift|tex|tf|toml|ts|tsx|txt|vim|vue|xml|yaml|yml|zig|zsh"
)
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})
_MOST_FILES = 200_000


def named_files(text: str) -> tuple[str, ...]:
    """Files and folders that a text names as code, in order, each once."""
    found: dict[str, None] = {}
    for match in _CODE.finditer(text):
        code = match[1].strip()
        file = _FILE.fullmatch(code)
        if file and _EXTENSION.fullmatch(file[1].rpartition(".")[2].lower()) and ".." not in file[1].split("/"):
            found[file[1]] = None
        elif (folder := _FOLDER.fullmatch(code)) and ".." not in folder[1].split("/"):
            found[folder[1]] = None
    return tuple(found)


class RepoFiles:
    """The files of a repository, listed once and only when needed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names that are nowhere in the repository: not at their path, nor at the end of another path."""
        return tuple(name for name in names if not (self.root / name).exists() and not self._ends(name))

    def _ends(self, name: str) -> bool:
        wanted = f"/{name.strip('/')}"
        paths, complete = self._paths
        return not complete or any(path.endswith(wanted) for path in paths.get(wanted.rpartition("/")[2], ()))

    @cached_property
    def _paths(self) -> tuple[dict[str, list[str]], bool]:
        """Files and folders by their last name; false if there are too many to list."""
        found: dict[str, list[str]] = {}
        count = 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if name not in _SKIPPED and (name[0] != "." or name == ".github")]
            for name in (*files, *folders):
                found.setdefault(name, []).append(f"{folder}/{name}")
            count += len(files)
            if count > _MOST_FILES:
                return found, False
        return found, True
