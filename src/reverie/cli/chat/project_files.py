"""The files of the project for `@`: fuzzy, without ignored files and secrets, quick with a hundred thousand names."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

from reverie.cli.chat.palette import rank
from reverie.errors import ReverieError
from reverie.tools.ripgrep import make_listing_options, run_ripgrep

MOST_FILES = 200_000
_FRESH_S = 10.0
_TIME_S = 5.0
_RANKED = 2_000


class ProjectFiles:
    """Lists the files once, and again when the list is old."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._names = list[str]()
        self._small = ""
        self._listed_at = -_FRESH_S
        self._listing = asyncio.Lock()

    async def find(self, typed: str, most: int = 20) -> list[str]:
        """The paths that fit best. Folders end with a slash."""
        async with self._listing:
            if time.monotonic() - self._listed_at > _FRESH_S:
                await self._list()
        return await asyncio.to_thread(self._search, typed, most)

    async def _list(self) -> None:
        lines = 0

        def is_enough(chunk: bytes) -> bool:
            nonlocal lines
            lines += chunk.count(b"\0")
            return lines > MOST_FILES

        try:
            options = ["--files", "--null", *make_listing_options(self._cwd), "--no-require-git", "--", "."]
            found = await run_ripgrep(options, self._cwd, is_enough, _TIME_S)
        except ReverieError:
            return  # without ripgrep, nothing is offered
        text = found.data.decode("utf-8", "replace")
        names = [line.removeprefix("./") for line in text.split("\0") if line]
        self.set_names(names)

    def set_names(self, names: list[str]) -> None:
        """Takes the files of the project; their folders are found with them."""
        folders = {f"{parent}/" for name in names for parent in _parents(name)}
        self._names = sorted([*folders, *names], key=lambda name: (name.count("/"), name))
        self._small = "\n".join(self._names).lower()
        self._listed_at = time.monotonic()

    def _search(self, typed: str, most: int) -> list[str]:
        if not typed:
            return [name for name in self._names if "/" not in name[:-1] and not name.startswith(".")][:most]
        wanted = typed.lower()
        found = [name for name in self._names if wanted in name.lower()]
        if len(found) < most:  # letters in this order, with others between them
            pattern = "[^\\n]*?".join(map(re.escape, wanted.replace(" ", "")))
            scattered = re.compile(f"^[^\\n]*?{pattern}[^\\n]*$", re.MULTILINE)
            numbers = dict[str, None]()
            for match in scattered.finditer(self._small):
                numbers[match[0]] = None
                if len(numbers) >= _RANKED:
                    break
            known = set(found)
            found += [name for name in self._names if name.lower() in numbers and name not in known]
        # The name of the file counts more than its folders.
        return rank(typed, found[:_RANKED], lambda name: name.rstrip("/").rpartition("/")[2] + " " + name)[:most]


def _parents(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: at + 1]) for at in range(len(parts))]
