"""The messages of one session: those from outside arrive here and wait for the next round of the main agent.

Messages from other sessions come over the socket and go into an inbox file of the session before they are
acknowledged. A team member also has the inbox of its team. The transcript decides which messages are read, so a kill
loses and repeats nothing. It shows nothing to a model itself and starts no turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from reverie.agents.messages.inbox_file import InboxFile, InboxReader
from reverie.agents.messages.message import AgentMessage, message_blocks, new_message
from reverie.agents.messages.messenger import Messenger, TeamMembership
from reverie.agents.messages.roster import MAIN, AgentMode, Member, Roster
from reverie.agents.messages.structured import Structured, parse
from reverie.errors import ReverieError, UserError
from reverie.events import Event, Notice
from reverie.session.parts import SessionParts
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.tools.base import Caller
from reverie.types import JsonObject, Origin, TextBlock

Control: TypeAlias = Callable[[AgentMessage, Structured], AgentMessage | None]
"""Acts on a message for the program. Returns the message that the model sees, or None."""
_HEAD = 2_000
_ID = frozenset("0123456789abcdef")


class SessionMessages:
    """The messages of one session. `roster` lists the agents in this process; `messenger` sends for all of them."""

    def __init__(self, parts: SessionParts, emit: Callable[[Event], None], is_busy: Callable[[], bool]) -> None:
        self._parts = parts
        self._emit = emit
        self._is_busy = is_busy
        self.roster = Roster()
        self.main = self.roster.add(Member(MAIN, MAIN, AgentMode.MAIN))
        self.messenger = Messenger(
            self.roster,
            parts.log.session_id,
            parts.places.projects,
            limit=lambda: int(self._number("letter_characters")),
        )
        self._spool = InboxFile(parts.places.session_inbox(parts.log.session_id), fsync=parts.settings.transcript.fsync)
        self._readers = [InboxReader(self._spool, parts.log)] if parts.lease is not None else []
        self._control: Control = lambda message, _structured: message
        self._backlog = deque[AgentMessage]()
        self._looking = asyncio.Lock()
        self._polling: asyncio.Task[None] | None = None
        self._reported = ""
        self.introduction = ""
        self._introduced_at: int | None = None

    async def send(self, caller: Caller, to: str, text: str, summary: str) -> str:
        """Sends a message for the SendMessage tool of everybody in this process."""
        return await self.messenger.send(None if caller.is_main else caller.agent_id, to, text, summary)

    @property
    def waiting(self) -> bool:
        """Whether there are messages that no turn has taken in yet."""
        return bool(len(self.main.inbox) or self._backlog)

    def drain(self, *, at_end: bool = False) -> list[TextBlock]:
        """Returns the messages for the main agent, to be recorded at once. `at_end`: only messages, if any."""
        self._fill_inbox()
        messages = message_blocks(self.main.inbox.drain())
        return messages if at_end and not messages else [*self._introduction_blocks(), *messages]

    def _introduction_blocks(self) -> list[TextBlock]:
        boundaries = self._parts.log.view.boundaries
        if not self.introduction or self._introduced_at == boundaries:
            return []
        self._introduced_at = boundaries
        return [TextBlock(self.introduction, Origin.CODE)]

    def join(self, team: TeamMembership, control: Control) -> None:
        """Makes this session a member of the team. It checks the team's inbox every `messages.poll_ms`."""
        self.main.name = team.name
        self.messenger.team = team
        self._control = control
        box = team.team.inbox(team.name, lock_s=self._number("lock_s"), largest=int(self._number("mailbox_bytes")))
        self._readers.append(InboxReader(box, self._parts.log))
        self._polling = asyncio.create_task(self._poll(), name="messages")

    async def close(self) -> None:
        """Stops checking. Messages that come too late stay where they are."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
            self._polling = None

    def verbs(self) -> Mapping[str, Callable[[JsonObject], Awaitable[JsonObject]]]:
        """Returns the verb `message`: another session writes to this one."""

        async def message(request: JsonObject) -> JsonObject:
            message = self._read_request(request)
            await asyncio.to_thread(self._spool.put, message)
            await self.look()
            return {"session": self._parts.log.session_id, "id": message.id}

        return {"message": message}

    async def _poll(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(self._number("poll_ms") / 1_000)

    async def look(self) -> None:
        """Takes in new messages, and lets the inboxes archive those that the transcript contains."""
        async with self._looking:
            for reader in self._readers:
                try:
                    found = await reader.look()
                except ReverieError as error:  # the edge of background work: reported once, tried again
                    self._notify_once(str(error))
                    continue
                if found.aside is not None:
                    self._notify_once(f"an inbox held something else than messages; it is now in {found.aside}")
                for message in found.messages:
                    self._take(message, reader)
        self._fill_inbox()

    def _take(self, message: AgentMessage, reader: InboxReader) -> None:
        # Messages over the socket come from outside the team, whatever name they give: they are only text.
        structured = None if reader.inbox is self._spool else parse(message.text)
        shown = message if structured is None else self._control(message, structured)
        if shown is None:
            reader.done(message.id)
            return
        self._backlog.append(self._shorten(shown))
        if self.messenger.team is None and not self._is_busy():
            about = shown.summary or " ".join(shown.text.split())[:80]
            self._emit(Notice(f"{shown.sender} wrote: {about} (read with your next message)", source="messages"))

    def _fill_inbox(self) -> None:
        """Moves as many messages into the inbox as may be shown at once, at least one."""
        room = self._number("round_characters") - sum(len(message.text) for message in self.main.inbox)
        while self._backlog and (room >= len(self._backlog[0].text) or not len(self.main.inbox)):
            message = self._backlog.popleft()
            room -= len(message.text)
            self.main.inbox.put(message)

    def _shorten(self, message: AgentMessage) -> AgentMessage:
        """Shortens a message that is too long: the whole is kept on disk, and its start is shown."""
        if len(message.text) <= self._number("letter_characters"):
            return message
        folder = self._parts.places.tool_results(self._parts.log.session_id)
        path = folder / f"letter-{message.id}.txt"
        try:
            make_private_dir(folder)
            write_atomic(path, message.text.encode("utf-8", "surrogatepass"), fsync=False)
        except ReverieError as error:
            self._notify_once(str(error))
            where = "It could not be kept on disk."
        else:
            where = f"The whole is in {path}."
        head = message.text[:_HEAD]
        return replace(message, text=f"{head}\n[{len(message.text):,} characters, the first {_HEAD:,} shown. {where}]")

    def _read_request(self, request: JsonObject) -> AgentMessage:
        sender, text, summary = request.get("from"), request.get("text"), request.get("summary") or ""
        if not isinstance(sender, str) or not isinstance(text, str) or not isinstance(summary, str) or not text.strip():
            raise UserError('A message needs "from" and "text", both text and not empty.')
        if len(text) > self._number("letter_characters"):
            raise UserError(f"The message has {len(text):,} characters; this session accepts fewer.")
        message = new_message(sender[:200], self._parts.log.session_id, text, summary=summary[:200])
        id = request.get("id")
        is_id = isinstance(id, str) and len(id) == len(message.id) and set(id) <= _ID
        return replace(message, id=id) if is_id else message

    def _notify_once(self, sentence: str) -> None:
        if sentence != self._reported:
            self._reported = sentence
            self._emit(Notice(sentence, "warning", "messages"))

    def _number(self, key: str) -> float:
        return self._parts.flags.number(f"messages.{key}", getattr(self._parts.settings.messages, key))
