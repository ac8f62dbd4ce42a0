"""`reverie connect` and `reverie disconnect`: put Reverie into Claude Code or Codex, and take it out again.

Shows every change before it is made. What the commands do is in `reverie.connect`.
"""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from reverie.cli.options import examples, folder_options, load_places
from reverie.cli.output import answer, can_ask, diff_line, exact, get_paint, plural, say, say_all, warn
from reverie.connect import claude_code, codex
from reverie.connect.connecting import (
    AGENTS,
    Plan,
    carry_out,
    choose_edits,
    count_memories,
    plan_claude_code,
    plan_codex,
    plan_trust,
    take_back,
)
from reverie.connect.files import Change
from reverie.errors import ReverieError, UserError
from reverie.memory.opening import open_memory
from reverie.paths import Places, claude_home
from reverie.settings import Settings

_AGENT = click.argument("agent", type=click.Choice(AGENTS), required=False)
_PROGRAMS = {claude_code.AGENT: ("claude", "Claude Code"), codex.AGENT: ("codex", "Codex")}


def _scope_options(function: Any) -> Any:
    user = click.option("--user", "scope", flag_value="user", help="For all projects.  [default]")
    project = click.option(
        "--project", "scope", flag_value="project", help="Only for this project, in its `.claude/settings.local.json`."
    )
    return user(project(function))


