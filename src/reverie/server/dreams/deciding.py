"""What people decide about a dream: they look at its changes, land or discard what waits, and undo what landed. Runs as
the caller, in the transaction of the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reverie.layers.l6_dreaming.proposal import ProposedChange
from reverie.server import stores
from reverie.server.database import Principal, Row
from reverie.server.dreams import landing, rows
from reverie.server.dreams.landing import FileChange, author_of
from reverie.server.gate import Author
from reverie.server.wire import ApiError, take_row

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]


async def show_changes(connection: Connection, id: str, *, kind: str = "dream") -> dict[str, Any]:
    """What a dream has changed or wants to change, with a diff per memory. A redacted text is not there."""
    row = await rows.find(connection, id, kind=kind)
    notes = row["changes"]
    ids = [note[name] for note in notes for name in ("before_version", "after_version") if note[name]]
    found = await connection.execute("select id, content from versions where id = any (%s)", (ids,))
    texts = {one["id"]: one["content"] for one in await found.fetchall()}
    edited = None
    if row["review"] == "pending":  # the proposal may have been edited
        there = await landing.rows_at(connection, row["output_store_id"], [note["path"] for note in notes])
        edited = {path: one["content"] for path, one in there.items()}
    return {"data": [_show(note, texts, edited) for note in notes], "summary": row["summary"], "review": row["review"]}


def _show(note: dict[str, Any], texts: dict[str, str | None], edited: dict[str, str] | None) -> dict[str, Any]:
    before = texts.get(note["before_version"])
    after = texts.get(note["after_version"]) if edited is None else edited.get(note["path"])
    is_known = (before is not None) == (note["before_version"] is not None) and note["state"] != "left"
    is_known = is_known and (edited is not None or (after is not None) == (note["after_version"] is not None))
    diff = ProposedChange(note["path"][1:], before, after, note["why"]).diff() if is_known else None
    return {
        "type": "dream_change",
        "path": note["path"],
        "operation": note["operation"],
        "state": note["state"],
        "reason": note["why"],
        "before_version_id": note["before_version"],
        "after_version_id": note["after_version"],
        "diff": diff,
    }


async def land(connection: Connection, who: Principal, id: str) -> Row:
    """Applies a proposal to its store, as it is in the proposal store now. That store is archived."""
    row = await _find_waiting(connection, id)
    store = await stores.find(connection, row["store_id"], locks=True, may_be_archived=False)
    proposed = await landing.rows_at(connection, row["output_store_id"], [note["path"] for note in row["changes"]])
    wanted = [
        FileChange(
            note["path"],
            proposed[note["path"]]["content"] if note["path"] in proposed else None,
            note["before_version"],
            note["before_sha256"],
            note["why"],
        )
        for note in row["changes"]
        if note["state"] == "proposed"
    ]
    wanted = [one for one in wanted if one.content is not None or one.before_sha256 is not None]
    author = author_of({**row, "token_id": who.token_id}, f"dream {row['id']}, accepted by {who.person_id}")
    notes = await landing.land(connection, store, wanted, author)
    notes += [note for note in row["changes"] if note["state"] == "left"]
    if row["output_store_id"] is not None:
        await stores.archive(connection, row["output_store_id"])
    return await _settle(connection, row, "landed", store["id"], notes)


async def discard(connection: Connection, id: str) -> Row:
    """Drops a proposal and its store."""
    row = await _find_waiting(connection, id)
    await connection.execute("delete from stores where id = %s and id <> %s", (row["output_store_id"], row["store_id"]))
    return await _settle(connection, row, "discarded", None, row["changes"])


async def undo(connection: Connection, id: str, author: Author, *, kind: str = "dream") -> dict[str, Any]:
    """Takes back what landed in the store that the dream has read. `left` names what was changed since."""
    row = await rows.find(connection, id, kind=kind, locks=True)
    if row["review"] != "landed":
        why = {"pending": "waits for a decision", "discarded": "was discarded", "undone": "is undone already"}
        said = why.get(row["review"] or "", "has not changed its memory store")
        raise ApiError(400, f"There is nothing to undo: the {kind} {said}.")
    store = await stores.find(connection, row["store_id"], locks=True, may_be_archived=False)
    left = await landing.undo(connection, store, row["changes"], author)
    changed = await _settle(connection, row, "undone", row["output_store_id"], row["changes"])
    return {**rows.show(changed), "left": left}


async def _find_waiting(connection: Connection, id: str) -> Row:
    row = await rows.find(connection, id, locks=True)
    if row["review"] != "pending":
        raise ApiError(400, f"The dream does not wait for a decision ({row['review'] or row['status']}).")
    return row


async def _settle(connection: Connection, row: Row, review: str, output: str | None, notes: list[Any]) -> Row:
    from psycopg.types.json import Jsonb

    changed = await connection.execute(
        "update dreams set review = %s, output_store_id = %s, changes = %s where id = %s returning *",
        (review, output, Jsonb(notes), row["id"]),
    )
    return await take_row(changed, row["kind"], row["id"])
