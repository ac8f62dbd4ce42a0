"""How far a recorded conversation was learnt from: a small file in the home, per conversation and memory directory.

A conversation is known by its session id, so the file of another agent and our copy of it are the same conversation.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from reverie.errors import StorageError
from reverie.layers.l5_extraction.recordings import Recording
from reverie.parsing import load_json
from reverie.paths import Places
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.storage.locks import exclusive_in_loop
from reverie.types import JsonObject

_WAIT_S = 900.0
"""The longest time to wait until another process has learnt from a conversation."""


_RECENT, _TAIL = 100, 12
"""So many of the last entries are remembered, each by the last characters of its uuid."""


class ExtractionState:
    """The state of one conversation for one memory directory. With `keep` false, nothing is written."""

    def __init__(self, places: Places, transcript: Path, session: str, memory: Path, *, keep: bool) -> None:
        real = Path(os.path.realpath(transcript))
        own = places.below_home(memory)
        keys = [f"{places.below_home(real)}\0{own}", f"{real}\0{memory}"]  # by path, as older versions did
        keys = [f"session\0{session}\0{own}", *keys] if session else keys
        self._readable = [places.extracted / f"{_digest(key)}.json" for key in keys]
        self._path = self._readable[0]
        self._lock = places.extracted / f"{_digest(str(own))}.lock"
        self._about: JsonObject = {"transcript": str(real), "memory": str(memory)}
        self._keep = keep

    def done(self, talk: Recording) -> int:
        """Returns how many entries were looked at; 0 if the file is a different one now."""
        found = [_place(talk, given) for path in self._readable if (given := _load(path)) is not None]
        return max(found, default=0)

    def is_finished(self, size: int) -> bool:
        """Whether all of the transcript was looked at when it had this size."""
        given = _load(self._path) or {}
        return given.get("size") == size and given.get("transcript") == self._about["transcript"]

    def reached(self, talk: Recording, end: int) -> None:
        """Remembers that the first `end` entries were looked at."""
        recent = [entry.uuid[-_TAIL:] for entry in talk.entries[max(0, end - _RECENT) : end] if entry.uuid]
        self._write({"entries": end, "last": talk.entries[end - 1].uuid, "recent": recent})

    def finished(self, talk: Recording) -> None:
        """Remembers that all of the transcript was looked at, so that it is not opened before it changes."""
        self._write({"entries": 0, **(_load(self._path) or {}), "size": talk.size})

    def _write(self, fields: JsonObject) -> None:
        """Writes it, unless this is a dry run. If the disk refuses, the work is only repeated."""
        body = {**fields, **self._about}
        if not self._keep or _load(self._path) == body:
            return
        with suppress(StorageError):
            make_private_dir(self._path.parent)
            write_atomic(self._path, json.dumps(body).encode() + b"\n", fsync=False)

    @asynccontextmanager
    async def learning(self) -> AsyncGenerator[None]:
        """Holds off other processes that learn into the same memory, so that no turn is learnt twice."""
        try:
            make_private_dir(self._lock.parent)
        except StorageError:
            yield  # nothing can be remembered here, and nothing can be written
            return
        if not self._keep:
            yield
            return
        async with exclusive_in_loop(self._lock, timeout_s=_WAIT_S, what="this memory"):
            yield


def is_learnt(places: Places, transcript: Path, memory: Path) -> bool:
    """Whether a transcript of our home has nothing that was not learnt yet; looks only at its size and its state."""
    state = ExtractionState(places, transcript, transcript.stem, memory, keep=False)
    try:
        return state.is_finished(transcript.stat().st_size)
    except OSError:
        return False  # reading it says why


def _digest(key: str) -> str:
    return hashlib.sha256(os.fsencode(key)).hexdigest()[:24]


def _load(path: Path) -> JsonObject | None:
    try:
        raw: Any = load_json(read_regular(path))
    except (OSError, ValueError):
        return None
    return cast(JsonObject, raw) if isinstance(raw, dict) else None


def _place(talk: Recording, given: JsonObject) -> int:
    if given.get("last") is not None:
        # The file and our copy of it may differ in length: then one of the entries before is the last common one.
        recent = {str(one) for one in cast("list[object]", given.get("recent") or [])}
        common = (i + 1 for i, entry in enumerate(talk.entries) if entry.uuid and entry.uuid[-_TAIL:] in recent)
        return talk.place_of(str(given["last"])) or max(common, default=0)
    try:
        return min(int(given["entries"]), len(talk.entries))
    except (ValueError, TypeError, KeyError):
        return 0
