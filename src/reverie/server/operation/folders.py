"""A store as a folder of files, and a folder as memories of a store. The bytes are the same, so a memory directory
survives the way there and back. A file is called as the path of its memory says, with a mark in its name: others chose
the path, and no program obeys a file because of this name (`AGENTS.memory.md`, `Makefile.memory`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reverie.errors import StorageError, UserError
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.server import memories
from reverie.server.accounts import scopes_of
from reverie.server.audit import record_by_server
from reverie.server.gate import MOST_CONTENT, Author, check_content, check_path, has_hidden_name, hash_content
from reverie.server.operation.operator import Operator
from reverie.server.wire import ApiError
from reverie.storage.atomic import create_exclusive, make_private_dir, write_atomic

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from reverie.server.database import Database, Row

_AT_ONCE: Final = 100
_MARK: Final = ".memory"
_MEMORIES: Final = "memories"
_RENAMED: Final = "renamed"


@dataclass(frozen=True, slots=True)
class Exported:
    """How many files were written, and those that could not have their name: path of the memory and of its file."""

    files: int
    renamed: Mapping[str, str]


@dataclass(slots=True)
class Imported:
    """How many memories are new, changed, and as they were."""

    created: int = 0
    changed: int = 0
    same: int = 0


async def export_store(database: Database, store_id: str, folder: Path, actor: str) -> Exported:
    """Writes every memory of a store to `memories/` in a new or empty folder, as of one moment. What is hidden, or has
    a name that this disk cannot have, is in `renamed/` under its id."""
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty: name a new folder.")
    count, renamed = 0, dict[str, str]()
    async with database.as_owner() as connection:
        await connection.execute(b"set transaction isolation level repeatable read, read only")
        store = await _find_store(connection, store_id)
        make_private_dir(folder)
        async with connection.cursor(name="export") as cursor:
            cursor.itersize = _AT_ONCE
            await cursor.execute(
                "select id, path, content from memories where store_id = %s order by path", (store_id,)
            )
            async for row in cursor:
                if not _is_written(folder / _MEMORIES, row):
                    renamed[row["path"]] = f"{_RENAMED}/{row['id']}{_MARK}"
                    make_private_dir(folder / _RENAMED)
                    write_atomic(folder / renamed[row["path"]], row["content"].encode(), fsync=False)
                count += 1
    async with database.as_owner() as connection:
        await record_by_server(connection, "export store", store_id, organisation=store["organisation_id"], actor=actor)
    return Exported(count, renamed)


def _is_written(folder: Path, row: Row) -> bool:
    """Whether the memory has a file of its name now."""
    try:
        *above, name = check_path(row["path"])[1:].split("/")
        target = folder.joinpath(*above, f"{name[:-3]}{_MARK}.md" if name.endswith(".md") else f"{name}{_MARK}")
        make_private_dir(target.parent)
        return create_exclusive(target, row["content"].encode(), fsync=False)
    except (ApiError, StorageError):
        return False


async def import_files(
    operator: Operator, folder: Path, store_id: str, person: str, *, replaces: bool = False
) -> Imported:
    """Writes the files of a folder to a store in the name of a person, through the gate. Hidden files are left out."""
    connection = operator.connection
    store, who = await _find_store(connection, store_id), await operator.find("person", person)
    if store["scope"] not in await scopes_of(connection, who["id"]):
        raise UserError(
            f"{who['name']} is not a member of the scope of the store; `reverie serve stores` shows whose it is."
        )
    kind = "user_actor" if who["kind"] == "person" else "service_account_actor"
    author = Author(kind, who["id"], reason="imported from a folder")
    done = Imported()
    for path, content in _read_folder(folder):
        found = await connection.execute(
            "select id, sha256 from memories where store_id = %s and path = %s", (store_id, path)
        )
        there = await found.fetchone()
        if there is None:
            await memories.create(connection, store_id, author, path, content)
            done.created += 1
        elif there["sha256"] == hash_content(content):
            done.same += 1
        elif replaces:
            await memories.update(connection, store_id, there["id"], author, content=content)
            done.changed += 1
        else:
            raise UserError(f"{path} has another content in the store: --replace writes a new version of it.")
    await operator.note("import folder", store_id)
    return done


def _read_folder(folder: Path) -> Iterator[tuple[str, str]]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not has_hidden_name(one))
        for name in sorted(one for one in names if not has_hidden_name(one)):
            file = Path(root, name)
            try:
                content = read_regular(file, MOST_CONTENT + 1, follow=False).decode()
            except UnicodeDecodeError:
                raise UserError(f"{file} is not UTF-8 text; a memory is text.") from None
            path = "/" + file.relative_to(folder).as_posix()
            if path.removesuffix(".md").endswith(_MARK):
                path = f"{path.removesuffix('.md').removesuffix(_MARK)}{'.md' * path.endswith('.md')}"
            yield check_path(path), check_content(content)


async def _find_store(connection: AsyncConnection[Row], id: str) -> Row:
    if "\x00" not in id:
        row = await (await connection.execute("select * from stores where id = %s", (id,))).fetchone()
        if row is not None:
            return row
    raise UserError(f"There is no store {id[:80]!r}.")
