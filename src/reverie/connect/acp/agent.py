"""The methods of the protocol: sessions are opened, loaded, forked, listed and closed here, and prompts find theirs.

A mistake of the client becomes one sentence in an error answer. The connection and the other sessions go on.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from acp import RequestError, schema
from acp.interfaces import Client

from reverie.connect.acp.capabilities import ANSWER
from reverie.connect.acp.conversation import Conversation
from reverie.connect.acp.host import Host
from reverie.connect.acp.mcp_servers import server_entries
from reverie.connect.acp.options import MODE, MODEL, list_options
from reverie.connect.acp.prompt import PromptBlock
from reverie.errors import ReverieError, UserError
from reverie.moments import iso
from reverie.paths import Places
from reverie.settings import load_settings
from reverie.storage.transcript.forking import fork_session
from reverie.storage.transcript.sessions import find_session, list_all_sessions, list_sessions

P = ParamSpec("P")
T = TypeVar("T")

_INVALID, _INTERNAL, _NOT_FOUND = -32602, -32603, -32002
_PAGE = 100


def _in_sentences(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Turns errors of Reverie into error answers."""

    @wraps(method)
    async def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except UserError as error:
            raise RequestError(_INVALID, str(error)) from error
        except ReverieError as error:
            raise RequestError(_INTERNAL, str(error)) from error

    return answer


