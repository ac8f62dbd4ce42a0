"""After a redaction, the old rows leave the pages of the tables: a vacuum soon after, not one per redaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from reverie.server.database import Database, NoDatabase

_WAIT_S: Final = 2.0  # the transaction ends meanwhile, and the next redactions join
_TABLES: Final = ("versions", "memories", "recall_words", "recall_vectors", "dreams")


class Clearing:
    """The next vacuum, if one is wanted. A process that ends before it leaves it to autovacuum."""

    def __init__(self, database: Callable[[], Database | None]) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def soon(self) -> None:
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._again:
            await asyncio.sleep(_WAIT_S)
            self._again = False
            with suppress(NoDatabase):
                database = self._database()
                if database is not None:
                    await database.vacuum(*_TABLES)
