"""The result of a dream becomes memories: in the store that it has read, with the hashes of what it has read as
preconditions, or in a new store. What somebody changed meanwhile, and what the gate refuses, stays as it is."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.landing import land as land_in_folder
from reverie.layers.l6_dreaming.proposal import DreamRefused, Proposal, ProposedChange
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.lines import lead_of
from reverie.memory.topic_file import TopicFile, decode
from reverie.quick import dataclass
from reverie.server import memories, stores
from reverie.server.database import Principal, Row
from reverie.server.gate import Author, check_content, check_path, check_secrets, has_hidden_name, hash_content
from reverie.server.ids import new_id
from reverie.server.wire import ApiError
from reverie.storage.atomic import make_private_dir

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

_CHANGED: Final = "somebody changed it meanwhile"
_LONGEST_NAME: Final = 240
_LONGEST_FILE: Final = 240
"""Bytes of a file name: disks have 255, and the files of a dream are written beside a temporary one."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A memory as a dream wants it. No content: it is to go. No version before: it is new."""

    path: str
    content: str | None
    before_version: str | None = None
    before_sha256: str | None = None
    why: str = ""

    @property
    def operation(self) -> str:
        return "created" if self.before_sha256 is None else "deleted" if self.content is None else "modified"

    def note(self, state: str, why: str = "", after_version: str | None = None) -> dict[str, Any]:
        """What the row of the dream keeps of it: no content."""
        return {
            "path": self.path,
            "operation": self.operation,
            "state": state,
            "why": why or self.why,
            "before_version": self.before_version,
            "before_sha256": self.before_sha256,
            "after_version": after_version,
            "after_sha256": None if self.content is None else hash_content(self.content),
        }


def author_of(row: Row, reason: str = "") -> Author:
    """A dream acts for whoever asked for it, but is not that person: it is a session. An extraction is the session that
    it reads."""
    session = row["id"] if row["kind"] == "dream" else row["session_ids"][0]
    reason = reason or (f"dream {row['id']}" if row["kind"] == "dream" else f"extraction {row['id']}")
    return Author("session_actor", session, row["token_id"], reason, session)


def is_file_of_memory(path: str) -> bool:
    """Whether a dream sees this memory: Markdown without a hidden folder, as in a memory directory, with names that a
    disk can have."""
    parts = path.split("/")
    return path.endswith(".md") and not (
        has_hidden_name(path) or any(len(one.encode()) > _LONGEST_FILE for one in parts)
    )


async def read_files(connection: Connection, store_id: str) -> dict[str, Row]:
    """The memories of a store that a dream sees, by path."""
    found = await connection.execute(
        "select path, content, sha256, version_id, trust, updated_at from memories "
        "where store_id = %s and path like '%%.md' order by path",
        (store_id,),
    )
    return {row["path"]: row for row in await found.fetchall() if is_file_of_memory(row["path"])}


async def land(
    connection: Connection, store: Row, wanted: Sequence[FileChange], author: Author
) -> list[dict[str, Any]]:
    """Applies changes to a store that the caller has locked. Returns a note per change."""
    now = await rows_at(connection, store["id"], [one.path for one in wanted])
    left = dict[str, str]()
    for one in wanted:
        there = now.get(one.path)
        if (there["sha256"] if there else None) != one.before_sha256:
            left[one.path] = _CHANGED
        elif one.content is not None and (why := await _why_refused(one, there)):
            left[one.path] = why
    notes = [one.note("left", left[one.path]) for one in wanted if one.path in left]
    if left:
        wanted, more = await _rebase(connection, store["id"], wanted, left)
        notes += more
        now = await rows_at(connection, store["id"], [one.path for one in wanted])
    # First what goes: a file can become a folder.
    for one in sorted(wanted, key=lambda one: one.content is not None):
        try:
            async with connection.transaction():
                version = await _apply(connection, store["id"], one, now.get(one.path), author)
        except ApiError as error:
            notes.append(one.note("left", str(error)))
        else:
            notes.append(one.note("landed", after_version=version))
    return sorted(notes, key=lambda note: note["path"])


