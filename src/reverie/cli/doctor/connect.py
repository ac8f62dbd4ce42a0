"""The checks of `reverie doctor` for agents that are connected: one line each, and one for the service. Reads only."""

from __future__ import annotations

from collections.abc import Iterator

from reverie.cli.connect.command import memory_steps
from reverie.cli.doctor.checks import Check
from reverie.connect.connecting import AGENTS
from reverie.connect.status import find_agents, find_memory, find_model, find_service
from reverie.paths import Places
from reverie.settings import Settings


def connect_checks(settings: Settings, places: Places) -> Iterator[Check]:
    """Whether the hooks in Claude Code and Codex work, and the entries in editors. Without any, there is no line."""
    agents = list(find_agents(settings, places))
    connected = [one for one in agents if one.agent in AGENTS and (one.files or one.elsewhere)]
    for one in agents:
        if one.files:
            parts = [f"connected in {', '.join(one.files)}", f"hooks {one.hooks}" if one.hooks else "", *one.serves]
            yield Check(one.agent, "ok", "; ".join(filter(None, parts)))
        elif one.elsewhere:
            yield Check(one.agent, "ok", f"not connected in this folder; connected in {', '.join(one.elsewhere)}")
        for what, todo in one.findings:
            yield Check(one.agent, "warning", what, todo)
    if connected:
        for step in memory_steps(settings, places):
            yield Check("memory", "warning", step)
        service = find_service(places)
        running = (
            f"PID {service.said['pid']}" if service.said is not None else "not running; starts with the next event"
        )
        if not service.findings:
            yield Check("service", "ok", running)
        for what, todo in (*service.findings, *find_memory(settings, places)[1], *find_model(settings, places)):
            yield Check("service", "warning", what, todo)
