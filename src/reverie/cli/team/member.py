"""One member of a team as a process: opens its session, registers in the team, and works until it may end.

It writes its events to standard output, one JSON object per line. It ends at SIGTERM, or when standard input ends
because its parent process is gone.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from reverie.agents.definition import AgentDefinition, load_definitions
from reverie.agents.team.members import Team
from reverie.agents.team.team_file import MemberPlan, TeamPlan, introduce
from reverie.cli.event_loop import CommandSignals
from reverie.cli.run_view import JsonView
from reverie.errors import UserError
from reverie.paths import Places
from reverie.session import Session
from reverie.session.team_lead import Lead
from reverie.session.team_member import MemberRunner, Teammate
from reverie.settings import Settings, load_settings
from reverie.tools.base import Tool
from reverie.tools.registry import make_builtin_tools
from reverie.types import JsonObject

_ALWAYS = "SendMessage"


async def run_member(
    signals: CommandSignals, plan: TeamPlan, member: MemberPlan, *, cwd: Path, model: str | None, ask: bool
) -> int:
    """Runs the member. `ask`: a user can answer the questions of the lead."""
    cwd = cwd.resolve()
    given: JsonObject = {"permissions.allow": list(member.allow), "permissions.mode": member.permission_mode}
    overrides = {key: value for key, value in given.items() if value}
    settings = load_settings(cwd, overrides=overrides)
    places = Places.of(cwd, settings)
    kind = _kind(places, member)
    is_lead = member.name == plan.lead.name
    team, id = Team(places, plan.team), str(uuid.uuid4())
    color = next((one.color for one in team.read()[1] if one.name == member.name), "")
    # Registered first and released last: a free lease means that the process is gone.
    with team.take_lease(member.name, id, str(places.socket(id))) as lease:
        session = await Session.open(
            cwd=cwd,
            model=member.model or (kind.model if kind is not None else "") or model,
            session_id=id,
            interactive=ask if is_lead else True,  # a teammate's questions go to its lead
            overrides=overrides,
            tools=_tools(settings, kind),
        )
        async with session:
            session.messages.introduction = introduce(plan, member)
            if kind is not None:
                session.agents.become(kind)
            show = JsonView().show
            if is_lead:
                host: MemberRunner = Lead(session, lease, show, color=color)
            else:
                host = Teammate(session, lease, plan.lead.name, show, color=color, plan=member.plan)
            signals.cancel = host.stop
            _at_end_of_input(host.stop)
            return await host.run(plan.task if is_lead else member.task)


def _kind(places: Places, member: MemberPlan) -> AgentDefinition | None:
    if not member.agent:
        return None
    kinds = load_definitions(places).kinds
    if member.agent not in kinds:
        raise UserError(f"There is no agent {member.agent!r}; there are {', '.join(sorted(kinds))}.")
    return kinds[member.agent]


def _tools(settings: Settings, kind: AgentDefinition | None) -> tuple[Tool, ...] | None:
    if kind is None or kind.tools is None:
        return None
    return tuple(tool for tool in make_builtin_tools(settings.tools) if tool.name in (*kind.tools, _ALWAYS))


def _at_end_of_input(act: Callable[[], object]) -> None:
    """Calls `act` when standard input is closed."""
    loop = asyncio.get_running_loop()
    fd = sys.stdin.fileno()

    def readable() -> None:
        if not os.read(fd, 65_536):
            loop.remove_reader(fd)
            act()

    with suppress(PermissionError):  # a file such as /dev/null cannot be watched
        loop.add_reader(fd, readable)
