"""`reverie trust`: shows what the settings files of a folder could do, and asks the user whether to trust it.

A folder is trusted only here and in the question at the start of `reverie chat`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import click

from reverie.agents.definition import trusted_parts
from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.diff_preview import Pages, count_blanks, text_lines
from reverie.cli.options import cwd_option, examples, json_option, load_places
from reverie.cli.output import Paint, answer, can_ask, columns, exact, get_paint, plural
from reverie.cli.screen import json_text
from reverie.errors import ReverieError, UserError
from reverie.instructions import commands
from reverie.paths import find_repo
from reverie.settings.loading import find_home
from reverie.settings.trust import CHANGED, ActingPart, TrustBook
from reverie.storage.trust_file import decline, revoke, trust
from reverie.tools.mcp import config as mcp_config

_STATES = {
    "nothing": "nothing here needs your trust.",
    "trusted": "trusted, until one of these parts changes.",
    "declined": "not trusted: you said no.",
    "changed": "no longer trusted: a part has changed.",
    "not trusted": "not trusted: these parts are ignored.",
}


@examples(
    "reverie trust",
    "reverie trust ~/app --status",
    "reverie trust --yes",
    "reverie trust --remove ~/app",
    "reverie trust --list --json",
)
@agents_may(AgentsMay.NOTHING, reads=lambda given: given["status"] or given["listing"])
@click.command("trust")
@click.argument("path", type=click.Path(path_type=Path), default=".")
@cwd_option
@click.option("-y", "--yes", is_flag=True, help="Trust it without asking, for scripts.")
@click.option("--status", is_flag=True, help="Only show whether it is trusted, and the parts that need trust.")
@click.option("--remove", "--revoke", is_flag=True, help="Stop trusting it.")
@click.option("--list", "listing", is_flag=True, help="List all trusted folders.")
@json_option
def command(path: Path, cwd: Path, yes: bool, status: bool, remove: bool, listing: bool, as_json: bool) -> int:
    """Trust the settings files of a folder.

    PATH is a folder. If it is in a git checkout, the whole checkout is meant. A repository can contain settings
    files that strangers wrote. Until you trust the folder or checkout, Reverie ignores every part of these files
    that could run a command, spend money, send data, weaken a protection or move data: hooks, allow rules, models,
    the memory directory. The same applies to files of Claude Code (`.claude/`), agents and commands. You see all
    these parts before you answer. Trust applies only to this folder or checkout, and ends when one of these parts
    changes.

    Exit codes: 0: trusted, or nothing needs trust; 1: not trusted, or you said no; 2: wrong usage; 4: storage error.
    """
    if sum((yes, status, remove, listing)) > 1:
        raise click.UsageError("Give only one of --yes, --status, --remove and --list.")
    if listing:
        return _list(as_json)
    path = cwd / path
    if remove:
        return _remove(path, as_json)
    if not path.is_dir():
        raise UserError(f"{path} is not a folder. Give the folder that you want to trust.")
    parts, state = find_parts(path)
    folder = find_repo(path).checkout
    if status or state in ("trusted", "nothing"):
        _show_state(folder, state, parts, as_json)
        return int(status and state not in ("nothing", "trusted"))
    asks = not yes and not as_json and can_ask()
    if not as_json:
        show_parts(parts, paged=asks)
    if not yes:
        if not asks:
            raise UserError("Nothing was trusted: there is no terminal to ask on. Read --status, then give --yes.")
        if not click.confirm(_question(parts), default=False):
            click.echo("Not trusted: these parts have no effect.")
            return 1
    trust(find_home(), parts, folder)
    _show_state(folder, "trusted", find_parts(path)[0] if as_json else (), as_json)
    return 0


def ask_once(cwd: Path) -> None:
    """Asks whether to trust this folder, if a part of it needs trust and the user has not answered yet."""
    parts, state = find_parts(cwd)
    if state not in ("not trusted", "changed"):
        return
    if state == "changed":
        click.echo("The settings files of this folder have changed since you trusted it.")
    show_parts(parts, paged=True)
    answer = click.confirm(_question(parts), default=False)
    try:
        if answer:
            trust(find_home(), parts, find_repo(cwd).checkout)
        else:
            decline(find_home(), parts)
    except ReverieError as error:
        click.echo(f"{str(error).rstrip('.')}; your answer is not saved, and the folder is not trusted.", err=True)
        return
    if not answer:
        click.echo("Not trusted: these parts have no effect. `reverie trust` asks again.")


def find_parts(cwd: Path) -> tuple[list[ActingPart], str]:
    """The parts of this folder's files that need trust, and whether they are trusted."""
    settings, places = load_places(cwd)
    found = [
        *settings.parts,
        *trusted_parts(places),
        *commands.trusted_parts(places, settings),
        *mcp_config.trusted_parts(places, settings),
    ]
    parts = [part for part in found if part.can_be_trusted]
    waiting = [part for part in parts if part.ignored]
    if not waiting:
        return parts, "trusted" if parts else "nothing"
    if TrustBook.read(settings.places.home).was_declined(waiting):
        return parts, "declined"
    return parts, "changed" if any(part.ignored == CHANGED for part in waiting) else "not trusted"


