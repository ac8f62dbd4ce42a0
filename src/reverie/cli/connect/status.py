"""`reverie connect --status`: what is connected, whether it works, what it spent, and what would fix a problem."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any

from reverie.cli.connect.command import memory_steps
from reverie.cli.output import answer, exact, format_age, get_paint, plural
from reverie.connect.connecting import AGENTS
from reverie.connect.editors import EDITORS
from reverie.connect.status import (
    AgentState,
    Finding,
    ServiceState,
    find_agents,
    find_memory,
    find_model,
    find_service,
)
from reverie.context.day_book import DayBook
from reverie.daemon.skipped import Skipped, find_skipped
from reverie.daemon.told import ToldBook
from reverie.flags import Flags
from reverie.models.prices import format_dollars
from reverie.moments import parse_time
from reverie.paths import Places
from reverie.paths.places import hooks_folder
from reverie.runtime.background_log import BackgroundLog, LogEntry
from reverie.settings import Settings


def show_status(settings: Settings, places: Places, agent: str | None, as_json: bool) -> int:
    """Shows the state of all agents, or of one. Returns 1 if something does not work."""
    agents = [one for one in find_agents(settings, places) if agent in (None, one.agent)]
    service, (memory, other) = find_service(places), find_memory(settings, places)
    connected = [one for one in agents if one.agent in AGENTS and (one.files or one.elsewhere)]
    spent = DayBook(places.day_books).today()
    compaction = next(iter(BackgroundLog(places.background_log).read(1, kind="compaction_measured")), None)
    given = ToldBook(hooks_folder(places.home)).today()
    figures = {
        "tokens_today": spent.tokens,
        "dollars_today": spent.dollars,
        "limit_tokens": _limit(settings, places),
    }
    skipped = find_skipped(places.home, BackgroundLog(places.background_log))
    findings = [finding for one in agents for finding in one.findings]
    if connected:
        findings += [*service.findings, *other, *find_model(settings, places)]
    said = {
        "agents": [_as_json(one) for one in agents],
        "service": service.said,
        "skipped": skipped._asdict(),
        "memory": memory,
        "added_tokens_today": given,
        "background": figures,
        "last_compaction": compaction.to_json() if compaction is not None else None,
        "problems": [finding._asdict() for finding in findings],
    }
    lines = [
        *(line for one in agents for line in _agent_lines(one)),
        *_other_editors(agents),
        *(_service_lines(service) if connected else ()),
        *_skipped_lines(skipped),
        *_compaction_lines(compaction),
        *([f"added        to prompts: {given:,} of {_limits(settings)}"] if connected else ()),
        f"memory       {exact(memory)}",
        *(f"             {step}" for step in memory_steps(settings, places)),
        f"background   {settings.connect.model}: {spent.tokens:,.0f} of {figures['limit_tokens']:,} tokens today"
        f", {format_dollars(spent.dollars)}",
    ]
    lines += [line for finding in findings for line in _finding_lines(finding)]
    answer(as_json, said, *lines)
    return 1 if findings else 0


def _limits(settings: Settings) -> str:
    limits = settings.connect
    each = f"at most {limits.session_tokens:,} per session and {limits.prompt_characters:,} characters per prompt"
    return f"{limits.day_tokens:,} tokens today, {each}"


def _limit(settings: Settings, places: Places) -> int:
    with closing(Flags.open(places, settings)) as flags:
        return flags.number("budget.background_tokens_per_day", settings.budget.background_tokens_per_day)


def _as_json(one: AgentState) -> dict[str, Any]:
    return {**asdict(one), "findings": [finding._asdict() for finding in one.findings], "connected": bool(one.files)}


def _agent_lines(one: AgentState) -> Iterator[str]:
    serves = f"{' and '.join(map(str.upper, one.serves))}" if one.serves else ""
    if one.agent in EDITORS:
        if one.files or one.elsewhere:
            yield f"{one.agent:12} starts Reverie{f' over {serves}' if serves else ''}: {exact(', '.join(one.files))}"
            yield from (f"             and in another project: {exact(path)}" for path in one.elsewhere)
        return
    if not one.files:
        where = " in this folder" if one.elsewhere else ""
        yield f"{one.agent:12} not connected{where} (to connect: `reverie connect {one.agent}`)"
        yield from (f"             connected in another project: {exact(path)}" for path in one.elsewhere)
        return
    yield f"{one.agent:12} connected in {', '.join(map(exact, one.files))}"
    yield f"             plug-in {one.version or '(gone)'}, hooks {one.hooks}{f', {serves} server' if serves else ''}"


def _other_editors(agents: Sequence[AgentState]) -> Iterator[str]:
    others = [one.agent for one in agents if one.agent in EDITORS and not (one.files or one.elsewhere)]
    if others:
        yield f"editors      not connected: {', '.join(others)}"


def _service_lines(service: ServiceState) -> Iterator[str]:
    said: Any = service.said
    if said is None or not said["answers"]:
        yield "service      not running; it starts with the next event of an agent"
        return
    age = format_age(float(said["started"]), time.time())
    yield f"service      PID {said['pid']}, for {age}, {plural(int(said['events']), 'event')}"
    hooks: Any = said.get("hooks", {})
    for agent, one in hooks.get("agents", {}).items():
        at = parse_time(one.get("last_time"))
        ago = f" {format_age(at.timestamp())} ago" if at is not None else ""
        yield f"             {agent}: {plural(int(one.get('events', 0)), 'event')}, last {one.get('last_event')}{ago}"
    if failed := int(said.get("jobs", {}).get("failed", 0)):
        yield f"             {plural(failed, 'background job')} failed; `reverie log --kind hook` says why"


def _skipped_lines(skipped: Skipped) -> Iterator[str]:
    """Events that reached no service: their sessions are learnt from when it runs again."""
    if skipped.events:
        waiting = f"; {skipped.waiting} wait for it" if skipped.waiting else ""
        yield (
            f"skipped      {plural(skipped.events, 'event')} in 24 hours without the service, the last"
            f" {format_age(skipped.last)} ago{waiting}"
        )


def _compaction_lines(last: LogEntry | None) -> Iterator[str]:
    """What the last summary of an agent kept; what it lost came with the next prompt."""
    if last is not None:
        age = format_age(last.time.timestamp(), time.time())
        yield f"compaction   {age} ago, {exact(str(last.fields.get('agent')))}: {exact(str(last.fields.get('said')))}"


def _finding_lines(finding: Finding) -> Iterator[str]:
    paint = get_paint()
    yield f"{paint.warning('!')} {exact(finding.what)}"
    yield f"  {paint.accent('→')} {finding.todo}"
