"""Keyed digests of purged values, so that nothing brings them back: no sync with a team, no followed session. A short
value can be guessed from its digest, but a purged secret has to be changed anyway."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

from reverie.errors import StorageError
from reverie.memory.upkeep.purge_forms import PURGED, SecretForms
from reverie.parsing import load_json
from reverie.regular_files import read_regular_text
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic
from reverie.types import JsonObject

RECORD_NAME: Final = "purged.json"
_SIZE: Final = 10
_MOST: Final = 2_000  # digests; the oldest go first
_START: Final = 4  # characters whose digest shows quickly where a value can begin
_START_SIZE: Final = 3
_MOST_LOOKED_UP: Final = 300_000
_UNTOUCHED: Final = frozenset({"uuid", "parentUuid", "sessionId", "timestamp", "type", "subtype", "cwd"})


def _normal(text: str) -> str:
    return "".join(text.split()).casefold()


def _digest(text: str, salt: bytes, size: int = _SIZE) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size, key=salt).hexdigest()


class PurgedRecord:
    """The record at `path`; a missing one is empty, and one that cannot be read is an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looked_up: dict[str, bool] = {}
        try:
            raw: Any = load_json(read_regular_text(path))
            self._salt = bytes.fromhex(raw["salt"])
            # Older versions stored no start.
            self._known = [(int(one[0]), str(one[1]), str(one[2]) if len(one) > 2 else "") for one in raw["values"]]
        except FileNotFoundError:
            self._salt, self._known = secrets.token_bytes(16), list[tuple[int, str, str]]()
        except OSError as error:
            raise storage_error(error, path, "read") from error
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{path} is damaged, so it is unknown what was purged; remove it, and purge those texts again."
            ) from error

    def add(self, values: Iterable[str]) -> None:
        """Stores the digests of the values in every form that a purge looks for."""
        texts = {_normal(form) for form in SecretForms(values).spellings}
        new = [(len(text), _digest(text, self._salt), self._start_of(text)) for text in sorted(texts) if text]
        self._known = list(dict.fromkeys([*self._known, *new]))[-_MOST:]
        self._looked_up.clear()
        make_private_dir(self._path.parent)
        write_atomic(self._path, json.dumps({"salt": self._salt.hex(), "values": self._known}).encode(), mode=0o600)

    def _start_of(self, text: str) -> str:
        return _digest(text[:_START], self._salt, _START_SIZE) if len(text) >= _START else ""

    def holds(self, text: str) -> bool:
        """Whether the text contains a purged value."""
        if not self._known:
            return False
        lengths: dict[int, set[str]] = defaultdict(set)
        for length, digest, _ in self._known:
            lengths[length].add(digest)
        normal = _normal(text)
        if len(normal) < min(lengths):
            return False
        return any(
            _digest(normal[at : at + length], self._salt) in digests
            for at in self._beginnings(normal)
            for length, digests in lengths.items()
            if at + length <= len(normal)
        )

    def clean(self, record: JsonObject) -> JsonObject:
        """A record of a transcript without lines that contain a purged value."""
        if not self._known:
            return record
        return {key: value if key in _UNTOUCHED else self._clean(value) for key, value in record.items()}

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            if not self.holds(value):
                return value
            lines = [PURGED if self.holds(line) else line for line in value.split("\n")]
            return "\n".join(lines) if PURGED in lines else PURGED
        if isinstance(value, list):
            return [self._clean(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {key: self._clean(one) for key, one in cast(JsonObject, value).items()}
        return value

    def _beginnings(self, normal: str) -> Iterable[int]:
        """Where a value can begin: few places, unless a value is very short or an older version stored it."""
        starts = {start for _, _, start in self._known}
        if "" in starts:
            return range(len(normal))
        grams = {normal[at : at + _START] for at in range(len(normal) - _START + 1)}
        if len(self._looked_up) > _MOST_LOOKED_UP:
            self._looked_up.clear()
        for gram in grams:
            if gram not in self._looked_up:
                self._looked_up[gram] = self._start_of(gram) in starts
        found = [gram for gram in grams if self._looked_up[gram]]
        if not found:
            return ()
        return [match.start() for match in re.finditer(f"(?={'|'.join(map(re.escape, found))})", normal)]
