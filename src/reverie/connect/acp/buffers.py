"""The files in the editor, through the client: what the user sees counts, even if it is not saved.

Only files below the folder of the session are asked for. The permission for a call is decided before; this only says
where the text of the file is.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from acp import RequestError, schema
from acp.interfaces import Client

from reverie.errors import UserError

_WAIT_S = 5.0


class EditorBuffers:
    """The buffers of one session's client. `None` from `of`: the client does not offer its files."""

    def __init__(self, client: Client, session_id: str, root: Path, *, writes: bool) -> None:
        self._client = client
        self._session_id = session_id
        self._root = root
        self._writes = writes

    @staticmethod
    def of(
        client: Client, capabilities: schema.ClientCapabilities | None, session_id: str, root: Path
    ) -> EditorBuffers | None:
        files = capabilities.fs if capabilities is not None else None
        if not isinstance(files, schema.FileSystemCapabilities) or not files.read_text_file:
            return None
        return EditorBuffers(client, session_id, root, writes=bool(files.write_text_file))

    async def text_of(self, path: Path) -> str | None:
        """Returns the text that the editor shows; None if it has none, or does not answer in time."""
        if not path.is_relative_to(self._root):
            return None
        try:
            async with asyncio.timeout(_WAIT_S):
                found = await self._client.read_text_file(self._session_id, str(path))
        except (RequestError, ConnectionError, TimeoutError, ValueError):
            return None
        return found.content

    async def write(self, path: Path, text: str) -> None:
        """Puts the text into the editor, which saves it. Raises UserError if it does not."""
        if not self._writes:
            raise UserError(f"{path} has changes in the editor that are not saved: ask the user to save it first.")
        try:
            async with asyncio.timeout(_WAIT_S):
                await self._client.write_text_file(self._session_id, str(path), text)
        except (RequestError, ConnectionError, TimeoutError, ValueError) as error:
            raise UserError(f"The editor did not save {path}: {str(error) or 'no answer'}.") from error
