"""Git's packs: many objects in one file, each version stored as its difference to the next.

Read so that whatever `git gc` made of the history stays readable; written so that ten thousand versions of an index do
not take ten thousand times its size. Version 2 of pack and index, as git has written them since 2007. It never
changes a pack: a new one is written whole, then named by its content.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reverie.storage.atomic import storage_error, write_atomic
from reverie.storage.history.deltas import apply_delta, difference

PackedKind = Literal["blob", "tree", "commit", "tag"]
_TYPES: dict[int, PackedKind] = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_NUMBERS = {kind: number for number, kind in _TYPES.items()}
_OFFSET_DELTA, _NAME_DELTA = 6, 7
_INDEX_MAGIC = b"\377tOc\0\0\0\2"
_HEADER = struct.Struct(">4sII")
_FANOUT = struct.Struct(">256I")
_CHAIN = 40  # longest run of differences; git itself stops at 50
_WORTH_IT = 0.6  # a difference that is not smaller than this share of the object is not taken
_CACHED_BYTES = 4_000_000

Resolve = Callable[[str], tuple[PackedKind, bytes]]


class PackDamaged(Exception):
    """The pack is not what its index says."""


class Pack:
    """One pack and its index, opened at the first question."""

    def __init__(self, stem: Path) -> None:
        self.stem = stem
        self._opened: tuple[bytes | mmap.mmap, bytes | mmap.mmap, tuple[int, ...]] | None = None
        self._bases: dict[int, tuple[PackedKind, bytes]] = {}
        self._base_bytes = 0

    def __contains__(self, name: str) -> bool:
        return self._position(name) is not None

    def __len__(self) -> int:
        return self._open()[2][255]

    def names(self, prefix: str = "") -> Iterator[str]:
        """Every object that begins so, in order."""
        index, _, fanout = self._open()
        for at in range(fanout[255]):
            name = index[1032 + 20 * at : 1052 + 20 * at].hex()
            if name.startswith(prefix):
                yield name

    def get(self, name: str, elsewhere: Resolve) -> tuple[PackedKind, bytes]:
        """An object; `elsewhere` finds a base that is not in this pack."""
        position = self._position(name)
        if position is None:
            raise PackDamaged("it is not in this pack")
        try:
            kind, data = self._object(self._offset(position), elsewhere)
        except (struct.error, zlib.error, IndexError, KeyError, ValueError) as error:
            raise PackDamaged(f"{self.stem.name}.pack cannot be read") from error
        head = b"%s %d\0" % (kind.encode(), len(data))
        if hashlib.sha1(head + data, usedforsecurity=False).hexdigest() != name:
            raise PackDamaged(f"{self.stem.name}.pack holds something else in its place")
        return kind, data

    def _open(self) -> tuple[bytes | mmap.mmap, bytes | mmap.mmap, tuple[int, ...]]:
        if self._opened is None:
            index, pack = (_mapped(self.stem.with_suffix(suffix)) for suffix in (".idx", ".pack"))
            if index[:8] != _INDEX_MAGIC or pack[:8] != b"PACK\0\0\0\2":
                raise PackDamaged(f"{self.stem.name} is of a form this reader does not know")
            self._opened = index, pack, _FANOUT.unpack_from(index, 8)
        return self._opened

    def _position(self, name: str) -> int | None:
        index, _, fanout = self._open()
        wanted = bytes.fromhex(name)
        low = fanout[wanted[0] - 1] if wanted[0] else 0
        high = fanout[wanted[0]]
        at = bisect_left(range(high), wanted, low, high, key=lambda n: index[1032 + 20 * n : 1052 + 20 * n])
        return at if at < high and index[1032 + 20 * at : 1052 + 20 * at] == wanted else None

    def _offset(self, position: int) -> int:
        index, _, fanout = self._open()
        table = 1032 + 24 * fanout[255]
        (offset,) = struct.unpack_from(">I", index, table + 4 * position)
        if offset & 0x8000_0000:
            (offset,) = struct.unpack_from(">Q", index, table + 4 * fanout[255] + 8 * (offset & 0x7FFF_FFFF))
        return offset

    def _object(self, offset: int, elsewhere: Resolve) -> tuple[PackedKind, bytes]:
        """Follows the differences down to a whole object, then applies them upwards: no recursion, however long."""
        _, pack, _ = self._open()
        deltas: list[tuple[int, bytes]] = []
        while True:
            if offset in self._bases:
                kind, data = self._bases[offset]
                break
            start, at, number, size = offset, *_entry_header(pack, offset)
            if number == _OFFSET_DELTA:
                back, at = _back(pack, at)
                offset = start - back
            elif number == _NAME_DELTA:
                base = pack[at : at + 20].hex()
                at += 20
                position = self._position(base)
                offset = -1 if position is None else self._offset(position)
                if position is None:
                    deltas.append((start, _inflate(pack, at, size)))
                    kind, data = elsewhere(base)
                    break
            else:
                kind, data = _TYPES[number], _inflate(pack, at, size)
                self._keep(start, kind, data)
                break
            deltas.append((start, _inflate(pack, at, size)))
        for start, delta in reversed(deltas):
            data = apply_delta(data, delta)
            self._keep(start, kind, data)
        return kind, data

    def _keep(self, offset: int, kind: PackedKind, data: bytes) -> None:
        if self._base_bytes > _CACHED_BYTES:
            self._bases.clear()
            self._base_bytes = 0
        self._bases[offset] = kind, data
        self._base_bytes += len(data)


@dataclass(frozen=True, slots=True)
class Chain:
    """Objects that are versions of one another, newest first: each is stored as its difference to the one before."""

    names: Sequence[str]


def write_pack(folder: Path, chains: Iterable[Chain], resolve: Resolve) -> Path | None:
    """Writes all objects of the chains into a new pack, durably; returns its stem, or None if there were none."""
    body = bytearray(_HEADER.pack(b"PACK", 2, 0))
    placed: dict[str, tuple[int, int]] = {}
    for chain in chains:
        _write_chain(body, placed, chain, resolve)
    if not placed:
        return None
    _HEADER.pack_into(body, 0, b"PACK", 2, len(placed))
    checksum = hashlib.sha1(body, usedforsecurity=False).digest()
    stem = folder / f"pack-{checksum.hex()}"
    # The index makes a pack visible, so it comes last.
    write_atomic(stem.with_suffix(".pack"), bytes(body) + checksum, mode=0o400)
    write_atomic(stem.with_suffix(".idx"), _index(placed, checksum), mode=0o400)
    return stem


def _write_chain(body: bytearray, placed: dict[str, tuple[int, int]], chain: Chain, resolve: Resolve) -> None:
    base: tuple[int, PackedKind, bytes] | None = None
    depth = 0
    for name in chain.names:
        if name in placed:
            continue
        kind, data = resolve(name)
        offset = len(body)
        entry = b""
        if base is not None and base[1] == kind and depth < _CHAIN:
            delta = difference(base[2], data, tree=kind == "tree")
            if len(delta) < len(data) * _WORTH_IT:
                entry = _size(_OFFSET_DELTA, len(delta)) + _back_bytes(offset - base[0]) + zlib.compress(delta)
        depth = depth + 1 if entry else 0
        entry = entry or _size(_NUMBERS[kind], len(data)) + zlib.compress(data)
        body += entry
        placed[name] = offset, zlib.crc32(entry)
        base = offset, kind, data


def _index(placed: dict[str, tuple[int, int]], checksum: bytes) -> bytes:
    names = sorted(placed)
    counts = [0] * 256
    for name in names:
        counts[int(name[:2], 16)] += 1
    total, fanout = 0, list[int]()
    for number in counts:
        total += number
        fanout.append(total)
    large: list[int] = []
    offsets: list[int] = []
    for name in names:
        offset = placed[name][0]
        if offset >= 0x8000_0000:
            large.append(offset)
            offset = 0x8000_0000 | len(large) - 1
        offsets.append(offset)
    count = len(names)
    out = _INDEX_MAGIC + _FANOUT.pack(*fanout) + b"".join(bytes.fromhex(name) for name in names)
    out += struct.pack(f">{count}I", *(placed[name][1] for name in names))
    out += struct.pack(f">{count}I", *offsets) + struct.pack(f">{len(large)}Q", *large) + checksum
    return out + hashlib.sha1(out, usedforsecurity=False).digest()


def _mapped(path: Path) -> bytes | mmap.mmap:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(fd)
    except ValueError:
        raise PackDamaged(f"{path.name} is empty") from None
    except OSError as error:
        raise storage_error(error, path, "read the history") from error


def _entry_header(pack: bytes | mmap.mmap, at: int) -> tuple[int, int, int]:
    """Where the entry goes on, its type and its size unpacked."""
    byte = pack[at]
    at += 1
    number, size, shift = byte >> 4 & 7, byte & 15, 4
    while byte & 0x80:
        byte = pack[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
    return at, number, size


def _back(pack: bytes | mmap.mmap, at: int) -> tuple[int, int]:
    byte = pack[at]
    at += 1
    back = byte & 0x7F
    while byte & 0x80:
        byte = pack[at]
        at += 1
        back = (back + 1 << 7) | byte & 0x7F
    return back, at


def _back_bytes(back: int) -> bytes:
    out = [back & 0x7F]
    back >>= 7
    while back:
        back -= 1
        out.append(0x80 | back & 0x7F)
        back >>= 7
    return bytes(reversed(out))


def _size(number: int, size: int) -> bytes:
    byte, size = number << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    out.append(byte)
    return bytes(out)


def _inflate(pack: bytes | mmap.mmap, at: int, size: int) -> bytes:
    unpacker = zlib.decompressobj()
    out = unpacker.decompress(pack[at : at + size + 128])
    at += size + 128
    while not unpacker.eof and at < len(pack):
        out += unpacker.decompress(pack[at : at + 65_536])
        at += 65_536
    if len(out) != size:
        raise zlib.error("short object")
    return out