async def land_in_copy(
    connection: Connection, store: Row, wanted: Sequence[FileChange], author: Author, who: Principal, state: str
) -> tuple[Row, list[dict[str, Any]]]:
    """A new store with the memories of this one and the changes of a dream."""
    made = await stores.create(
        connection,
        who,
        {
            "name": f"{store['name'][:_LONGEST_NAME]} (dream)",
            "description": store["description"],
            "metadata": store["metadata"],
        },
        scope=store["scope"],
        purpose=f"dream of {store['id']}, {author.actor_id}",  # one per dream
    )
    await _copy(connection, store, made, [one.path for one in wanted], author)
    notes = list[dict[str, Any]]()
    before = await rows_at(connection, store["id"], [one.path for one in wanted])
    for one in wanted:
        there = before.get(one.path)
        try:
            if one.content is not None and (why := await _why_refused(one, there)):
                raise ApiError(400, why)
            async with connection.transaction():
                version = None
                if one.content is not None:
                    trust = _trust(one.path, one.content, there, author)
                    row = await memories.create(connection, made["id"], author, one.path, one.content, trust=trust)
                    version = row["version_id"]
        except ApiError as error:
            notes.append(one.note("left", str(error)))
        else:
            notes.append(one.note(state, after_version=version))
    return made, sorted(notes, key=lambda note: note["path"])


async def undo(connection: Connection, store: Row, notes: Sequence[Mapping[str, Any]], author: Author) -> list[Any]:
    """New versions that restore what a dream found, where nothing has changed since. Returns what was left, with the
    reason."""
    left = list[dict[str, str]]()
    landed = [note for note in notes if note["state"] == "landed"]
    now = await rows_at(connection, store["id"], [note["path"] for note in landed])
    found = await connection.execute(
        "select id, content, trust from versions where store_id = %s and id = any (%s) and content is not null",
        (store["id"], [note["before_version"] for note in landed if note["before_version"]]),
    )
    before = {row["id"]: row for row in await found.fetchall()}
    for note in sorted(landed, key=lambda note: note["operation"] != "created"):
        there, old = now.get(note["path"]), before.get(note["before_version"])
        gone = note["operation"] == "deleted"
        why = ""
        if (there is not None) if gone else (there is None or there["version_id"] != note["after_version"]):
            why = "it was changed since"
        elif old is None and note["operation"] != "created":
            why = "what was there before is redacted"
        else:
            try:
                async with connection.transaction():
                    if old is None and there is not None:
                        await memories.delete(connection, store["id"], there["id"], author)
                    elif old is not None and there is not None:
                        await memories.update(
                            connection, store["id"], there["id"], author, content=old["content"], trust=old["trust"]
                        )
                    elif old is not None:
                        await memories.create(
                            connection, store["id"], author, note["path"], old["content"], trust=old["trust"]
                        )
            except ApiError as error:
                why = str(error)
        if why:
            left.append({"path": note["path"], "reason": why})
    return left


async def _apply(
    connection: Connection, store_id: str, one: FileChange, there: Row | None, author: Author
) -> str | None:
    """Writes or removes one memory; the id of the version that shows it."""
    if one.content is None:
        if there is not None:
            await memories.delete(connection, store_id, there["id"], author, expected=one.before_sha256)
        return None
    trust = _trust(one.path, one.content, there, author)
    if there is None:
        row = await memories.create(connection, store_id, author, one.path, one.content, trust=trust)
    else:
        row = await memories.update(
            connection, store_id, there["id"], author, content=one.content, expected=one.before_sha256, trust=trust
        )
    return row["version_id"]


def _trust(path: str, content: str, there: Row | None, author: Author) -> str:
    """A memory keeps its trust as long as it begins with the same statement."""
    if there is not None and lead_of(TopicFile.parse(there["content"])) == lead_of(TopicFile.parse(content)):
        return there["trust"]
    return author.trust_in(path, content)


async def _why_refused(one: FileChange, there: Row | None) -> str:
    try:
        check_path(one.path)
        await check_secrets(one.path, check_content(one.content or ""), there["content"] if there else "")
    except ApiError as error:
        return str(error)
    return ""


async def rows_at(connection: Connection, store_id: str, paths: Sequence[str]) -> dict[str, Row]:
    found = await connection.execute(
        "select * from memories where store_id = %s and path = any (%s)", (store_id, list(paths))
    )
    return {row["path"]: row for row in await found.fetchall()}