class EditorAgent:
    """The agent that the SDK calls. One per process."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._client: Client | None = None
        self._open = dict[str, Conversation]()
        self._opening = asyncio.Lock()
        self.capabilities: schema.ClientCapabilities | None = None

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def close(self) -> None:
        """Closes all sessions at once."""
        open_ones, self._open = list(self._open.values()), {}
        await asyncio.gather(*(one.close() for one in open_ones))

    def note_capabilities(self, given: object) -> None:
        """Notes what the client can do, from a request that was answered before."""
        try:
            self.capabilities = schema.ClientCapabilities.model_validate(given)
        except ValueError:  # a client that says nothing, or nothing that is known, can do nothing
            self.capabilities = None

    # -- the connection ---------------------------------------------------------------------------------------------

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **_more: Any
    ) -> schema.InitializeResponse:
        del protocol_version  # there is one version
        self.note_capabilities(client_capabilities)  # the SDK lets a wrong value through
        return schema.InitializeResponse.model_validate(ANSWER)

    async def authenticate(self, method_id: str, **_more: Any) -> schema.AuthenticateResponse:
        del method_id  # keys are in the settings and the environment of the user
        return schema.AuthenticateResponse()

    # -- sessions ---------------------------------------------------------------------------------------------------

    @_in_sentences
    async def new_session(
        self, cwd: str, mcp_servers: Sequence[object] | None = None, **_more: Any
    ) -> schema.NewSessionResponse:
        async with self._opening:
            opened = await self._open_here(_folder(cwd), mcp_servers)
        return schema.NewSessionResponse(session_id=opened.id, **opened.state())

    @_in_sentences
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[object] | None = None, **_more: Any
    ) -> schema.LoadSessionResponse:
        opened = await self._reopen(cwd, session_id, mcp_servers)
        await opened.replay()
        return schema.LoadSessionResponse(**opened.state())

    @_in_sentences
    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[object] | None = None, **_more: Any
    ) -> schema.ResumeSessionResponse:
        opened = await self._reopen(cwd, session_id, mcp_servers)
        return schema.ResumeSessionResponse(**opened.state())

    @_in_sentences
    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[object] | None = None, **_more: Any
    ) -> schema.ForkSessionResponse:
        """Forks what the transcript holds. The new session is open at once; the old one does not change."""
        folder = _folder(cwd)
        here = self._open.get(session_id)
        if here is not None and here.is_busy:
            raise UserError("A turn is running in this session: fork it when the turn has ended.")
        places = Places.of(folder, load_settings(folder))
        source, name = _find(places, session_id), str(uuid.uuid4())
        notes, new_notes = places.session_notes(session_id), places.session_notes(name)
        await asyncio.to_thread(fork_session, source, places.transcript(name), notes=notes, new_notes=new_notes)
        async with self._opening:
            opened = await self._open_here(folder, mcp_servers, resume=name)
        return schema.ForkSessionResponse(session_id=opened.id, **opened.state())

    @_in_sentences
    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_more: Any
    ) -> schema.ListSessionsResponse:
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise UserError(f"{cursor[:40]!r} is not a cursor that this agent gave.")
        folder = _folder(cwd) if cwd is not None else Path.cwd()
        places = Places.of(folder, load_settings(folder))
        if cwd is not None:
            found = await asyncio.to_thread(list_sessions, places.project)
        else:
            found = await asyncio.to_thread(list_all_sessions, places.projects)
        rows = [
            schema.SessionInfo(
                session_id=one.id,
                cwd=one.cwd if cwd is None else str(folder),
                title=self._host.printable(one.title) or None,
                updated_at=iso(one.said),
            )
            for one in found
            if cwd is not None or one.cwd
        ]
        start = int(cursor or 0)
        more = str(start + _PAGE) if start + _PAGE < len(rows) else None
        return schema.ListSessionsResponse(sessions=rows[start : start + _PAGE], next_cursor=more)

    @_in_sentences
    async def close_session(self, session_id: str, **_more: Any) -> schema.CloseSessionResponse:
        self._find_open(session_id)
        await self._open.pop(session_id).close()
        return schema.CloseSessionResponse()

    async def _reopen(self, cwd: str, session_id: str, mcp_servers: Sequence[object] | None) -> Conversation:
        """Opens a session of the disk; one that this process has open stays as it is."""
        folder = _folder(cwd)
        async with self._opening:
            if (here := self._open.get(session_id)) is not None:
                if here.session.places.cwd != folder.resolve():
                    raise UserError(f"This session belongs to {here.session.places.cwd}.")
                return here
            _find(Places.of(folder, load_settings(folder)), session_id)
            return await self._open_here(folder, mcp_servers, resume=session_id)

    async def _open_here(
        self, folder: Path, mcp_servers: Sequence[object] | None, *, resume: str | None = None
    ) -> Conversation:
        assert self._client is not None
        given = server_entries(mcp_servers)
        session = await self._host.open(folder, resume=resume, mcp_servers=given)
        opened = self._open[session.id] = Conversation(session, self._client, self._host, self.capabilities, given)
        # After the answer: an editor knows the session only then.
        asyncio.get_running_loop().call_soon(opened.begin)
        return opened

    def _find_open(self, session_id: str) -> Conversation:
        if session_id not in self._open:
            raise RequestError(_NOT_FOUND, f"No session {session_id[:60]!r} is open here: create it, or load it first.")
        return self._open[session_id]

    # -- a session --------------------------------------------------------------------------------------------------

    @_in_sentences
    async def prompt(self, session_id: str, prompt: Sequence[PromptBlock], **_more: Any) -> schema.PromptResponse:
        return await self._find_open(session_id).prompt(prompt)

    async def cancel(self, session_id: str, **_more: Any) -> None:
        if session_id in self._open:
            self._open[session_id].cancel()

    @_in_sentences
    async def set_session_mode(self, session_id: str, mode_id: str, **_more: Any) -> schema.SetSessionModeResponse:
        self._find_open(session_id).change_mode(mode_id)
        return schema.SetSessionModeResponse()

    @_in_sentences
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_more: Any
    ) -> schema.SetSessionConfigOptionResponse:
        found = self._find_open(session_id)
        if config_id == MODE:
            found.change_mode(str(value))
        elif config_id == MODEL:
            await found.change_model(str(value))
        else:
            raise UserError(f"There is no option {config_id[:40]!r}; there are {MODE} and {MODEL}.")
        return schema.SetSessionConfigOptionResponse(config_options=list_options(found.session))


def _folder(cwd: str) -> Path:
    path = Path(cwd)
    if "\0" in cwd or not path.is_absolute() or not path.is_dir():
        raise UserError(f"{cwd[:200]!r} is not a folder: give the absolute path of one that exists.")
    return path


def _find(places: Places, session_id: str) -> Path:
    """Returns the transcript with exactly this id."""
    try:
        info = find_session(places.project, session_id)
    except UserError as error:
        raise RequestError(_NOT_FOUND, str(error)) from error
    if info.id != session_id:  # the command line also takes the start of an id, and `last`
        raise RequestError(_NOT_FOUND, f"There is no session {session_id[:60]!r} in {places.cwd}.")
    return info.path
