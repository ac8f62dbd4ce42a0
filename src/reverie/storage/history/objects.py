"""Git objects as git stores them: blobs, trees and commits under their SHA-1, each in a compressed file or in a pack.

Loose objects are written by hand, because every save needs it and it is simple (a header, a hash, zlib). Objects never
change. One is deleted here only after a pack contains it.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from reverie.quick import dataclass
from reverie.regular_files import LARGEST, read_regular
from reverie.storage.atomic import remove, storage_error, write_new
from reverie.storage.history.packs import HistoryDamaged, Kind, Pack, write_pack

_KINDS: tuple[Kind, ...] = ("blob", "tree", "commit", "tag")
_HEX = re.compile(r"[0-9a-f]{40}")
_SPEED = 1  # zlib level of loose objects; packing compresses them again

FILE = "100644"
FOLDER = "40000"


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One name in a folder: the blob of a file or the tree of a folder."""

    name: str
    id: str
    mode: str = FILE

    @property
    def is_folder(self) -> bool:
        return self.mode == FOLDER


@dataclass(frozen=True, slots=True)
class GitCommit:
    """A commit of git."""

    tree: str
    parents: tuple[str, ...]
    author: str
    when: int  # seconds since 1970
    message: str


def object_id(kind: Kind, data: bytes) -> str:
    """Returns the name that git gives to this content."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def blob_id(data: bytes) -> str:
    return object_id("blob", data)


def encode_tree(entries: Iterable[TreeEntry]) -> bytes:
    # Git sorts a folder as if its name ended with a slash.
    ordered = sorted(entries, key=lambda entry: os.fsencode(entry.name) + (b"/" if entry.is_folder else b""))
    return b"".join(
        b"%s %s\0%s" % (entry.mode.encode(), os.fsencode(entry.name), bytes.fromhex(entry.id)) for entry in ordered
    )


def decode_tree(data: bytes) -> list[TreeEntry]:
    entries: list[TreeEntry] = []
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        name = os.fsdecode(data[space + 1 : end])
        entries.append(TreeEntry(name, data[end + 1 : end + 21].hex(), data[at:space].decode()))
        at = end + 21
    return entries


def encode_commit(commit: GitCommit) -> bytes:
    who = re.sub(r"[<>\n\0]", "", commit.author) or "unknown"
    stamp = f"{who} <{who}@reverie> {commit.when} +0000"
    lines = [f"tree {commit.tree}", *(f"parent {parent}" for parent in commit.parents)]
    lines += [f"author {stamp}", f"committer {stamp}", "", commit.message]
    return "\n".join(lines).encode("utf-8", "replace")


def decode_commit(data: bytes) -> GitCommit:
    head, _, message = data.decode("utf-8", "replace").partition("\n\n")
    tree, parents, author, when = "", list[str](), "", 0
    for line in head.split("\n"):
        key, _, value = line.partition(" ")
        if key == "tree":
            tree = value
        elif key == "parent":
            parents.append(value)
        elif key == "author":
            author = value.partition(" <")[0]
            stamp = value.rpartition("> ")[2].split()
            when = int(stamp[0]) if stamp else 0
    return GitCommit(tree, tuple(parents), author, when, message)


class ObjectStore:
    """The `objects` folder of a repository. Reads loose objects and packs; writes loose ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packs: dict[str, Pack] = {}
        self._listed = -1

    def put(self, kind: Kind, data: bytes, *, fsync: bool = True) -> str:
        """Stores an object and returns its name. An existing object is not written again."""
        name = object_id(kind, data)
        if not self.path(name).exists() and self._find_packed(name) is None:
            self.unpack(kind, data, fsync=fsync)
        return name

    def unpack(self, kind: Kind, data: bytes, *, fsync: bool = True) -> None:
        """Stores a loose object, even if a pack contains it."""
        path = self.path(object_id(kind, data))
        packed = zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data, _SPEED)
        temporary = self.folder / f"tmp_obj_{os.urandom(8).hex()}"
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_new(temporary, packed, 0o400, fsync=fsync)
            try:
                temporary.replace(path)
            except BaseException:
                remove(temporary)
                raise
        except OSError as error:
            raise storage_error(error, self.folder.parent, "write to the history") from error

    def get(self, name: str) -> tuple[Kind, bytes]:
        """Returns the kind and the content of an object; raises `HistoryDamaged` if it is missing or broken."""
        if not _HEX.fullmatch(name):
            raise HistoryDamaged(self.folder.parent, f"it names {name[:60]!r}, which is not an object")
        found = self._loose(name) or self._packed(name) or self._loose(name)  # again: it may be unpacked by now
        if found is None:
            raise self._damaged(name, "it is missing")
        if found[0] not in _KINDS or object_id(*found) != name:
            raise self._damaged(name, "its content is not what was stored")
        return found

    def content(self, name: str, kind: Kind) -> bytes:
        """Returns the content of an object that must be of this kind."""
        found, data = self.get(name)
        if found != kind:
            raise self._damaged(name, f"it is a {found}, not a {kind}")
        return data

    def has(self, name: str) -> bool:
        return self.path(name).exists() or self._find_packed(name, again=True) is not None

    def tree(self, name: str) -> list[TreeEntry]:
        return decode_tree(self.content(name, "tree"))

    def commit(self, name: str) -> GitCommit:
        return decode_commit(self.content(name, "commit"))

    def path(self, name: str) -> Path:
        """The path of a loose object with this name."""
        return self.folder / name[:2] / name[2:]

    def loose(self) -> Iterable[str]:
        """Yields the names of all loose objects."""
        for number in range(256):
            for name in _names(self.folder / f"{number:02x}"):
                if len(name) == 38:
                    yield f"{number:02x}{name}"

    def many_loose(self, limit: int) -> bool:
        """Whether there are more loose objects than `limit`, estimated from one folder of 256, as git does."""
        return len(_names(self.folder / "17")) * 256 > limit

    def pack(self) -> int:
        """Moves the loose objects into one pack and returns their number. Damaged ones stay."""
        whole: dict[str, tuple[Kind, bytes]] = {}
        for name in self.loose():
            with suppress(HistoryDamaged):
                whole[name] = self.get(name)
        write_pack(self.folder / "pack", whole.values())
        self.forget_packs()
        for name in whole:
            if self._find_packed(name):
                self.path(name).unlink(missing_ok=True)
        return len(whole)

    def packs(self) -> Mapping[str, Pack]:
        self._list_packs()
        return self._packs

    def forget_packs(self) -> None:
        """Makes the next read look for packs again; after packing and purging."""
        self._packs, self._listed = {}, -1

    def _loose(self, name: str) -> tuple[Kind, bytes] | None:
        try:
            head, _, data = zlib.decompress(read_regular(self.path(name), LARGEST)).partition(b"\0")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, self.path(name), "read the history") from error
        except zlib.error as error:
            raise self._damaged(name, "it cannot be unpacked") from error
        return cast(Kind, head.partition(b" ")[0].decode("ascii", "replace")), data

    def _packed(self, name: str) -> tuple[Kind, bytes] | None:
        pack = self._find_packed(name) or self._find_packed(name, again=True)
        return pack.get(name) if pack else None

    def _find_packed(self, name: str, *, again: bool = False) -> Pack | None:
        if again or self._listed < 0:
            self._list_packs()
        return next((pack for pack in self._packs.values() if name in pack), None)

    def _list_packs(self) -> None:
        folder = self.folder / "pack"
        try:
            listed = folder.stat().st_mtime_ns
            if listed == self._listed:
                return
        except OSError:
            listed = 0
        names = set(_names(folder))
        stems = {name[:-4] for name in names if name.endswith(".idx") and f"{name[:-4]}.pack" in names}
        self._packs = {stem: self._packs.get(stem) or Pack(folder / stem) for stem in stems}
        self._listed = listed

    def _damaged(self, name: str, why: str) -> HistoryDamaged:
        return HistoryDamaged(self.folder.parent, f"object {name[:12]}: {why}")


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []
