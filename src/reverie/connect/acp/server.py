"""Runs the agent on standard input and output until the editor closes them, or a signal comes.

`initialize` is answered before the SDK and the rest of Reverie are loaded: an editor waits for it at every start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from reverie.connect.acp.capabilities import ANSWER, read_initialize
from reverie.connect.acp.wire import Wire

if TYPE_CHECKING:
    from reverie.connect.acp.host import Host


class EditorServer:
    """One connection. `stop` ends it as the end of the input does."""

    def __init__(self) -> None:
        self._wire: Wire | None = None
        self.closing = False

    def stop(self) -> bool:
        """Ends the connection; False if it is ending already."""
        if self.closing or self._wire is None:
            return False
        self._wire.stop()
        return True

    async def run(self, make_host: Callable[[], Host]) -> None:
        """Serves until the end, and closes every session then."""
        wire = self._wire = Wire()
        first = await wire.receive()
        if first is None:
            return
        params = read_initialize(first)
        if params is None:
            wire.put_back(first)
        else:
            await wire.send({"jsonrpc": "2.0", "id": first["id"], "result": ANSWER})

        from acp.agent.connection import AgentSideConnection

        from reverie.connect.acp.agent import EditorAgent

        _log_in_lines()
        agent = EditorAgent(make_host())
        agent.note_capabilities((params or {}).get("clientCapabilities"))
        connection = AgentSideConnection(cast(Any, agent), wire, listening=False, use_unstable_protocol=True)
        try:
            await connection.listen()
        finally:
            self.closing = True
            await agent.close()
            await connection.close()


class _OneLine(logging.Formatter):
    """A line per problem; the traceback of a mistake in a message helps nobody."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        record.exc_info, record.exc_text = None, None
        line = " ".join(super().format(record).split())
        return f"{line}: {' '.join(str(error).split())[:500]}" if error is not None else line


def _log_in_lines() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("reverie: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
