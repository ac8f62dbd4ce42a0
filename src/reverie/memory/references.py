"""Which names in a memory are missing in the repository: files, and symbols found by a search with a time limit. Names
count if they are written as code (`app.py:12`, `OrderLoader`), and by their form everywhere: files (app.py, src/app.py)
and calls (load_all()). It reports only names that it did not find; if it cannot look, it reports nothing."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from reverie.runtime.bounded import bounded
from reverie.text.patterns import late

_CODE = late(r"(?<!`)`([^`\n]{2,200})`(?!`)")
_PATH = late(
    r"(?<![\w/.:@~$+`-])(?<!]\()(?:\./)?((?:\.?[\w@+-][\w@.+-]*/)+[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,9})(?![\w/@`-])"
)
"""A path in a sentence. A link leads to another memory."""
_NAME = late(
    r"(?<![\w/.:@~$+<`=&?%#-])(?<!]\()([\w+-][\w+-]*(?:\.[\w+-]+)*\.[A-Za-z][A-Za-z0-9]{0,9})(?![\w/@`(=&-]|\.\w|:/)"
)
"""A file in a sentence, without its folder."""
_PRODUCT = late(r"[A-Z][a-z]+\.js")
"""Node.js is not a file."""
_FILE = late(r"(?:\./)?((?:[\w@.+-]+/)*[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,9})(?::\d+(?:-\d+)?)?")
_BY_STEM = late(r"(?:[A-Z]\w*file|[Rr]equirements|[Cc]hangelog|CHANGELOG|LICENSE)\.\w+")
"""Files known by what is before the dot: Makefile.win."""
_FOLDER = late(r"(?:\./)?((?:[\w@.+-]+/){2,})")
_EXTENSION = late(
    r"astro|bash|bat|c|cc|cfg|cjs|clj|cmake|conf|cpp|cs|css|csv|cts|cxx|dart|dockerfile|env|erb|ex|exs|fish|go|"
    r"gradle|graphql|groovy|h|hcl|hpp|hs|htm|html|ini|ipynb|java|jinja|jl|js|json|jsonl|jsx|kt|kts|less|lock|"
    r"lua|m|md|mdx|mjs|ml|mm|mts|nim|nix|php|pl|plist|po|prisma|properties|proto|ps1|py|pyi|pyx|r|rb|rs|rst|"
    r"sass|scala|scss|sh|sql|svelte|swift|tex|tf|toml|ts|tsx|txt|vim|vue|xml|yaml|yml|zig|zsh"
)
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})
_MOST_FILES = 200_000
_SYMBOL = late(
    r"`(?:([A-Za-z_][\w.]{3,60})\(\)|([A-Za-z]+(?:_[A-Za-z0-9]+)+|[A-Z][a-z]+(?:[A-Z][A-Za-z0-9]*)+|[a-z]+(?:[A-Z][a-z0-9]+)+))`"
)
_CALL = late(r"(?<![\w.`$@/:-])([A-Za-z_]\w*(?:\.\w+)*)\(\)(?!`)")
"""A call in a sentence."""
_LONGEST_SYMBOL, _SHORTEST_SYMBOL = 64, 4
_FRESH_S = 30.0
_MOST_NAMES = 8
_SEARCH_S = 0.5


def named_files(text: str) -> tuple[str, ...]:
    """Files and folders that a text names, those written as code first, each once."""
    found: dict[str, None] = {}
    for match in _CODE.finditer(text):
        code = match[1].strip()
        if (file := _FILE.fullmatch(code)) and _is_file(file[1]):
            found[file[1]] = None
        elif (folder := _FOLDER.fullmatch(code)) and ".." not in folder[1].split("/"):
            found[folder[1]] = None
    prose = _CODE.sub(" ", text)
    for match in _PATH.finditer(prose):
        # A first part like example.org is a host.
        if _is_file(match[1]) and "." not in match[1].partition("/")[0][1:]:
            found[match[1]] = None
    for match in _NAME.finditer(prose):
        if _is_file(match[1]) and not _PRODUCT.fullmatch(match[1]):
            found[match[1]] = None
    return tuple(found)


def _is_file(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    known = _EXTENSION.fullmatch(name.rpartition(".")[2].lower()) or _BY_STEM.fullmatch(name)
    return ".." not in folder.split("/") and known is not None


class RepoFiles:
    """The files of a repository, listed once and only when needed. Memories, which name each other, are in `memory`."""

    def __init__(self, root: Path, memory: Path | None = None) -> None:
        self.root = root
        self._memory = memory

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names that are nowhere in the repository: not at their path, nor at the end of another path."""
        places = [self.root, *filter(None, [self._memory])]
        return tuple(name for name in names if not any((at / name).exists() for at in places) and not self._ends(name))

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


class RepoNames:
    """The names of one repository; its file list is used for half a minute."""

    def __init__(self, root: Path, find_ripgrep: Callable[[], Path], memory: Path | None = None) -> None:
        self._root = root
        self._memory = memory
        self._ripgrep = find_ripgrep
        self._files = RepoFiles(root, memory)
        self._since = time.monotonic()

    def find_missing(self, text: str) -> tuple[str, ...]:
        """Files and symbols that `text` names and the repository does not have."""
        if time.monotonic() - self._since > _FRESH_S:
            self._files, self._since = RepoFiles(self._root, self._memory), time.monotonic()
        missing = [*self._files.missing(named_files(text))]
        until = time.monotonic() + _SEARCH_S
        for symbol in named_symbols(text):
            left = until - time.monotonic()
            if left <= 0 or len(missing) >= _MOST_NAMES:
                break
            if self._is_nowhere(symbol.split(".")[-1], left):
                missing.append(symbol)
        return tuple(missing[:_MOST_NAMES])

    def _is_nowhere(self, symbol: str, seconds: float) -> bool:
        """Whether a search of the whole repository ended without a match; a failed search proves nothing."""
        options = ["--no-config", "--quiet", "--fixed-strings", "--word-regexp", "--hidden", "--", symbol]
        try:
            ran = subprocess.run(
                bounded([self._ripgrep(), *options]),
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return ran.returncode == 1


def named_symbols(text: str) -> tuple[str, ...]:
    """Names that look like symbols: calls everywhere, snake_case and CamelCase written as code."""
    written = [called or named for called, named in _SYMBOL.findall(text)]
    calls = [name for name in _CALL.findall(_CODE.sub(" ", text)) if _SHORTEST_SYMBOL <= len(name) <= _LONGEST_SYMBOL]
    return tuple(dict.fromkeys([*written, *calls]))