def show_parts(parts: Sequence[ActingPart], *, paged: bool = False) -> None:
    """Shows every part in full. `paged`: the next page comes when the user presses Enter."""
    paint = get_paint()
    pages = Pages([*_part_lines(parts, paint)])
    while pages.left:
        click.echo("\n".join(pages.next()), color=paint.on)
        if pages.left and paged:
            more = f"… {plural(pages.left, 'more line')}; Enter shows the next page"
            click.prompt(paint.warning(more), default="", show_default=False, prompt_suffix=" ")


def _part_lines(parts: Sequence[ActingPart], paint: Paint) -> Iterator[str]:
    file = ""
    for part in parts:
        if file != (file := str(part.folder / part.file)):
            yield from map(paint.bold, text_lines(file, columns()))
        for text, unchecked in _values(part):
            *lines, last = text_lines(f"line {part.line}: {text}", columns() - 2)
            yield from (f"  {line}" for line in lines)
            yield f"  {last}  {paint.warning(f'could {part.risk.value}')}"
            if unchecked:
                yield f"    {paint.warning(f'the program it runs cannot be checked for changes: {unchecked}')}"


def _values(part: ActingPart) -> Iterator[tuple[str, str]]:
    """Each item of a part as text, and why a change of the program it runs may go unnoticed."""
    value = part.value
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    for item, unchecked in zip(items, part.unchecked or [""] * len(items), strict=True):
        yield f"{part.key} = {'(hidden)' if item is None else json_text(count_blanks(item))}", unchecked


def _question(parts: Sequence[ActingPart]) -> str:
    folders = ", ".join(dict.fromkeys(exact(str(part.folder)) for part in parts))
    return f"Trust {folders} with all of this?"


def _show_state(folder: Path, state: str, parts: Sequence[ActingPart], as_json: bool) -> None:
    if not as_json:
        show_parts(parts)
    said = {"folder": str(folder), "state": state, "parts": [_as_json(part) for part in parts]}
    answer(as_json, said, f"{exact(str(folder))}: {_STATES[state]}")


def _as_json(part: ActingPart) -> dict[str, Any]:
    return {
        "folder": str(part.folder),
        "file": part.file,
        "line": part.line,
        "key": part.key,
        "value": part.value,
        "could": part.risk.value,
        "ignored": part.ignored or None,
        "unchecked": [why or None for why in part.unchecked],
    }


def _list(as_json: bool) -> int:
    book = TrustBook.read(find_home())
    if book.problem:
        raise ReverieError(book.problem)
    folders = sorted(book.trusted)
    lines = [exact(folder) + ("" if os.path.isdir(folder) else "  (gone)") for folder in folders]  # noqa: PTH112
    answer(as_json, {"folders": folders}, *(lines or ["No folder is trusted."]))
    return 0


def _remove(path: Path, as_json: bool) -> int:
    # A folder that does not exist any more is removed by its name: its repository is another folder.
    named = Path(os.path.realpath(path))
    folder = named if str(named) in TrustBook.read(find_home()).trusted else find_repo(path).checkout
    done = revoke(find_home(), folder)
    if not done and not as_json:
        raise ReverieError(f"{folder} was not trusted; `reverie trust --list` shows which folders are.")
    answer(as_json, {"folder": str(folder), "removed": done}, f"{exact(str(folder))}: no longer trusted.")
    return 0 if done else 1
