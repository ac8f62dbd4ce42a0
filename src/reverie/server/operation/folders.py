"""A store as a folder of files, and a folder as memories of a store. The path of a memory is the path of its file, and
the bytes are the same, so a memory directory survives the way there and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.server import memories
from reverie.server.accounts import scopes_of
from reverie.server.audit import record_by_server
from reverie.server.gate import MOST_CONTENT, Author, check_content, check_path, hash_content
from reverie.server.operation.operator import Operator
from reverie.storage.atomic import create_exclusive, make_private_dir

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from reverie.server.database import Database, Row

_AT_ONCE: Final = 100


@dataclass(slots=True)
class Imported:
    """How many memories are new, changed, and as they were."""

    created: int = 0
    changed: int = 0
    same: int = 0


async def export_store(database: Database, store_id: str, folder: Path, actor: str) -> int:
    """Writes every memory of a store to a new or empty folder, as of one moment; returns how many."""
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty: name a new folder.")
    count = 0
    async with database.as_owner() as connection:
        await connection.execute(b"set transaction isolation level repeatable read, read only")
        store = await _find_store(connection, store_id)
        make_private_dir(folder)
        async with connection.cursor(name="export") as cursor:
            cursor.itersize = _AT_ONCE
            await cursor.execute("select path, content from memories where store_id = %s order by path", (store_id,))
            async for row in cursor:
                target = folder.joinpath(*check_path(row["path"]).split("/")[1:])
                make_private_dir(target.parent)
                if not create_exclusive(target, row["content"].encode(), fsync=False):
                    raise UserError(f"{row['path']}: this disk has no two files of names that differ so little.")
                count += 1
    async with database.as_owner() as connection:
        await record_by_server(connection, "export store", store_id, organisation=store["organisation_id"], actor=actor)
    return count


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
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for name in sorted(one for one in names if not one.startswith(".")):
            file = Path(root, name)
            try:
                content = read_regular(file, MOST_CONTENT + 1, follow=False).decode()
            except UnicodeDecodeError:
                raise UserError(f"{file} is not UTF-8 text; a memory is text.") from None
            path = "/" + file.relative_to(folder).as_posix()
            yield check_path(path), check_content(content)


async def _find_store(connection: AsyncConnection[Row], id: str) -> Row:
    if "\x00" not in id:
        row = await (await connection.execute("select * from stores where id = %s", (id,))).fetchone()
        if row is not None:
            return row
    raise UserError(f"There is no store {id[:80]!r}.")
