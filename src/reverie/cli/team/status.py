"""`reverie team status` and `reverie team stop`: shows teams from outside, and asks a team to end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from reverie.agents.team.members import MembershipState, Team
from reverie.cli.options import load_places
from reverie.cli.output import answer, pad
from reverie.errors import ReverieError, UserError
from reverie.parsing import load_json
from reverie.paths import Places
from reverie.regular_files import read_regular
from reverie.storage.lease import Lease
from reverie.text.columns import cut
from reverie.types import JsonObject

_SPARE_S = 5.0


def show_status(name: str | None, as_json: bool, places: Places) -> None:
    """Prints one team, or all teams."""
    teams = [name] if name is not None else _names(places)
    found = [_status(Team(places, one)) for one in teams]
    lines = [line for status in found for line in _lines(status)]
    answer(as_json, found if name is None else found[0], *(lines or ["No teams."]))


def _lines(status: JsonObject) -> Iterator[str]:
    running = f"running (PID {status['pid']})" if status["pid"] else "not running"
    yield f"{status['team']}: {running}"
    members = cast("list[JsonObject]", status["members"])
    wide = max((len(str(member["name"])) for member in members), default=0)
    for member in members:
        unread = f", {member['unread']} unread" if member["unread"] else ""
        why = f": {member['why']}" if member["why"] else ""
        lead = " (lead)" if member["name"] == status["lead"] else ""
        doing = f" {member['doing']}" if member["doing"] else ""
        yield cut(f"  {pad(str(member['name']), wide)}  {member['state']}{doing}{unread}{why}{lead}", 200)


def running_lines(places: Places) -> list[str]:
    """One line per member of every running team, for `/tasks` in the chat."""
    lines = list[str]()
    for status in (_status(Team(places, name)) for name in _names(places)):
        if status["pid"] is None:
            continue
        for member in cast("list[JsonObject]", status["members"]):
            doing = f" {member['doing']}" if member["doing"] else ""
            lines.append(f"{status['team']}/{member['name']} {member['state']}{doing}: {member['about']}".rstrip(": "))
    return lines


def stop_team(name: str, as_json: bool, cwd: Path) -> None:
    """Ends the process that runs the team, or its members if that process is gone, and waits for the end."""
    settings, places = load_places(cwd)
    team = Team(places, name)
    team.read()
    holder = Lease.holder(team.lock)
    pids = [int(holder["pid"])] if holder is not None else _running_pids(team)
    if not pids:
        raise UserError(f"The team {name} is not running.")
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    given = settings.messages
    until = time.monotonic() + given.shutdown_s + given.kill_s + _SPARE_S
    while time.monotonic() < until:
        if Lease.holder(team.lock) is None and not _running_pids(team):
            answer(as_json, {"team": name, "ended": True}, f"The team {name} has ended.")
            return
        time.sleep(0.2)
    raise ReverieError(f"The team {name} was asked to end, but still runs (PID {', '.join(map(str, pids))}).")


def _status(team: Team) -> JsonObject:
    lead, members = team.read()
    holder = Lease.holder(team.lock)
    shown = list[JsonObject]()
    for member in members:
        there = team.presence(member.name)
        if there is not None:
            state = "busy" if there.busy else "idle"
        else:
            state = "away" if member.place is MembershipState.EXPECTED else member.place.value
        shown.append(
            {
                "name": member.name,
                "state": state,
                "doing": there.doing if there is not None else "",
                "pid": there.pid if there is not None else None,
                "session": there.session if there is not None else None,
                "unread": _unread(team, member.name),
                "why": member.why,
                "about": member.about,
            }
        )
    return {"team": team.name, "lead": lead, "pid": holder["pid"] if holder is not None else None, "members": shown}


def _unread(team: Team, name: str) -> int:
    try:
        found: Any = load_json(read_regular(team.inbox(name).path) or b"[]")
    except (OSError, ValueError):
        return 0
    return len(cast("list[Any]", found)) if isinstance(found, list) else 0


def _running_pids(team: Team) -> list[int]:
    return [there.pid for name in team.names() if (there := team.presence(name)) is not None]


def _names(places: Places) -> list[str]:
    return sorted(path.parent.name for path in (places.home / "teams").glob("*/team.json"))
