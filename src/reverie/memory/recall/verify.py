"""Checks the names in a memory against this repository before the memory is shown: files by `memory/references.py`,
symbols written as code by a search with a time limit. It reports only names that were not found; if it cannot look, it
reports nothing."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from reverie.memory.references import RepoFiles, named_files

_SYMBOL = re.compile(
    r"`(?:([A-Za-z_][\w.]{3,60})\(\)|([A-Za-z]+(?:_[A-Za-z0-9]+)+|[A-Z][a-z]+(?:[A-Z][A-Za-z0-9]*)+|[a-z]+(?:[A-Z][a-z0-9]+)+))`"
)
_FRESH_S = 30.0
_MOST_NAMES = 8
_SEARCH_S = 0.5


class RepoNames:
    """The names of one repository; its file list is used for half a minute."""

    def __init__(self, root: Path, find_ripgrep: Callable[[], Path]) -> None:
        self._root = root
        self._ripgrep = find_ripgrep
        self._files = RepoFiles(root)
        self._since = time.monotonic()

    def find_missing(self, text: str) -> tuple[str, ...]:
        """Files and symbols that `text` names and the repository does not have."""
        if time.monotonic() - self._since > _FRESH_S:
            self._files, self._since = RepoFiles(self._root), time.monotonic()
        missing = [*self._files.missing(named_files(text))]
        until = time.monotonic() + _SEARCH_S
        for symbol in symbols(text):
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
                [str(self._ripgrep()), *options],
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return ran.returncode == 1


def symbols(text: str) -> tuple[str, ...]:
    """Names written as code that look like symbols: calls, snake_case, CamelCase."""
    return tuple(dict.fromkeys(called or named for called, named in _SYMBOL.findall(text)))
