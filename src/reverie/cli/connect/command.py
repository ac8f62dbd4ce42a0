"""`reverie connect` and `reverie disconnect`: put Reverie into other agents and editors, and take it out again.

Shows every change before it is made. What the commands do is in `reverie.connect`.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.connect.shown import confirm_changes, diff_lines
from reverie.cli.options import examples, folder_options, load_places
from reverie.cli.output import answer, exact, get_paint, plural, say, say_all, warn
from reverie.connect import claude_code, codex, own_settings
from reverie.connect.connecting import (
    AGENTS,
    Plan,
    carry_out,
    choose_edits,
    codex_home,
    count_memories,
    plan_claude_code,
    plan_codex,
    plan_trust,
    take_back,
)
from reverie.connect.editors import CODEX_KIND, EDITORS
from reverie.connect.plugin_files import is_current
from reverie.errors import ReverieError, UserError
from reverie.memory.opening import open_memory
from reverie.paths import Places, claude_home
from reverie.settings import Settings

_AGENT = click.argument("agent", type=click.Choice([*AGENTS, *EDITORS]), required=False)
_PROGRAMS = {claude_code.AGENT: ("claude", "Claude Code"), codex.AGENT: ("codex", "Codex")}
_TITLES = {agent: title for agent, (_, title) in _PROGRAMS.items()} | {one.name: one.title for one in EDITORS.values()}


def _scope_options(function: Any) -> Any:
    user = click.option("--user", "scope", flag_value="user", help="For all projects.  [default]")
    project = click.option(
        "--project", "scope", flag_value="project", help="Only for this project, in a settings file of the project."
    )
    return user(project(function))


@examples(
    "reverie connect claude-code --dry-run",
    "reverie connect claude-code",
    "reverie connect codex --trust-hooks",
    "reverie connect zed --print",
    "reverie connect --status",
)
@agents_may(AgentsMay.NOTHING, reads=lambda given: given["status"] or given["dry_run"] or given["only_print"])
@click.command("connect")
@_AGENT
@_scope_options
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option(
    "--own-memory/--shared-memory",
    default=None,
    help="Keep Reverie's own memory directories, or share those of Claude Code.  [default: as before; first: shared]",
)
@click.option("--trust-hooks", is_flag=True, help="Codex: also record that you trust the hooks, as `/hooks` does.")
@click.option("--mcp/--no-mcp", default=None, help="Also the MCP server (Claude Code, Codex); in editors: only it.")
@click.option("--acp/--no-acp", default=None, help="Editors: only Reverie as an agent of its own, or all but that.")
@click.option("--print", "only_print", is_flag=True, help="Write nothing: print what to put into which file.")
@click.option("--status", is_flag=True, help="Show what is connected, whether it works, and what it spent today.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@folder_options
def connect_command(
    agent: str | None,
    scope: str | None,
    dry_run: bool,
    own_memory: bool | None,
    trust_hooks: bool,
    mcp: bool | None,
    acp: bool | None,
    only_print: bool,
    status: bool,
    yes: bool,
    as_json: bool,
    cwd: Path,
) -> int:
    """Put Reverie into another agent or editor.

    Claude Code and Codex get hooks: the agent gets the memories that fit, keeps what must survive a compaction, and
    Reverie learns from its sessions in the background. You see every change before it is made, and
    `reverie disconnect` takes it back. Run it again after an upgrade. Unless you give --own-memory, Reverie then uses
    the memory directories of Claude Code in all projects, so there is one memory for all. Each of the two options also
    works later.

    Cursor, VS Code and Zed start Reverie as an MCP server (`reverie mcp`); Zed, JetBrains and Toad start it as an agent
    of its own over ACP (`reverie acp`). --print shows the lines for a settings file and changes nothing.

    Exit codes: 0: connected; 1: you said no, or --status found a problem; 2: a file cannot be used, or wrong usage;
    4: storage error.
    """
    settings, places = load_places(cwd)
    if status or agent is None:
        from reverie.cli.connect.status import show_status

        return show_status(settings, places, agent, as_json)
    if agent != claude_code.AGENT and ((agent == codex.AGENT and scope == "project") or own_memory is not None):
        raise click.UsageError("--own-memory and --shared-memory are for claude-code; codex has no --project.")
    if agent != codex.AGENT and trust_hooks:
        raise click.UsageError("--trust-hooks is for codex; other agents ask for trust themselves.")
    if agent in AGENTS and acp:
        raise click.UsageError("--acp is for editors.")
    if only_print or agent in EDITORS:
        from reverie.cli.connect.editors import choose_protocols, connect_editor, print_configuration

        protocols = choose_protocols(EDITORS[agent], mcp, acp) if agent in EDITORS else []
        if only_print or not EDITORS[agent].user:
            return print_configuration(settings, places, agent, protocols, as_json)
        options = {"project": scope == "project", "dry_run": dry_run, "ask": not (yes or as_json), "as_json": as_json}
        return connect_editor(settings, places, EDITORS[agent], protocols, **options)
    if agent == claude_code.AGENT:
        plan = plan_claude_code(settings, places, project=scope == "project", own_memory=own_memory, mcp=mcp)
    else:
        plan = plan_codex(settings, places, mcp=mcp)
    program = shutil.which(_PROGRAMS[agent][0])
    if trust_hooks and program is None:
        raise UserError("--trust-hooks asks Codex, but there is no program `codex` here; nothing was changed.")
    ask = not (yes or as_json)
    if not as_json:
        _show_plan(settings, plan, program, trust_hooks)
    changes = [change for change in plan.changes if change.is_needed]
    is_new = not plan.is_done
    if is_new and not dry_run:
        if ask and not confirm_changes():
            return 1
        carry_out(places.home, plan)
    if trust_hooks and program is not None and not dry_run:
        trust = plan_trust(settings, places, program)
        if trust.changes[0].is_needed:
            if not as_json:
                say_all(diff_lines(trust.changes[0]))
            if ask and not is_new and not confirm_changes():
                return 1
            carry_out(places.home, trust)
            changes += trust.changes
            is_new = True
        elif not is_new and not as_json:
            say("The hooks are trusted already; there is nothing to change.")
    settings, places = load_places(cwd)
    steps = [] if dry_run else list(_next_steps(settings, places, plan, scope))
    said = {
        "agent": agent,
        "changed": is_new and not dry_run,
        "files": [str(change.file.path) for change in changes],
        "notes": [*plan.notes, *steps],
    }
    answer(as_json, said, *(() if dry_run else _result_lines(settings, plan, is_new, steps)))
    return 0


def _show_plan(settings: Settings, plan: Plan, program: str | None, trust_hooks: bool) -> None:
    name = _PROGRAMS[plan.agent][1]
    if program is None:
        say(f"{name} is not installed here, or not on the path: Reverie is prepared for it.")
    for note in plan.notes:
        warn(note)
    if not plan.is_done:
        what = "plug-in" if plan.agent == claude_code.AGENT else "hook script"
        if not is_current(plan.folder, plan.files):
            say(f"This writes the {what} to {exact(str(plan.folder))}.")
        if any(change.is_needed for change in plan.changes):
            say("This changes:")
        for change in plan.changes:
            say_all(diff_lines(change))
    elif not trust_hooks:
        say(f"{_state(settings, plan)}; there is nothing to change.")
    if trust_hooks:
        home = codex_home(settings)
        count, trusted = codex.count_trusted(home)
        now = f" (now: {trusted} of {count})" if count else ""
        say(f"It asks Codex about these hooks, and marks them as trusted in {exact(str(home / 'config.toml'))}{now}.")


def _state(settings: Settings, plan: Plan) -> str:
    """How far an agent is connected: Codex skips hooks that are not trusted."""
    name = _PROGRAMS[plan.agent][1]
    count, trusted = codex.count_trusted(codex_home(settings)) if plan.agent == codex.AGENT else (0, 0)
    return (
        f"{name} is connected" if trusted == count else f"{name} has the hooks, but skips {count - trusted} of {count}"
    )


def _next_steps(settings: Settings, places: Places, plan: Plan, scope: str | None) -> Iterator[str]:
    if plan.agent == codex.AGENT:
        count, trusted = codex.count_trusted(codex_home(settings))
        if trusted < count:
            yield "Codex skips new hooks until you trust them: start `codex`, type /hooks, and trust those of Reverie."
            yield "Or run: reverie connect codex --trust-hooks"
        return
    yield "Start `claude` as usual. If Claude Code is already running, restart it."
    if scope == "project":
        yield "Claude Code loads the plug-in of a project after you have trusted the folder there."
        yield f"Do not commit {claude_code.settings_path(Path(), places.root)}: it names a folder of this machine."
    yield from memory_steps(settings, places)


def memory_steps(settings: Settings, places: Places) -> Iterator[str]:
    """What to do about memories that Reverie kept in its own folder before."""
    used = open_memory(settings, places).place.directory
    if used != places.default_memory and (count := count_memories(places.default_memory)):
        there = f"{plural(count, 'memory', 'memories')} of this project"
        yield f"Reverie's own folder has {there}. Take them over: reverie memory import {places.default_memory}"


def _result_lines(settings: Settings, plan: Plan, is_new: bool, steps: list[str]) -> Iterator[str]:
    if is_new:
        yield ""
        yield get_paint().good(f"{_state(settings, plan)}.")
    yield from steps
    if is_new:
        yield "`reverie connect --status` shows whether it works; `reverie disconnect` takes everything back."


@examples("reverie disconnect", "reverie disconnect codex", "reverie disconnect claude-code --project")
@click.command("disconnect")
@_AGENT
@_scope_options
@folder_options
def disconnect_command(agent: str | None, scope: str | None, as_json: bool, cwd: Path) -> int:
    """Take Reverie out of other agents and editors.

    Without AGENT, out of all of them; without --user and --project, out of all projects too. Each file gets the bytes
    back that it had before `reverie connect`. If you have changed a file since, only Reverie's entries go. Memories and
    copies of sessions stay, and the output says where. When no agent is left, the service stops.

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
    lines += [f"{exact(path)}: Reverie's entries were removed; the rest is unchanged." for path in done.cleaned]
    lines += [exact(problem) for problem in done.problems]
    left = [edit.path for edit in done.left if edit.kind not in (own_settings.KIND, codex.TRUST_KIND, CODEX_KIND)]
    lines += [f"Still connected: {exact(path)}" for path in left]
    if not edits:
        lines.append("Nothing is connected here; `reverie connect --status` shows what is.")
    else:
        names = ", ".join(title for one, title in _TITLES.items() if any(edit.agent == one for edit in edits))
        lines.append(f"Restart running sessions of {names}.")
        if not left:
            lines += _what_stays(cwd, memory)
    said = {
        "restored": done.restored,
        "removed": done.removed,
        "cleaned": done.cleaned,
        "problems": done.problems,
        "left": left,
        "memory": str(memory),
    }
    answer(as_json, said, *lines)
    return 1 if done.problems else 0


def _what_stays(cwd: Path, memory: Path) -> Iterator[str]:
    """Where the memories and the copies of sessions are now, and how to use or delete them."""
    settings, places = load_places(cwd)
    if count := count_memories(memory):
        yield f"The memories of this project ({count}) stay in {exact(str(memory))}."
    if memory != open_memory(settings, places).place.directory:
        yield "Reverie's own commands now use its own folders. To see these memories there too, in each project:"
        yield f"  reverie memory import {exact(shlex.quote(str(memory)))}"
        own = exact(str(places.home / "settings.toml"))
        yield f'Or for all projects, with no import: add `memory.shared_with = "claude-code"` to {own}.'
    if places.projects.is_dir():
        yield f"Copies of your sessions and their notes stay in {exact(str(places.projects))}."
        yield f"To delete them: `reverie sessions delete ID`, or delete all that Reverie has: {exact(str(places.home))}"


def _stop_service(home: Path) -> None:
    from reverie.daemon.client import stop_daemon

    try:
        stop_daemon(home)
    except (ReverieError, OSError) as error:
        warn(f"The service could not be stopped ({error}); it ends by itself when nothing happens.")
