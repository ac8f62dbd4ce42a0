"""Git packs: many objects in one file, each stored as its difference to a similar one. dulwich does the work.

A history stays readable after `git gc`, and thousands of versions stay small. dulwich is imported only when needed.
"""

from __future__ import annotations

import struct
import weakref
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Literal

from reverie.errors import StorageError
from reverie.storage.atomic import write_atomic

Kind = Literal["blob", "tree", "commit", "tag"]
_TYPES: dict[int, Kind] = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_NUMBERS = {kind: number for number, kind in _TYPES.items()}
_CHAIN = 40  # longest chain of differences; git itself stops at 50


class HistoryDamaged(StorageError):
    """An object of the history is missing, or its content does not match its name."""

    def __init__(self, git_dir: Path, why: str) -> None:
        super().__init__(f"The history at {git_dir} is damaged: {why}; the memory files themselves are not affected.")


class Pack:
    """One pack and its index, opened on first use."""

    def __init__(self, stem: Path) -> None:
        from dulwich.object_format import SHA1
        from dulwich.pack import Pack as GitPack

        self.stem = stem
        self._pack = GitPack(str(stem), object_format=SHA1)
        weakref.finalize(self, self._pack.close)

    def __contains__(self, name: str) -> bool:
        from dulwich.objects import ObjectID
        from dulwich.pack import PackFileDisappeared

        with self._reading(), suppress(PackFileDisappeared):  # packed again meanwhile: it is in another one
            return bool(self._pack.data) and ObjectID(name.encode()) in self._pack
        return False

    def names(self) -> list[str]:
        with self._reading():
            return [name.decode() for name in self._pack]

    def get(self, name: str) -> tuple[Kind, bytes]:
        from dulwich.objects import ObjectID

        with self._reading():
            number, data = self._pack.get_raw(ObjectID(name.encode()))
            return _TYPES[number], data

    @contextmanager
    def _reading(self) -> Generator[None]:
        """Turns every error of dulwich for bytes that are not a pack into one sentence."""
        from dulwich.errors import ApplyDeltaError, ChecksumMismatch
        from dulwich.pack import UnresolvedDeltas

        plain = (AssertionError, LookupError, OSError, OverflowError, TypeError, ValueError, struct.error, zlib.error)
        try:
            yield
        except (*plain, ApplyDeltaError, ChecksumMismatch, UnresolvedDeltas) as error:
            raise HistoryDamaged(self.stem.parents[2], f"{self.stem.name} cannot be read") from error


def write_pack(folder: Path, objects: Iterable[tuple[Kind, bytes]]) -> None:
    """Writes objects into a new pack, durably. Objects of similar kind and size are stored as differences."""
    from dulwich.object_format import SHA1
    from dulwich.objects import ShaFile
    from dulwich.pack import deltas_from_sorted_objects, write_pack_data, write_pack_index_v2

    whole = [ShaFile.from_raw_string(_NUMBERS[kind], data) for kind, data in objects]
    whole.sort(key=lambda one: (one.type_num, -one.raw_length()))
    records = (
        record
        for at in range(0, len(whole), _CHAIN)
        for record in deltas_from_sorted_objects(((one, None) for one in whole[at : at + _CHAIN]), window_size=1)
    )
    body, index = BytesIO(), BytesIO()
    places, checksum = write_pack_data(body.write, records, num_records=len(whole), object_format=SHA1)
    write_pack_index_v2(index, sorted((name, *place) for name, place in places.items()), checksum)
    stem = folder / f"pack-{checksum.hex()}"
    # The index makes a pack visible, so it comes last.
    write_atomic(stem.with_suffix(".pack"), body.getvalue(), mode=0o400)
    write_atomic(stem.with_suffix(".idx"), index.getvalue(), mode=0o400)
