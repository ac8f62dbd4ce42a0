"""Removes a text from every version: the only place that rewrites history, for secrets that must not stay.

Every commit, tree and blob with the text is written again, all refs move to the new objects, and the old ones are
deleted. A kill leaves either the old or the new history, and the next use continues. Versions get new names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.storage.atomic import storage_error, write_atomic
from reverie.storage.history.objects import TreeEntry, encode_tree
from reverie.storage.history.versions import BRANCH, History

Replace = Callable[[bytes], bytes]  # returns its input if there is nothing to remove
Rename = Callable[[str], str]  # the same for the name of a file or folder


@dataclass(frozen=True, slots=True)
class HistoryPurge:
    """The result of a purge."""

    versions: dict[str, str]  # each version that was rewritten, with its new name
    contents: int  # file contents that held the text


def purge_history(history: History, replace: Replace, rename: Rename = str) -> HistoryPurge:
    """Rewrites all versions: `replace` for contents and messages, `rename` for names. Callers hold the lock."""
    rewriting = _Rewriting(history, replace, rename)
    refs = {ref: rewriting.commit(name) for ref, name in _refs(history).items()}
    marker = history.git_dir / "reverie-purge.json"
    kept = sorted(rewriting.kept)
    write_atomic(marker, json.dumps({"refs": refs, "keep": kept}).encode())
    finish_purge(history)
    return HistoryPurge(rewriting.renames(), rewriting.contents)


def finish_purge(history: History) -> None:
    """Completes a purge, even an interrupted one; does nothing if there is none."""
    marker = history.git_dir / "reverie-purge.json"
    try:
        note = load_json(read_regular_text(marker))
    except (FileNotFoundError, ValueError):
        return
    except OSError as error:
        raise storage_error(error, marker, "read") from error
    refs: dict[str, str | None] = note["refs"]
    for ref, name in refs.items():
        if name is not None:
            path = history.git_dir / ref
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(path, f"{name}\n".encode())
    try:
        _delete_old(history, refs, set(note["keep"]))
        marker.unlink()
    except OSError as error:
        raise storage_error(error, history.git_dir, "take the old versions out of") from error
    history.objects.forget_packs()


class _Rewriting:
    """Creates new objects next to the old ones, each once."""

    def __init__(self, history: History, replace: Replace, rename: Rename) -> None:
        self._store = history.objects
        self._replace = replace
        self._rename = rename
        self._made: dict[str, str] = {}
        self._commits: dict[str, str] = {}
        self.contents = 0
        self.kept: set[str] = set()

    def renames(self) -> dict[str, str]:
        return {old: new for old, new in self._commits.items() if old != new}

    def commit(self, head: str) -> str | None:
        """Returns the new name of a commit, after rewriting its ancestors; None for a tag with its own text."""
        if self._store.get(head)[0] != "commit":
            return None
        for name in reversed(list(self._missing(head))):
            raw = self._store.content(name, "commit")
            lines = raw.partition(b"\n\n")[0].split(b"\n")
            message = raw.partition(b"\n\n")[2]
            for at, line in enumerate(lines):
                key, _, value = line.partition(b" ")
                if key == b"tree":
                    lines[at] = b"tree " + self._tree(value.decode()).encode()
                elif key == b"parent":
                    lines[at] = b"parent " + self._commits[value.decode()].encode()
            new = self._store.put("commit", b"\n".join(lines) + b"\n\n" + self._replace(self._with_new_ids(message)))
            self._commits[name] = new
            self.kept.add(new)
        return self._commits[head]

    def _missing(self, head: str) -> Iterator[str]:
        seen: set[str] = set()
        order: list[str] = []
        stack: list[tuple[str, bool]] = [(head, False)]
        while stack:
            name, done = stack.pop()
            if done:
                order.append(name)
            elif name not in seen and name not in self._commits:
                seen.add(name)
                stack.append((name, True))
                stack += [(parent, False) for parent in self._store.commit(name).parents]
        return reversed(order)

    def _with_new_ids(self, message: bytes) -> bytes:
        for line in message.split(b"\n"):
            if line.startswith(b"Reverses: "):
                old = line[10:].decode("ascii", "replace")
                message = message.replace(line, b"Reverses: " + self._commits.get(old, old).encode())
        return message

    def _tree(self, name: str) -> str:
        if name not in self._made:
            found = self._store.tree(name)
            names = make_unique({entry.name: self._rename(entry.name) for entry in found})
            entries = [
                TreeEntry(
                    names[entry.name], self._tree(entry.id) if entry.is_folder else self._blob(entry.id), entry.mode
                )
                for entry in found
            ]
            self._made[name] = self._store.put("tree", encode_tree(entries))
        self.kept.add(self._made[name])
        return self._made[name]

    def _blob(self, name: str) -> str:
        if name not in self._made:
            data = self._store.content(name, "blob")
            new = self._replace(data)
            self.contents += new != data
            self._made[name] = name if new == data else self._store.put("blob", new)
        self.kept.add(self._made[name])
        return self._made[name]


def make_unique(names: dict[str, str]) -> dict[str, str]:
    """Returns the new name of each, with a number where two would be the same."""
    taken = {new for old, new in names.items() if old == new}
    out: dict[str, str] = {}
    for old, new in sorted(names.items()):
        stem, dot, end = new.rpartition(".")
        number = 1
        while old != new and new in taken:
            number += 1
            new = f"{stem}_{number}.{end}" if dot and stem else f"{end}_{number}"
        taken.add(new)
        out[old] = new
    return out


def read_all_objects(history: History) -> Iterator[tuple[str, str, bytes]]:
    """Yields (name, kind, content) of every object, loose or packed, whether a version uses it or not."""
    store = history.objects
    store.forget_packs()
    names = dict.fromkeys([*store.loose(), *(name for pack in store.packs().values() for name in pack.names())])
    for name in names:
        kind, data = store.get(name)
        yield name, kind, data


def _refs(history: History) -> dict[str, str]:
    """Returns every branch and tag with its target, including those that users made."""
    found = history.packed_refs()
    for folder, _, names in os.walk(history.git_dir / "refs"):
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):
                value = read_regular_text(path).strip()
                if len(value) == 40 and not name.startswith("."):
                    found[str(path.relative_to(history.git_dir))] = value
    head = history.head()
    return found | ({BRANCH: head} if head else {})


def _delete_old(history: History, refs: dict[str, str | None], keep: set[str]) -> None:
    """Deletes every object except `keep`, and all files of git that could still name or hold the old ones."""
    store, git_dir = history.objects, history.git_dir
    packs = list(store.packs().values())
    loose = set(store.loose())
    for name in keep - loose:  # objects that must stay and are only in an old pack come out of it first
        kind, data = store.get(name)
        store.unpack(kind, data)
    for ref, name in refs.items():
        if name is None:
            (git_dir / ref).unlink(missing_ok=True)
    for leftover in ("packed-refs", "logs", "ORIG_HEAD", "FETCH_HEAD", "objects/info/commit-graph"):
        _delete(git_dir / leftover)
    _delete(git_dir / "objects" / "info" / "commit-graphs")
    for pack in packs:
        pack.stem.with_suffix(".idx").unlink(missing_ok=True)  # first: without it nobody reads the rest
        for path in pack.stem.parent.glob(f"{pack.stem.name}.*"):
            path.unlink()
    for name in loose - keep:
        store.path(name).unlink(missing_ok=True)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for child in path.iterdir():
            _delete(child)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
