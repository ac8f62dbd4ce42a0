"""A team: its members, which of them are running, and what each does. Processes share it through one folder.

`team.json` lists the members; the process that runs the team writes it. A running member holds a lease, a kernel lock
that ends with its process, with a short status. Nothing here starts or ends a process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from reverie.agents.messages.inbox_file import InboxFile
from reverie.agents.messages.message import AgentMessage, new_message
from reverie.agents.messages.structured import parse
from reverie.errors import UserError
from reverie.moments import modified_time
from reverie.parsing import load_json
from reverie.paths import Places, check_session_id
from reverie.paths.places import check_name
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.storage.lease import Lease
from reverie.storage.locks import exclusive
from reverie.storage.transcript.records import build
from reverie.types import JsonObject

_LOCK_S = 30.0
_SHOWN = 200
_ABANDONED_S = 3_600
COLORS = ("blue", "green", "magenta", "yellow", "cyan", "red")


class MembershipState(StrEnum):
    """The state of a member, as far as the process that runs the team knows."""

    EXPECTED = "expected"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TeamMember:
    """A member of a team. `about` is one line for the others; `why` says why it has ended."""

    name: str
    about: str = ""
    color: str = ""
    place: MembershipState = MembershipState.EXPECTED
    why: str = ""


@dataclass(frozen=True, slots=True)
class Presence:
    """The status that a running member reports. `woke` counts how often it started work."""

    pid: int
    session: str = ""
    socket: str = ""
    busy: bool = True
    woke: int = 0
    doing: str = ""


class Team:
    """The folder of a team. Any process may read it; one process writes the members."""

    def __init__(self, places: Places, name: str) -> None:
        self.name = name
        self.folder = places.team(name)
        self._places = places

    @property
    def file(self) -> Path:
        return self.folder / "team.json"

    @property
    def lock(self) -> Path:
        """Held by the process that runs the team."""
        return self.folder / "team.lock"

    def create(self, lead: str, members: list[TeamMember]) -> None:
        """Writes the members. Messages of an earlier run of this team go to the archive."""
        for folder in ("inboxes", "seats", "logs"):
            make_private_dir(self.folder / folder)
        for member in members:
            self.inbox(member.name).close()
        for left in (self.folder / "inboxes").glob(".*.tmp"):  # left by a killed writer
            with suppress(OSError):
                if time.time() - modified_time(left.stat()) > _ABANDONED_S:
                    left.unlink()
        self._write(lead, members)

    def read(self) -> tuple[str, tuple[TeamMember, ...]]:
        """Returns the lead's name and all members in the order of the team file. Raises UserError without a team."""
        try:
            raw: Any = load_json(read_regular(self.file))
            found = cast(JsonObject, raw)
            members = tuple(_member(entry) for entry in found["members"])
            return str(found["lead"]), members
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"There is no team {self.name!r} in {self.folder}: start one with `reverie team`."
            ) from error

    @property
    def lead(self) -> str:
        return self.read()[0]

    def names(self) -> list[str]:
        return [member.name for member in self.read()[1]]

    def depart(self, name: str, place: MembershipState, why: str = "") -> None:
        """Marks a member as ended, under the lock of its inbox, and sends its unread messages back."""

        def leave() -> None:
            with exclusive(self.folder / "team.json.lock", timeout_s=_LOCK_S, what=f"the team {self.name}"):
                lead, members = self.read()
                self._write(lead, [replace(m, place=place, why=why) if m.name == name else m for m in members])

        for message in self.inbox(name).close(leave):
            if parse(message.text) is None and message.sender != name:
                self._send_back(message, name)

    def _send_back(self, message: AgentMessage, name: str) -> None:
        about = message.summary or " ".join(message.text.split())[:_SHOWN]
        text = f"{name} has ended and did not read your message: {about}"
        back = new_message(name, message.sender, text, summary=f"not read by {name}")
        # If the sender has ended too, or is not a member, nobody is informed.
        with suppress(UserError):
            if message.sender in self.names():
                self.inbox(message.sender).put(back, is_open=lambda: self.is_reachable(message.sender))

    def inbox(self, name: str, *, lock_s: float = 30.0, largest: int = 64_000_000) -> InboxFile:
        return InboxFile(self._places.inbox(self.name, name), lock_wait_s=lock_s, largest=largest)

    def presence(self, name: str) -> Presence | None:
        """The status of a running member; None if it is not running."""
        body = Lease.holder(self._lease_path(name))
        return None if body is None else build(Presence, body) or Presence(int(body["pid"]))

    def is_reachable(self, name: str) -> bool:
        """Whether a message to this member will be read or come back: it runs, or the team still runs."""
        if not any(member.name == name and member.place is MembershipState.EXPECTED for member in self.read()[1]):
            return False
        return self.presence(name) is not None or Lease.holder(self.lock) is not None

    def take_lease(self, name: str, session_id: str, socket: str) -> MemberLease:
        """Takes the lease of a member for this process. Raises SessionBusy with the process that holds it."""
        if name not in self.names():
            raise UserError(f"{name!r} does not belong to the team {self.name}; these do: {', '.join(self.names())}.")
        make_private_dir(self.folder / "seats")
        info: JsonObject = {"session": check_session_id(session_id), "socket": socket, "busy": True, "woke": 0}
        return MemberLease(self, name, Lease.take(self._lease_path(name), info=info), info)

    def idle_wake_counts(self, without: str) -> Mapping[str, int] | None:
        """How often each member except `without` has woken, if all are idle and have no messages; else None.

        Two equal results in a row mean that nothing more can happen without `without`. Inboxes are read before leases,
        and a member is busy before it takes out a message, so work is visible in one of the two.
        """
        seen = dict[str, int]()
        for member in self.read()[1]:
            if member.name == without or member.place is not MembershipState.EXPECTED:
                continue
            if not self.inbox(member.name).is_empty:
                return None
            there = self.presence(member.name)
            if there is None or there.busy:
                return None  # it is starting, has just died, or works
            seen[member.name] = there.woke
        return seen

    def _lease_path(self, name: str) -> Path:
        return self.folder / "seats" / f"{check_name(name, 'agent name')}.lock"

    def _write(self, lead: str, members: list[TeamMember]) -> None:
        body = {"team": self.name, "lead": lead, "members": [asdict(member) for member in members]}
        write_atomic(self.file, json.dumps(body, indent=2).encode() + b"\n", fsync=False)


class MemberLease:
    """The lease of a member, held by this process. `Team.depart` marks the end of a member."""

    def __init__(self, team: Team, name: str, lease: Lease, info: JsonObject) -> None:
        self.team = team
        self.name = name
        self._lease = lease
        self._info = info
        self._woke = 0

    def set_busy(self) -> None:
        """Call it before a message is taken out of the inbox."""
        self._woke += 1
        self._say(busy=True, woke=self._woke, doing="")

    def set_idle(self) -> None:
        """Call it after the last message of the turn was sent."""
        self._say(busy=False, doing="")

    def set_doing(self, text: str) -> None:
        if text != self._info.get("doing"):
            self._say(doing=text)

    def release(self) -> None:
        """Gives the lease back, as the last action of the process. A second call does nothing."""
        self._lease.release()

    def __enter__(self) -> MemberLease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _say(self, **fields: object) -> None:
        self._info = {**self._info, **fields}
        self._lease.update(self._info)


def _member(raw: JsonObject) -> TeamMember:
    return TeamMember(
        name=str(raw["name"]),
        about=str(raw.get("about", "")),
        color=str(raw.get("color", "")),
        place=MembershipState(raw.get("place", MembershipState.EXPECTED)),
        why=str(raw.get("why", "")),
    )
