"""Every version of a folder of text files: who changed what, when and why, stored as a bare git repository.

Users read it with `git --git-dir=… log`; nothing here needs git. A version is complete before it gets its name: objects
first, then one move of the branch. Callers hold the folder's lock; readers need none.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import datetime
from pathlib import Path

from reverie.errors import UserError
from reverie.moments import to_datetime
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic
from reverie.storage.history.objects import (
    FOLDER,
    GitCommit,
    ObjectStore,
    TreeEntry,
    encode_commit,
    encode_tree,
)
from reverie.text.patterns import late

BRANCH = "refs/heads/main"
PACK_ABOVE = 3_000  # loose objects that are packed; a version has about four
_LATEST = ("latest", "HEAD", "@")
_PREFIX = late(r"[0-9a-f]{4,40}")
_TRAILER = late(r"([A-Z][A-Za-z-]*): (.*)")
_HALF_WRITTEN = late(r"\.(?:reverie-)?[0-9a-f]{16}\.tmp|tmp_obj_[0-9a-f]{16}")
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = false\n\tbare = true\n[gc]\n\tauto = 0\n"


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """Who makes a version, and why."""

    writer: str
    why: str = ""
    session: str = ""
    message: str = ""
    subject: str = ""  # the first line of the log; if empty, it lists the changed files
    reverses: str = ""  # the version that this one takes back
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why each file was changed, if there is more to say than `why`."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file; `before` and `after` name contents, None where there is no file."""

    name: str
    before: str | None
    after: str | None

    @property
    def verb(self) -> str:
        return "add" if self.before is None else "remove" if self.after is None else "change"


@dataclass(frozen=True, slots=True)
class Version:
    """One entry of the log."""

    id: str
    parent: str | None
    when: datetime
    info: VersionInfo
    files: tuple[FileChange, ...]

    @property
    def short(self) -> str:
        return self.id[:10]