async def _rebase(
    connection: Connection, store_id: str, wanted: Sequence[FileChange], left: Mapping[str, str]
) -> tuple[list[FileChange], list[dict[str, Any]]]:
    """The changes that remain if some files stay as they are: what was to move into those stays too, and the index
    follows. The rules are those of a dream in a folder."""
    files = await read_files(connection, store_id)
    before = {one.path: one for one in wanted}
    changes = [
        ProposedChange(one.path[1:], files[one.path]["content"] if one.path in files else None, one.content, one.why)
        for one in wanted
    ]
    texts = {path[1:]: row["content"] for path, row in files.items()}
    without = {path[1:]: why for path, why in left.items()}
    after, kept = await asyncio.to_thread(_rebase_in_folder, texts, changes, without)
    rebased = [
        FileChange(
            f"/{name}",
            content,
            files[f"/{name}"]["version_id"] if f"/{name}" in files else None,
            files[f"/{name}"]["sha256"] if f"/{name}" in files else None,
            before[f"/{name}"].why if f"/{name}" in before else "the index follows the files",
        )
        for name, content in after.items()
    ]
    notes = [
        before[f"/{name}"].note("left", why.removeprefix(f"{name}: "))
        for name, why in kept.items()
        if name not in without and f"/{name}" in before
    ]
    return rebased, notes


def _rebase_in_folder(
    texts: Mapping[str, str], changes: Sequence[ProposedChange], without: Mapping[str, str]
) -> tuple[dict[str, str | None], Mapping[str, str]]:
    with tempfile.TemporaryDirectory(prefix="reverie-landing-") as folder:
        root = Path(folder) / "memory"
        write_files(root, texts)
        copy = MemoryCopy(root, root, {})
        copy.base = copy.files()
        proposal = Proposal(id="0" * 8, created=time.time(), changes=tuple(changes))
        try:
            landed = land_in_folder(
                MemoryDirectory.open(root, gate=lambda _write: None),
                proposal,
                WriteInfo(Writer.DREAM, "Dream."),
                without=without,
            )
        except DreamRefused:
            return {}, {change.name: "it belongs to what stays as it is" for change in changes}
        after = {one.name: None if one.after is None else decode(one.after) for one in copy.changes()}
        return after, landed.left


def write_files(root: Path, texts: Mapping[str, str]) -> None:
    """Writes the files of a memory directory, byte for byte."""
    make_private_dir(root)
    for name, text in texts.items():
        make_private_dir((root / name).parent)
        (root / name).write_bytes(text.encode())


async def _copy(connection: Connection, store: Row, made: Row, without: Sequence[str], author: Author) -> None:
    """Copies the memories of a store into a new one, each with its trust and where it came from."""
    found = await connection.execute(
        "select id from memories where store_id = %s and not path = any (%s) order by path",
        (store["id"], list(without)),
    )
    ids = [row["id"] for row in await found.fetchall()]
    given = {
        "store": made["id"],
        "ids": ids,
        "memories": [new_id("mem") for _ in ids],
        "versions": [new_id("memver") for _ in ids],
        "actor_type": author.actor_type,
        "actor_id": author.actor_id,
        "token": author.token_id,
        "reason": author.reason,
        "session": author.session_id,
    }
    source = (
        "from unnest(%(ids)s::text[], %(memories)s::text[], %(versions)s::text[]) "
        "with ordinality as t (source, memory, version, n) join memories m on m.id = t.source"
    )
    await connection.execute(
        "insert into versions (id, store_id, scope, memory_id, number, operation, path, content, sha256, size, trust, "
        "actor_type, actor_id, token_id, reason, session_id, copied_from) "
        "select t.version, %(store)s, m.scope, t.memory, t.n, 'created', m.path, m.content, m.sha256, m.size, m.trust, "
        "%(actor_type)s, %(actor_id)s, %(token)s, %(reason)s, %(session)s, jsonb_build_object("
        f"'memory_store_id', m.store_id, 'memory_id', m.id, 'memory_version_id', m.version_id) {source}".encode(),
        given,
    )
    await connection.execute(
        "insert into memories "
        "(id, store_id, scope, path, content, sha256, size, version_id, number, trust, created_at, updated_at) "
        "select t.memory, %(store)s, m.scope, m.path, m.content, m.sha256, m.size, t.version, t.n, m.trust, "
        f"now(), now() {source}".encode(),
        given,
    )
    await connection.execute("update stores set counter = counter + %s where id = %s", (len(ids), made["id"]))
