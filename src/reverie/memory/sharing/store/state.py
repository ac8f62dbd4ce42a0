"""What the last sync with a store left: which texts both sides had (hashes, no contents), which memory has which path
there, the number of the last change that was seen, and what was on its way. One small file per store. Losing it loses
nothing: equal files are found equal again, different ones become two versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from reverie.memory.sharing.shared_files import Files
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.atomic import make_private_dir, write_atomic

_UNKNOWN: Final = b"\0sha256:"
"""Stands for a text of which only the hash is known; no file is like this."""


def hash_of(data: bytes) -> str:
    return data[len(_UNKNOWN) :].decode() if data.startswith(_UNKNOWN) else sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class There:
    """A memory in the store."""

    id: str
    path: str
    sha: str
    trust: str = ""


@dataclass(slots=True)
class StoreState:
    """The state of one store and one part of the memory."""

    path: Path
    store: str = ""
    """The id of the store at its server."""
    last: int = 0
    """The number of the last change that was seen."""
    last_id: str = ""
    """The version with this number: if it is another one, the store was set back."""
    there: dict[str, There] = field(default_factory=dict[str, There])
    """The memories by id."""
    common: dict[str, str] = field(default_factory=dict[str, str])
    """The hash of each file that both sides had, by name."""
    sending: dict[str, str] = field(default_factory=dict[str, str])
    """The hashes of what was sent, until it is sure that it arrived."""
    promoted: list[str] = field(default_factory=list[str])
    """Names that the user shared by a command, and that were not sent yet."""

    @classmethod
    def load(cls, path: Path) -> StoreState:
        """The stored state; an empty one if there is none, or it cannot be used."""
        try:
            raw = cast("dict[str, Any]", load_json(read_regular(path, LARGEST)))
            return cls(
                path,
                str(raw["store"]),
                int(raw["last"]),
                str(raw["last_id"]),
                {id: There(id, *map(str, one)) for id, one in raw["there"].items()},
                _texts(raw["common"]),
                _texts(raw["sending"]),
                [str(one) for one in raw["promoted"]],
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(path)

    def save(self) -> None:
        raw = {
            "store": self.store,
            "last": self.last,
            "last_id": self.last_id,
            "there": {one.id: [one.path, one.sha, one.trust] for one in self.there.values()},
            "common": self.common,
            "sending": self.sending,
            "promoted": self.promoted,
        }
        make_private_dir(self.path.parent)
        write_atomic(self.path, json.dumps(raw, ensure_ascii=False).encode("utf-8", "replace"))

    def start_again(self, store: str) -> None:
        """Forgets what was common: the store is another one, or it was set back."""
        self.store, self.last, self.last_id = store, 0, ""
        self.there, self.common, self.sending = {}, {}, {}

    # -- the common state of a round ---------------------------------------------------------------------------------

    def read(self, ours: Files, theirs: Files) -> Files:
        """The last common state. A text that we sent and that is there now was common, even if the answer was lost."""
        known = dict(self.common)
        known |= {name: sha for name, sha in self.sending.items() if name in theirs and hash_of(theirs[name]) == sha}
        return {name: _text_of(sha, ours.get(name), theirs.get(name)) for name, sha in known.items()}

    def write(self, common: Files) -> None:
        self.common = {name: hash_of(data) for name, data in common.items()}
        self.sending = {}
        self.promoted = [name for name in self.promoted if name not in common]
        self.save()


def _text_of(sha: str, *texts: bytes | None) -> bytes:
    return next((text for text in texts if text is not None and hash_of(text) == sha), _UNKNOWN + sha.encode())


def _texts(raw: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in raw.items()}
