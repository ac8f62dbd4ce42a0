"""What a purge does to the files of a memory directory: texts and paths without the secret, and index lines that follow
renamed files. Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reverie.memory.topic_file import decode, encode
from reverie.storage.history.purge import make_unique


class PurgePlan:
    """Applies `replace` to texts and `rename` to paths, and keeps both consistent for renamed files."""

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
        """The content without the secret; index lines follow renamed files."""
        text = decode(data)
        for old, new in self._parts.items():
            text = text.replace(old, new)
        return encode(self._replace(text))

    def part(self, name: str) -> str:
        """One file or folder name without the secret."""
        return self._parts.get(name) or self._rename(name)

    def writes(self, name: str, data: bytes) -> dict[str, bytes | None]:
        """The writes for one file; empty if it is clean."""
        new = self.content(data)
        if name in self._moved:
            return {name: None, self._moved[name]: new}
        return {name: new} if new != data else {}
