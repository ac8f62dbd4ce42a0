"""Vectors of memories: made after the change that needs them, by any server that has an encoder, some at a time. Until
then recall finds a memory by its words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from reverie.errors import ReverieError
from reverie.memory.recall.ranking.meaning import PASSAGES_VERSION, passages
from reverie.memory.topic_file import TopicFile

if TYPE_CHECKING:
    from reverie.memory.recall.encoder import SentenceEncoder
    from reverie.server.database import Database

_TOGETHER: Final = 16
_PAUSE_S: Final = 1.0
_AFTER_FAILURE_S: Final = 30.0
MOST_NUMBERS: Final = 1_200
"""Longer vectors do not fit into the index."""
_TAKEN: Final = timedelta(minutes=2)
_TAKE: Final = """
with taken as (
    update recall_waiting set taken_until = now() + %s where memory_id in (
        select memory_id from recall_waiting where taken_until is null or taken_until < now()
        order by since limit %s for update skip locked
    ) returning memory_id, since
)
select m.id, m.scope, m.path, m.content, t.since from taken t join memories m on m.id = t.memory_id
"""
_log = logging.getLogger("reverie.server")

OpenEncoder = Callable[[], "SentenceEncoder"]


class Vectors:
    """The encoder of a server, if there is one, in a thread of its own. `open_encoder` raises a `ReverieError` if there
    is none; then recall uses words only."""

    def __init__(self, open_encoder: OpenEncoder | None) -> None:
        self._open = open_encoder
        self._encoder: SentenceEncoder | None = None
        self._thread = ThreadPoolExecutor(1, "encoder")
        self.problem = "" if open_encoder else "There is no encoder."

    @property
    def name(self) -> str:
        """Names the vectors that can be compared with those of this encoder; empty without one."""
        return f"{self._encoder.identity}.{PASSAGES_VERSION}" if self._encoder else ""

    async def start(self) -> None:
        """Loads the encoder; afterwards `name` says whether there is one."""
        if self._open is None:
            return
        try:
            self._encoder = await asyncio.get_running_loop().run_in_executor(self._thread, self._open)
            (probe,) = await self.encode(["a"])
            if probe.count(",") >= MOST_NUMBERS:
                self._encoder, self.problem = None, f"Vectors may have {MOST_NUMBERS:,} numbers."
        except ReverieError as error:
            self.problem = str(error)

    async def encode(self, texts: Sequence[str]) -> list[str]:
        """The vectors, as PostgreSQL reads them."""
        encoder = self._encoder
        if encoder is None:
            return []

        def work() -> list[str]:
            return [f"[{','.join(format(value, '.5f') for value in row)}]" for row in encoder.encode(texts).tolist()]

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def keep_up(self, database: Database) -> None:
        """Encodes what waits, until it is cancelled. Several servers share the work."""
        while self.name:
            try:
                done = await self.encode_some(database)
            except ReverieError as error:
                _log.warning("vectors: %s", error)
                await asyncio.sleep(_AFTER_FAILURE_S)
                continue
            if done < _TOGETHER:
                await asyncio.sleep(_PAUSE_S)

    async def encode_some(self, database: Database) -> int:
        """Encodes some memories that wait, the oldest first; returns how many. Nothing is locked meanwhile: a memory
        that changes gets another `since`, and what was made of its old text is dropped."""
        async with database.as_owner() as connection:
            found = await connection.execute(_TAKE, (_TAKEN, _TOGETHER))
            rows = await found.fetchall()
        texts = [_passages(row["path"], row["content"]) for row in rows]
        vectors = iter(await self.encode([text for of_one in texts for text in of_one]))
        made = {row["id"]: [next(vectors) for _ in of_one] for row, of_one in zip(rows, texts, strict=True)}
        async with database.as_owner() as connection, connection.cursor() as cursor:
            for row in rows:
                await cursor.execute(
                    "delete from recall_waiting where memory_id = %s and since = %s", (row["id"], row["since"])
                )
                if not cursor.rowcount:
                    continue
                await cursor.execute("delete from recall_vectors where memory_id = %s", (row["id"],))
                await cursor.executemany(
                    "insert into recall_vectors (scope, memory_id, encoder, passage, vector) "
                    "values (%s, %s, %s, %s, %s)",
                    [(row["scope"], row["id"], self.name, place, one) for place, one in enumerate(made[row["id"]])],
                )
        return len(rows)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def _passages(path: str, content: str) -> list[str]:
    topic = TopicFile.parse(content)
    return passages(path, topic.name, topic.description, topic.body.strip())
