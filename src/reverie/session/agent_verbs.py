"""What may be asked of a session about its agents, as verbs: for commands, and for the socket of a live session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from reverie.agents.messages.roster import Member, AgentMode
from reverie.agents.spawn import Spawner
from reverie.errors import UserError
from reverie.runtime.tasks import Tasks
from reverie.types import JsonObject

Verb = Callable[[JsonObject], Awaitable[JsonObject]]


def agent_verbs(spawner: Spawner, tasks: Tasks, ask_aside: Callable[[str], Awaitable[str]]) -> Mapping[str, Verb]:
    """The handlers of one session, by verb."""

    async def agents(_request: JsonObject) -> JsonObject:
        return {"agents": [agent_json(spawner, tasks, member) for member in at_work(spawner)]}

    async def aside(request: JsonObject) -> JsonObject:
        question = request.get("question")
        if not isinstance(question, str):
            raise UserError("question must be text")
        return {"answer": await ask_aside(question)}

    return {"agents": agents, "aside": aside}


def at_work(spawner: Spawner) -> list[Member]:
    """The agents that this session started and that are still there, each after the one that started it."""
    roster = spawner.roster

    def below(id: str) -> list[Member]:
        return [found for member in roster.children(id) for found in (member, *below(member.id))]

    return below(spawner.main.member.id)


def agent_json(spawner: Spawner, tasks: Tasks, member: Member) -> JsonObject:
    """One agent as programs read it."""
    seconds = {info.id: info.seconds for info in tasks.running}
    return {
        "id": member.id,
        "name": member.name,
        "mode": member.mode.value,
        "state": member.state.value,
        "title": member.title,
        "doing": member.doing,
        "parent": member.parent if member.mode is not AgentMode.MAIN else None,
        "depth": spawner.roster.depth(member.id),
        "seconds": round(seconds.get(member.id, 0.0), 1),
    }