class History:
    """The versions of one folder. `create` makes the repository if it is missing."""

    def __init__(self, git_dir: Path, *, pack_above: int = PACK_ABOVE) -> None:
        self.git_dir = git_dir
        self._pack_above = pack_above
        self.objects = ObjectStore(git_dir / "objects")
        self._trees: dict[str, dict[str, TreeEntry]] = {}

    @property
    def branch_file(self) -> Path:
        """Holds the name of the newest version; changing it makes a version."""
        return self.git_dir / BRANCH

    def create(self) -> None:
        """Creates the repository, or what is missing in it."""
        make_private_dir(self.git_dir)
        if (self.git_dir / "HEAD").exists() and self.branch_file.parent.is_dir():
            return
        for folder in ("objects/pack", "objects/info", "refs/heads", "refs/tags"):
            make_private_dir(self.git_dir / folder)
        write_atomic(self.git_dir / "config", _CONFIG.encode())
        write_atomic(self.git_dir / "description", b"Every version of the memory directory next to this one.\n")
        # If the folder is inside a checkout, its git must not offer to commit this history.
        write_atomic(self.git_dir / ".gitignore", b"*\n")
        write_atomic(self.git_dir / "HEAD", f"ref: {BRANCH}\n".encode())  # last: it marks a complete repository

    def head(self) -> str | None:
        """The newest version, or None if there is none yet."""
        try:
            return read_regular_text(self.branch_file, errors="replace").strip() or None
        except FileNotFoundError:
            return self.packed_refs().get(BRANCH)
        except OSError as error:
            raise storage_error(error, self.branch_file, "read the history") from error

    def packed_refs(self) -> dict[str, str]:
        """Returns the branches and tags that `git gc` moved into one file."""
        path = self.git_dir / "packed-refs"
        try:
            lines = read_regular_text(path, errors="replace").splitlines()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise storage_error(error, path, "read the history") from error
        pairs = (line.partition(" ") for line in lines)
        return {ref: name for name, _, ref in pairs if len(name) == 40 and ref}

    def files(self, version: str | None) -> dict[str, str]:
        """Returns every file of a version with the name of its content; none without a version."""
        if version is None:
            return {}
        return dict(self._walk(self.objects.commit(version).tree, ""))

    def read(self, content: str) -> bytes:
        return self.objects.content(content, "blob")

    def prepare(
        self,
        parent: str | None,
        files: Mapping[str, str],
        info: VersionInfo,
        contents: Mapping[str, bytes],
        changes: tuple[FileChange, ...],
    ) -> Version:
        """Stores a version with these files and new `contents`; `move_branch` adds it to the log."""
        for data in contents.values():
            self.objects.put("blob", data)
        tree = self._put_tree(files)
        message = _message(info, changes)
        when = int(time.time())
        commit = GitCommit(tree, (parent,) if parent else (), info.writer, when, message)
        name = self.objects.put("commit", encode_commit(commit))
        ordered = tuple(sorted(changes, key=lambda change: change.name))
        return Version(name, parent, to_datetime(when), _info(commit), ordered)

    def move_branch(self, version: str) -> None:
        """Makes a prepared version the newest. Callers hold the folder's lock."""
        write_atomic(self.branch_file, f"{version}\n".encode())

    def sweep(self) -> None:
        """Removes half-written files of killed writers. Callers hold the folder's lock."""
        objects = self.git_dir / "objects"
        for folder in (self.git_dir, self.branch_file.parent, objects, objects / "pack"):
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if _HALF_WRITTEN.fullmatch(entry.name):
                        Path(entry.path).unlink()

    def version(self, name: str) -> Version:
        commit = self.objects.commit(name)
        parent = commit.parents[0] if commit.parents else None
        files = tuple(self._changes(self.objects.commit(parent).tree if parent else None, commit.tree))
        return Version(name, parent, to_datetime(commit.when), _info(commit), files)

    def log(self, name: str | None = None, *, limit: int | None = None) -> Iterator[Version]:
        """Yields versions, newest first; with `name`, only those of one file."""
        at, given = self.head(), 0
        while at is not None and (limit is None or given < limit):
            version = self.version(at)
            if name is None or any(change.name == name for change in version.files):
                given += 1
                yield version
            at = version.parent

    def find(self, spec: str) -> Version:
        """Finds a version by `latest`, or by the start of its name (four characters or more)."""
        wanted = spec.strip().lower()
        head = self.head()
        if head is None:
            raise UserError("There are no versions yet.")
        if spec.strip() in _LATEST:
            return self.version(head)
        if not _PREFIX.fullmatch(wanted):
            raise UserError(
                f"{spec[:60]!r} is not a version; give the start of its name, as `reverie memory log` shows it."
            )
        found = [name for name in self._line(head) if name.startswith(wanted)]
        if not found:
            raise UserError(f"There is no version {spec[:60]!r}; `reverie memory log` lists them.")
        if len(found) > 1:
            raise UserError(f"{len(found)} versions start with {spec[:60]!r}; give more of the name.")
        return self.version(found[0])

    def show(self, name: str, version: str) -> bytes:
        found = self.files(version).get(name)
        if found is None:
            raise UserError(f"{name} is not in version {version[:10]}; `reverie memory log {name}` shows where it is.")
        return self.read(found)

    def diff(self, version: Version, name: str | None = None) -> str:
        """Returns the changes of a version, as `diff -u` shows them."""
        import difflib

        parts: list[str] = []
        for change in version.files:
            if name is not None and change.name != name:
                continue
            before, after = self._lines(change.before), self._lines(change.after)
            old = f"a/{change.name}" if change.before else "/dev/null"
            new = f"b/{change.name}" if change.after else "/dev/null"
            for line in difflib.unified_diff(before, after, old, new):
                parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
        return "".join(parts)

    def pack_if_many(self) -> None:
        """Packs the loose objects if there are thousands. Callers hold the folder's lock."""
        if self.objects.many_loose(self._pack_above):
            self.objects.pack()

    def _lines(self, content: str | None) -> list[str]:
        text = self.read(content).decode("utf-8", "replace") if content else ""
        return re.findall(r"[^\n]*\n|[^\n]+", text)

    def _line(self, head: str) -> Iterator[str]:
        at: str | None = head
        while at is not None:
            yield at
            parents = self.objects.commit(at).parents
            at = parents[0] if parents else None

    def _tree(self, name: str) -> dict[str, TreeEntry]:
        found = self._trees.get(name)
        if found is None:
            found = {entry.name: entry for entry in self.objects.tree(name)}
            if len(self._trees) > 64:
                self._trees.clear()
            self._trees[name] = found
        return found

    def _walk(self, tree: str, above: str) -> Iterator[tuple[str, str]]:
        for entry in self._tree(tree).values():
            if entry.is_folder:
                yield from self._walk(entry.id, f"{above}{entry.name}/")
            else:
                yield f"{above}{entry.name}", entry.id

    def _changes(self, before: str | None, after: str | None, above: str = "") -> Iterator[FileChange]:
        old = self._tree(before) if before else {}
        new = self._tree(after) if after else {}
        for name in sorted(old.keys() | new.keys()):
            one, other = old.get(name), new.get(name)
            if one == other:
                continue
            folders = [entry.id if entry and entry.is_folder else None for entry in (one, other)]
            files = [entry.id if entry and not entry.is_folder else None for entry in (one, other)]
            if folders != [None, None]:
                yield from self._changes(folders[0], folders[1], f"{above}{name}/")
            if files[0] != files[1]:
                yield FileChange(f"{above}{name}", files[0], files[1])

    def _put_tree(self, files: Mapping[str, str]) -> str:
        here: list[TreeEntry] = []
        folders: dict[str, dict[str, str]] = {}
        for path, content in files.items():
            first, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(first, {})[rest] = content
            else:
                here.append(TreeEntry(path, content))
        here += [TreeEntry(name, self._put_tree(inside), FOLDER) for name, inside in folders.items()]
        return self.objects.put("tree", encode_tree(here))


