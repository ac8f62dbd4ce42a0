"""`reverie trust`: shows what a folder's own files could do, and lets the user say yes or no to it.

Only here, and in the question that `reverie chat` asks at its start, is a folder ever trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from reverie.cli.options import cwd_option, json_option
from reverie.cli.output import Paint, answer, can_ask, columns, exact, painted, plural
from reverie.cli.screen import json_text
from reverie.errors import ReverieError, UserError

if TYPE_CHECKING:
    from reverie.settings.trust import ActingPart

_STATES = {
    "nothing": "nothing here needs your trust.",
    "trusted": "trusted, until what can act here changes.",
    "declined": "not trusted: you said no to what can act here.",
    "changed": "no longer trusted: what can act here has changed.",
    "not trusted": "not trusted: what can act here is ignored.",
}


@click.command("trust")
@click.argument("path", type=click.Path(path_type=Path), default=".")
@cwd_option
@click.option("-y", "--yes", is_flag=True, help="Trust it without a question, for scripts.")
@click.option("--status", is_flag=True, help="Only say whether it is trusted, and what can act.")
@click.option("--remove", "--revoke", is_flag=True, help="Take trust back.")
@click.option("--list", "listing", is_flag=True, help="List the folders that are trusted.")
@json_option
def command(path: Path, cwd: Path, yes: bool, status: bool, remove: bool, listing: bool, as_json: bool) -> int:
    """Trust the settings that a folder brings along.

    PATH is the folder, or any folder of its git checkout. A folder's files may come from strangers. Until you trust
    it, everything in them that could run, spend, send, weaken a guard or move data is ignored: hooks, allow rules,
    models, the place of memory. All of it is shown before you are asked. Trust is for this folder only, and ends when
    one of these parts changes.

    \b
    Examples:
      reverie trust
      reverie trust ~/app --status
      reverie trust --yes
      reverie trust --remove ~/app
      reverie trust --list --json

    Exit codes: 0 trusted, or nothing needs it; 1 not trusted, or you said no; 2 usage; 4 storage.
    """
    if sum((yes, status, remove, listing)) > 1:
        raise click.UsageError("Give only one of --yes, --status, --remove and --list.")
    if listing:
        return _list(as_json)
    path = cwd / path
    if remove:
        return _remove(path, as_json)
    if not path.is_dir():
        raise UserError(f"{path} is not a folder: give the one you want to trust.")
    parts, state = look(path)
    folder = _folder(path)
    if status or state in ("trusted", "nothing"):
        _tell(folder, state, parts, as_json)
        return int(status and state not in ("nothing", "trusted"))
    asks = not yes and not as_json and can_ask()
    if not as_json:
        show(parts, paged=asks)
    if not yes:
        if not asks:
            raise UserError("Nothing was trusted: nobody is there to ask; look at it with --status, then give --yes.")
        if not click.confirm(_question(parts), default=False):
            click.echo("Not trusted: these parts stay without effect.")
            return 1
    from reverie.storage.trust_file import trust

    trust(_home(), parts, folder)
    _tell(folder, "trusted", look(path)[0] if as_json else (), as_json)
    return 0


def ask_once(cwd: Path) -> None:
    """Asks whether to trust this folder, if something in it wants to act and the user has not answered yet."""
    from reverie.storage.trust_file import decline, trust

    parts, state = look(cwd)
    if state not in ("not trusted", "changed"):
        return
    if state == "changed":
        click.echo("What can act in this folder has changed since you trusted it.")
    show(parts, paged=True)
    answer = click.confirm(_question(parts), default=False)
    try:
        if answer:
            trust(_home(), parts, _folder(cwd))
        else:
            decline(_home(), parts)
    except ReverieError as error:
        click.echo(f"{str(error).rstrip('.')}; your answer is not kept, and the folder is not trusted.", err=True)
        return
    if not answer:
        click.echo("Not trusted: these parts stay without effect. `reverie trust` asks again.")


def look(cwd: Path) -> tuple[list[ActingPart], str]:
    """Everything in this folder that can act, and whether it is trusted."""
    from reverie.agents.definition import acting_parts
    from reverie.paths import Places
    from reverie.settings import load_settings
    from reverie.settings.trust import CHANGED, TrustBook

    settings = load_settings(cwd)
    found = [*settings.parts, *acting_parts(Places.of(cwd, settings))]
    parts = [part for part in found if part.can_be_trusted]
    waiting = [part for part in parts if part.ignored]
    if not waiting:
        return parts, "trusted" if parts else "nothing"
    if TrustBook.read(settings.places.home).was_declined(waiting):
        return parts, "declined"
    return parts, "changed" if any(part.ignored == CHANGED for part in waiting) else "not trusted"


def show(parts: Sequence[ActingPart], *, paged: bool = False) -> None:
    """Every part, whole, as a permission question shows it: the user is about to say yes to it.

    `paged`: a person is about to answer, so the next page comes with Enter.
    """
    from reverie.cli.diff_preview import Pages

    paint = painted()
    pages = Pages([*_shown(parts, paint)])
    while pages.left:
        click.echo("\n".join(pages.next()), color=paint.on)
        if pages.left and paged:
            more = f"… {plural(pages.left, 'more line')}; Enter shows the next page"
            click.prompt(paint.warning(more), default="", show_default=False, prompt_suffix=" ")


def _shown(parts: Sequence[ActingPart], paint: Paint) -> Iterator[str]:
    from reverie.cli.diff_preview import text_lines

    file = ""
    for part in parts:
        if file != (file := str(part.folder / part.file)):
            yield from map(paint.bold, text_lines(file, columns()))
        for text, unchecked in _values(part):
            *lines, last = text_lines(f"line {part.line}: {text}", columns() - 2)
            yield from (f"  {line}" for line in lines)
            yield f"  {last}  {paint.warning(f'could {part.risk.value}')}"
            if unchecked:
                yield f"    {paint.warning(f'what this runs cannot be checked for changes: {unchecked}')}"


def _values(part: ActingPart) -> Iterator[tuple[str, str]]:
    """Each item of a part as text, and why changes of what it runs may not be noticed."""
    from reverie.cli.diff_preview import counted

    value = part.value
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    for item, unchecked in zip(items, part.unchecked or [""] * len(items), strict=True):
        yield f"{part.key} = {'(hidden)' if item is None else json_text(counted(item))}", unchecked


def _question(parts: Sequence[ActingPart]) -> str:
    folders = ", ".join(dict.fromkeys(exact(str(part.folder)) for part in parts))
    return f"Trust {folders} with all of this?"


def _tell(folder: Path, state: str, parts: Sequence[ActingPart], as_json: bool) -> None:
    if not as_json:
        show(parts)
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
    from reverie.settings.trust import TrustBook

    book = TrustBook.read(_home())
    if book.problem:
        raise ReverieError(book.problem)
    folders = sorted(book.trusted)
    lines = [exact(folder) + ("" if os.path.isdir(folder) else "  (gone)") for folder in folders]  # noqa: PTH112
    answer(as_json, {"folders": folders}, *(lines or ["No folder is trusted."]))
    return 0


def _remove(path: Path, as_json: bool) -> int:
    from reverie.settings.trust import TrustBook
    from reverie.storage.trust_file import revoke

    # A folder that is gone is removed by its name: the repository it lay in is another folder.
    named = Path(os.path.realpath(path))
    folder = named if str(named) in TrustBook.read(_home()).trusted else _folder(path)
    done = revoke(_home(), folder)
    if not done and not as_json:
        raise ReverieError(f"{folder} was not trusted; `reverie trust --list` shows which folders are.")
    answer(as_json, {"folder": str(folder), "removed": done}, f"{exact(str(folder))}: no longer trusted.")
    return 0 if done else 1


def _folder(path: Path) -> Path:
    """The folder that is trusted or not: the checkout around `path`, else `path` itself."""
    from reverie.paths import find_repo

    return find_repo(path).checkout


def _home() -> Path:
    from reverie.settings import find_home

    return find_home()
