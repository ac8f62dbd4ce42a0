"""The audit log: who did what that others may ask about later. It has ids and names, never contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.server.database import Principal, Row

if TYPE_CHECKING:
    from psycopg import AsyncConnection


async def record(connection: AsyncConnection[Row], who: Principal, action: str, object: str) -> None:
    """Adds a row in the transaction of the request: it is there if, and only if, the action is done."""
    await connection.execute(
        "insert into audit (organisation_id, person_id, token_id, action, object) values (%s, %s, %s, %s, %s)",
        (who.organisation_id, who.person_id, who.token_id, action, object),
    )


async def record_by_server(
    connection: AsyncConnection[Row],
    action: str,
    object: str,
    *,
    organisation: str | None = None,
    outcome: str = "done",
    actor: str = "",
) -> None:
    """Adds a row as the owner: for what no token did, such as a refused token or a command of the operator."""
    await connection.execute(
        "insert into audit (organisation_id, action, object, outcome, actor) values (%s, %s, %s, %s, %s)",
        (organisation, action, object, outcome, actor),
    )