def _message(info: VersionInfo, changes: tuple[FileChange, ...]) -> str:
    subject = _one_line(info.subject) or _subject(changes)
    why = info.why.strip()
    trailers = [("Writer", info.writer), ("Session", info.session), ("Message", info.message)]
    trailers += [("Reverses", info.reverses)]
    trailers += [("Reason", f"{name} — {reason}") for name, reason in info.reasons.items() if reason]
    lines = [f"{key}: {_one_line(value)}" for key, value in trailers if value]
    return "\n\n".join(part for part in (subject, why, "\n".join(lines)) if part) + "\n"


def _subject(changes: tuple[FileChange, ...]) -> str:
    topics = [change for change in changes if not change.name.endswith("MEMORY.md")] or list(changes)
    if len(topics) == 1:
        return f"{topics[0].verb.capitalize()} {_one_line(topics[0].name)}"
    verbs = [change.verb for change in topics]
    counted = [f"{verb} {verbs.count(verb)}" for verb in ("add", "change", "remove") if verb in verbs]
    return f"{', '.join(counted).capitalize()} files" if counted else "Nothing changed"


def _info(commit: GitCommit) -> VersionInfo:
    """Reads the message. A version made with git itself gets its author and its text."""
    paragraphs = commit.message.strip().split("\n\n")
    matches = [_TRAILER.fullmatch(line) for line in paragraphs[-1].split("\n")]
    trailers = [(match[1], match[2]) for match in matches if match]
    if len(trailers) != len(matches) or not any(key == "Writer" for key, _ in trailers):
        return VersionInfo(commit.author, "\n\n".join(paragraphs[1:]), subject=paragraphs[0])
    first = dict(reversed(trailers))
    reasons = (value.partition(" — ") for key, value in trailers if key == "Reason")
    return VersionInfo(
        writer=first["Writer"],
        why="\n\n".join(paragraphs[1:-1]),
        session=first.get("Session", ""),
        message=first.get("Message", ""),
        subject=paragraphs[0] if len(paragraphs) > 1 else "",
        reverses=first.get("Reverses", ""),
        reasons={name: reason for name, _, reason in reasons},
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
