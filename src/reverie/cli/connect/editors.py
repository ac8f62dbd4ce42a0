"""`reverie connect` for editors, and `--print`: what to put into a settings file, for those who do it themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from reverie.cli.connect.shown import confirm_changes, diff_lines
from reverie.cli.output import answer, exact, get_paint, say, say_all
from reverie.connect import claude_code, codex
from reverie.connect.connecting import carry_out, codex_home, plan_editor
from reverie.connect.editors import EDITORS, Editor, Protocol, codex_table, start_entry, start_line
from reverie.connect.json_text import set_value
from reverie.paths import Places
from reverie.settings import Settings


def choose_protocols(editor: Editor, mcp: bool | None, acp: bool | None) -> list[Protocol]:
    """What to put into an editor: all that it can use, or what was asked for."""
    asked: dict[Protocol, bool | None] = {"mcp": mcp, "acp": acp}
    for name, wanted in asked.items():
        if wanted and name not in editor.protocols:
            raise click.UsageError(f"{editor.title} does not start Reverie over {name.upper()}.")
    only: list[Protocol] = [name for name in editor.protocols if asked[name]]
    chosen: list[Protocol] = only or [name for name in editor.protocols if asked[name] is not False]
    if not chosen:
        raise click.UsageError("Nothing is left to connect.")
    return chosen


def connect_editor(
    settings: Settings,
    places: Places,
    editor: Editor,
    protocols: list[Protocol],
    *,
    project: bool,
    dry_run: bool,
    ask: bool,
    as_json: bool,
) -> int:
    """Puts our entries into the settings of an editor. Returns 1 if the user says no."""
    if project and not editor.project:
        raise click.UsageError(f"{editor.title} has no settings file per project that Reverie writes.")
    plan = plan_editor(settings, places, editor, protocols, project=project)
    change = plan.changes[0]
    if not as_json:
        if change.is_needed:
            say("This changes:")
            say_all(diff_lines(change))
        else:
            say(f"{editor.title} is connected; there is nothing to change.")
    if change.is_needed and not dry_run:
        if ask and not confirm_changes():
            return 1
        carry_out(places.home, plan)
    is_new = change.is_needed and not dry_run
    steps = list(_next_steps(editor, protocols, project)) if is_new else []
    said = {
        "agent": editor.name,
        "changed": is_new,
        "files": [str(change.file.path)] if change.is_needed else [],
        "notes": steps,
    }
    answer(as_json, said, *(["", get_paint().good(f"{editor.title} is connected."), *steps] if is_new else []))
    return 0


def _next_steps(editor: Editor, protocols: list[Protocol], project: bool) -> Iterator[str]:
    if "mcp" in protocols:
        yield f"Restart {editor.title}, and allow the tools of the server `reverie` when it asks."
    if "acp" in protocols:
        yield f"Choose `Reverie` as the agent in the agent panel of {editor.title}."
    if project:
        yield "Do not commit this file: it names a program of this machine."
    yield f"`reverie disconnect {editor.name}` takes it back."


def print_configuration(
    settings: Settings, places: Places, agent: str, protocols: list[Protocol], as_json: bool
) -> int:
    """Prints what `connect` would write, and where; writes nothing."""
    home, user_home = places.home, settings.places.user_home
    parts: list[tuple[str, str]] = []
    if agent == claude_code.AGENT:
        text = set_value("{\n}\n", ("mcpServers", "reverie"), start_entry("mcp", home, user_home))
        parts.append((str(places.root / ".mcp.json"), text))
        parts.append(("or in a terminal", f"claude mcp add reverie -- {start_line('mcp', home, user_home)}\n"))
    elif agent == codex.AGENT:
        parts.append((str(codex_home(settings) / "config.toml"), codex_table(home, user_home)))
    elif not EDITORS[agent].user:
        parts.append(("in a terminal", f"toad acp {json.dumps(start_line('acp', home, user_home))}\n"))
    else:
        editor, text = EDITORS[agent], "{\n}\n"
        for protocol in protocols:
            entry = editor.entry(protocol, start_entry(protocol, home, user_home))
            text = set_value(text, editor.route(protocol), entry)
        parts.append((str(user_home / editor.user), text))
    said = {"agent": agent, "configuration": [{"where": where, "text": text} for where, text in parts]}
    lines = [line for where, text in parts for line in (f"{exact(where)}:", *map(exact, text.splitlines()), "")]
    answer(as_json, said, *lines[:-1])
    return 0