@examples(
    "reverie connect claude-code --dry-run",
    "reverie connect claude-code",
    "reverie connect codex --trust-hooks",
    "reverie connect --status",
)
@click.command("connect")
@_AGENT
@_scope_options
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--own-memory", is_flag=True, help="Keep Reverie's own memory directories; do not share Claude Code's.")
@click.option("--trust-hooks", is_flag=True, help="Codex: also record that you trust the hooks, as `/hooks` does.")
@click.option("--status", is_flag=True, help="Show what is connected, whether it works, and what it spent today.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@folder_options
def connect_command(
    agent: str | None,
    scope: str | None,
    dry_run: bool,
    own_memory: bool,
    trust_hooks: bool,
    status: bool,
    yes: bool,
    as_json: bool,
    cwd: Path,
) -> int:
    """Put Reverie into Claude Code or Codex.

    Adds hooks to the agent: it gets the memories that fit, keeps what must survive a compaction, and Reverie learns
    from its sessions in the background. You see every change before it is made, and `reverie disconnect` takes it back.
    Run it again after an upgrade. Unless you give --own-memory, Reverie then uses the memory directories of Claude
    Code, so there is one memory for all.

    Exit codes: 0: connected; 1: you said no, or --status found a problem; 2: a file cannot be used, or wrong usage;
    4: storage error.
    """
    settings, places = load_places(cwd)
    if status or agent is None:
        from reverie.cli.connect_status import show_status

        return show_status(settings, places, agent, as_json)
    if agent == codex.AGENT and (scope == "project" or own_memory):
        raise click.UsageError("Codex has only hooks of the user: --project and --own-memory are for claude-code.")
    if agent != codex.AGENT and trust_hooks:
        raise click.UsageError("--trust-hooks is for codex; Claude Code asks for trust itself.")
    if agent == claude_code.AGENT:
        plan = plan_claude_code(settings, places, project=scope == "project", own_memory=own_memory)
    else:
        plan = plan_codex(settings, places)
    program = shutil.which(_PROGRAMS[agent][0])
    if trust_hooks and program is None:
        raise UserError("--trust-hooks asks Codex, but there is no program `codex` here; nothing was changed.")
    if not as_json:
        _show_plan(plan, program, dry_run)
    is_new = not plan.is_done
    if is_new and not dry_run:
        if not (yes or as_json or _confirm("Make these changes?")):
            return 1
        carry_out(places.home, plan)
    changes = list(plan.changes)
    if trust_hooks and program is not None and not dry_run:
        trust = plan_trust(settings, places, program)
        if not as_json:
            say_all(_diff(trust.changes[0]))
        carry_out(places.home, trust)
        changes += trust.changes
        is_new = is_new or any(change.is_needed for change in trust.changes)
    settings, places = load_places(cwd)
    said = {
        "agent": agent,
        "changed": is_new and not dry_run,
        "files": [str(change.file.path) for change in changes if change.is_needed],
        "notes": [*plan.notes, *_next_steps(settings, places, plan, scope, trust_hooks)],
    }
    answer(as_json, said, *(() if dry_run else ("", *_result_lines(plan, is_new, said["notes"]))))
    return 0


def _confirm(question: str) -> bool:
    if not can_ask():
        raise UserError("Nothing was changed: there is no terminal to ask on. Look at --dry-run, then give --yes.")
    if click.confirm(question, default=True):
        return True
    say("Nothing was changed.")
    return False


def _show_plan(plan: Plan, program: str | None, dry_run: bool) -> None:
    name = _PROGRAMS[plan.agent][1]
    if program is None:
        say(f"{name} is not installed here, or not on the path: Reverie is prepared for it.")
    for note in plan.notes:
        warn(note)
    if plan.is_done:
        say(f"{name} is connected already; there is nothing to change.")
        return
    what = "The plug-in" if plan.agent == claude_code.AGENT else "The hook script"
    say(f"{what} {'would be' if dry_run else 'is'} written to {exact(str(plan.folder))}.")
    for change in plan.changes:
        say_all(_diff(change))


def _diff(change: Change) -> Iterator[str]:
    if not change.is_needed:
        return
    before = (change.file.data or b"").decode("utf-8", "replace").splitlines()
    after = change.after.decode("utf-8", "replace").splitlines()
    old = "(no file)" if change.file.data is None else str(change.file.path)
    for line in difflib.unified_diff(before, after, old, str(change.file.path), n=1, lineterm=""):
        yield diff_line(exact(line), get_paint())


def _next_steps(settings: Settings, places: Places, plan: Plan, scope: str | None, trust_hooks: bool) -> Iterator[str]:
    if plan.agent == codex.AGENT:
        if not trust_hooks:
            yield "Codex skips new hooks until you trust them: start `codex`, type /hooks, and trust those of Reverie."
        return
    yield "Start `claude` as usual; if it runs, start it again."
    if scope == "project":
        yield "Claude Code loads the plug-in of a project after you have trusted the folder there."
    yield from memory_steps(settings, places)


def memory_steps(settings: Settings, places: Places) -> Iterator[str]:
    """What to do about memories that Reverie kept in its own folder before."""
    used = open_memory(settings, places).place.directory
    if used != places.default_memory and (count := count_memories(places.default_memory)):
        there = f"{plural(count, 'memory', 'memories')} of this project"
        yield f"Reverie's own folder has {there}. Take them over: reverie memory import {places.default_memory}"


def _result_lines(plan: Plan, is_new: bool, notes: Any) -> Iterator[str]:
    paint = get_paint()
    if is_new:
        yield paint.good(f"Connected to {_PROGRAMS[plan.agent][1]}.")
    yield from notes
    if is_new:
        yield "`reverie connect --status` shows how it works; `reverie disconnect` takes everything back."


@examples("reverie disconnect", "reverie disconnect codex", "reverie disconnect claude-code --project")
@click.command("disconnect")
@_AGENT
@_scope_options
@folder_options
def disconnect_command(agent: str | None, scope: str | None, as_json: bool, cwd: Path) -> int:
    """Take Reverie out of Claude Code and Codex.

    Without AGENT, out of both. Each file gets the bytes back that it had before `reverie connect`. If you have changed
    a file since, only Reverie's lines go. Memories stay where they are. When no agent is left, the service stops.

    Exit codes: 0: done, or nothing was connected; 1: a file could not be changed; 4: storage error.
    """
    settings, places = load_places(cwd)
    chosen = {None: None, "user": "", "project": str(places.root)}[scope]
    memory = open_memory(settings, places).place.directory
    edits = choose_edits(settings, places.home, agent, chosen)
    done = take_back(places.home, edits, claude_home(settings))
    if not done.left:
        _stop_service(places.home)
    lines = [f"{exact(path)}: as it was before." for path in done.restored]
    lines += [f"{exact(path)}: removed; it was not there before." for path in done.removed]
    lines += [f"{exact(path)}: Reverie's part is removed; the rest is as you have it." for path in done.cleaned]
    lines += [f"{exact(problem)}" for problem in done.problems]
    if not edits:
        lines.append("Nothing is connected here; `reverie connect --status` shows what is.")
    elif count := count_memories(memory):
        lines.append(f"The memories of this project ({count}) stay in {exact(str(memory))}.")
    said = {
        "restored": done.restored,
        "removed": done.removed,
        "cleaned": done.cleaned,
        "problems": done.problems,
        "memory": str(memory),
    }
    answer(as_json, said, *lines)
    return 1 if done.problems else 0


def _stop_service(home: Path) -> None:
    from reverie.daemon.client import stop_daemon

    try:
        stop_daemon(home)
    except (ReverieError, OSError) as error:
        warn(f"The service could not be stopped ({error}); it ends by itself when nothing happens.")
