"""Keyed digests of purged values, so that a sync does not bring them back from what a team shares. A short value can be
guessed from its digest, but a purged secret has to be changed anyway."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from reverie.errors import StorageError
from reverie.memory.upkeep.purge_forms import SecretForms
from reverie.parsing import load_json
from reverie.regular_files import read_regular_text
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic

RECORD_NAME: Final = "purged.json"
_SIZE: Final = 10
_MOST: Final = 2_000  # digests; the oldest go first


def _normal(text: str) -> str:
    return "".join(text.split()).casefold()


def _digest(text: str, salt: bytes) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_SIZE, key=salt).hexdigest()


class PurgedRecord:
    """The record at `path`; a missing one is empty, and one that cannot be read is an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            raw: Any = load_json(read_regular_text(path))
            self._salt = bytes.fromhex(raw["salt"])
            self._known = [(int(length), str(digest)) for length, digest in raw["values"]]
        except FileNotFoundError:
            self._salt, self._known = secrets.token_bytes(16), list[tuple[int, str]]()
        except OSError as error:
            raise storage_error(error, path, "read") from error
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{path} is damaged, so it is unknown what was purged; remove it, and purge those texts again."
            ) from error

    def add(self, values: Iterable[str]) -> None:
        """Stores the digests of the values in every form that a purge looks for."""
        texts = {_normal(form) for form in SecretForms(values).spellings}
        new = [(len(text), _digest(text, self._salt)) for text in sorted(texts) if text]
        self._known = list(dict.fromkeys([*self._known, *new]))[-_MOST:]
        make_private_dir(self._path.parent)
        write_atomic(self._path, json.dumps({"salt": self._salt.hex(), "values": self._known}).encode(), mode=0o600)

    def holds(self, text: str) -> bool:
        """Whether the text contains a purged value."""
        lengths: dict[int, set[str]] = defaultdict(set)
        for length, digest in self._known:
            lengths[length].add(digest)
        normal = _normal(text)
        return any(
            _digest(normal[at : at + length], self._salt) in digests
            for length, digests in lengths.items()
            for at in range(len(normal) - length + 1)
        )
