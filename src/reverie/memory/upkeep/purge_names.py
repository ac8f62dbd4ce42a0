"""Plans what a purge writes in a memory directory: contents and file names without the secret, pointers that still fit.

Pure but for reading through the callers' hands. The history is rewritten with the same two functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reverie.memory.topic_file import decode, encode
from reverie.storage.history.purge import make_unique


class Cleaning:
    """`replace` and `rename` for texts and paths, made to agree about files that get another name."""

    def __init__(self, names: Iterable[str], replace: Callable[[str], str], rename: Callable[[str], str]) -> None:
        self._replace, self._rename = replace, rename
        given = make_unique({name: rename(name) for name in names})
        self._moved = {old: new for old, new in given.items() if old != new}
        self._parts = {
            part: after
            for old, new in self._moved.items()
            for part, after in zip(old.split("/"), new.split("/"), strict=True)
            if part != after
        }

    def content(self, data: bytes) -> bytes:
        """The content without the secret. A line of the index goes on naming its file."""
        text = decode(data)
        for old, new in self._parts.items():
            text = text.replace(old, new)
        return encode(self._replace(text))

    def part(self, name: str) -> str:
        """One name of a file or folder without the secret."""
        return self._parts.get(name) or self._rename(name)

    def writes(self, name: str, data: bytes) -> dict[str, bytes | None]:
        """What must be written for one file; nothing if it is clean."""
        new = self.content(data)
        if name in self._moved:
            return {name: None, self._moved[name]: new}
        return {name: new} if new != data else {}
