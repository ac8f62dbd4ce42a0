"""`reverie sessions import|follow`: copies conversations of other agents, once or again and again."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import examples, folder_options, load_places, with_places
from reverie.cli.output import answer, plural, say, show_progress, warn
from reverie.errors import ReverieError, UserError
from reverie.paths import Places
from reverie.settings import Settings
from reverie.types import JsonObject

if TYPE_CHECKING:  # imported where it is used: `sessions list` must start fast
    from reverie.storage.following import Followed, Outcome, Sources

_PATHS = click.Path(path_type=Path)
_LEAST_PAUSE_S = 2.0
_IDLE_SHARE = 50
"""While it watches, it rests this many times as long as a pass takes."""
_SHOWN_EVERY = 100


@examples(
    "reverie sessions import ~/.claude/projects/-home-me-shop/3f2a9c1e.jsonl",
    "reverie sessions import ~/.pi/agent/sessions/my-project",
)
@click.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=_PATHS)
@with_places
def import_command(paths: tuple[Path, ...], as_json: bool, places: Places) -> None:
    """Copy conversations of Claude Code, Codex or pi into this folder, to continue them here.

    PATH is a session file, or a folder: then all session files in it and its sub-folders are copied. The files do not
    change. If you import a session again, the copy gets what is new. If you have continued the copy, it stays as it is.
    """
    from reverie.memory.upkeep.followed_sessions import import_session
    from reverie.storage.following import session_files

    taken, failed = list[JsonObject](), list[ReverieError]()
    for file in session_files(paths, places):
        try:
            found = import_session(file, places)
        except ReverieError as error:  # the other files are still imported
            failed.append(error)
            continue
        taken.append(found.to_json())
        if not as_json:
            new = plural(found.messages, "message") if found.messages else "nothing new"
            say(f"{found.session[:8]}  {new}  (reverie chat --resume {found.session[:8]})")
    answer(as_json, {"imported": taken})
    for error in failed[:-1]:
        click.echo(f"reverie: {error}", err=True)
    if failed:
        raise failed[-1]


@examples(
    "reverie sessions follow ~/.claude/projects ~/.codex/sessions",
    "reverie sessions follow",
    "reverie sessions follow --watch",
    "reverie sessions follow --stop ~/.codex/sessions",
)
@click.command("follow")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=_PATHS)
@click.option("--watch", is_flag=True, help="Continue until Ctrl-C.")
@click.option("--stop", metavar="PATH", multiple=True, type=_PATHS, help="Stop following this path. Repeatable.")
@folder_options
def follow_command(paths: tuple[Path, ...], watch: bool, stop: tuple[Path, ...], as_json: bool, cwd: Path) -> int:
    """Copy conversations of Claude Code, Codex and pi, and keep the copies up to date.

    PATH is a folder of session files (with its sub-folders) or one session file. Reverie remembers it; without PATH,
    the command updates everything that it remembers. Each session goes to the project of the folder in which it was
    recorded. All commands work with the copies, and `reverie extract --new` learns from them.

    A copy that you have continued stays as it is. A copy that you have deleted does not come back. Files of sub-agents
    are left out. The files of the other agents do not change.

    Exit codes: 0: done; 1: a file failed; 2: wrong usage; 4: storage error.
    """
    from reverie.storage.following import Outcome, Sources

    settings, places = load_places(cwd)
    sources = Sources(places)
    if stop:
        _stop(sources, stop, as_json)
        return 0
    named = [_source(path, places) for path in paths]
    sources.add(named)
    followed = named or sources.list()
    if not followed:
        raise UserError("Nothing is followed yet: give a folder of session files, such as ~/.claude/projects.")
    shown = set[tuple[Path, str]]()
    try:
        ended = _pass(settings, followed, as_json, shown)
        while watch:
            time.sleep(max(_LEAST_PAUSE_S, _IDLE_SHARE * ended[1]))
            ended = _pass(settings, followed if named else sources.list(), as_json, shown, again=True)
    except KeyboardInterrupt:
        if not watch:
            raise
        return 0
    return 1 if ended[0][Outcome.FAILED] else 0


def _source(path: Path, places: Places) -> Path:
    """The path to remember: absolute, and outside our own home."""
    path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 (a link stays a link: it may point elsewhere later)
    if not path.exists():
        raise UserError(f"{path} is not there: give a session file, or a folder of them.")
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(places.home)):
        raise UserError(f"{path} is in Reverie's own home, and its sessions are here already.")
    return path


def _stop(sources: Sources, paths: tuple[Path, ...], as_json: bool) -> None:
    known = [Path(os.path.abspath(path.expanduser())) for path in paths]  # noqa: PTH100
    unknown = [path for path in known if not sources.remove(path)]
    if unknown:
        listed = ", ".join(map(str, sources.list())) or "nothing"
        raise UserError(f"{unknown[0]} is not followed; followed: {listed}.")
    answer(as_json, {"stopped": [str(path) for path in known]}, *(f"No longer followed: {path}" for path in known))


def _pass(
    settings: Settings, sources: list[Path], as_json: bool, shown: set[tuple[Path, str]], *, again: bool = False
) -> tuple[Counter[Outcome], float]:
    """Follows everything once. Returns the number of files per outcome, and the seconds it took.

    `shown`: what was said already about files that were left alone or failed.
    """
    from reverie.storage.following import Outcome

    began, counts, changed = time.monotonic(), Counter[Outcome](), list[JsonObject]()
    live = sys.stderr.isatty() and not as_json
    for number, one in enumerate(_follow_all(settings, sources), 1):
        counts[one.outcome] += 1
        if one.outcome not in (Outcome.UNCHANGED, Outcome.EMPTY) and (
            one.messages or (one.path, one.reason) not in shown
        ):
            shown.add((one.path, one.reason))
            changed.append(one.to_json())
            if live:
                show_progress("")
            if not as_json:
                _show(one)
        if live and number % _SHOWN_EVERY == 0:
            show_progress(f"{number:,} files")
    if live:
        show_progress("")
    if changed or not again:
        by_name = {outcome.value.replace(" ", "_"): counts[outcome] for outcome in Outcome}
        parts = [f"{counts[one]:,} {one.value}" for one in Outcome if counts[one] or one is not Outcome.EMPTY]
        answer(as_json, {**by_name, "sessions": changed}, f"{', '.join(parts)}.")
    return counts, time.monotonic() - began


def _follow_all(settings: Settings, sources: list[Path]) -> Iterator[Followed]:
    from reverie.memory.upkeep.followed_sessions import open_follower
    from reverie.storage.following import Followed, Outcome

    follower = open_follower(settings)
    for source in sources:
        if source.exists():
            yield from follower.follow(source)
        else:
            why = "it is not there any more; `reverie sessions follow --stop` forgets it"
            yield Followed(source, Outcome.FAILED, reason=why)


def _show(one: Followed) -> None:
    from reverie.storage.following import Outcome

    if one.outcome in (Outcome.NEW, Outcome.GREW):
        more = f"  ({one.reason})" if one.reason else ""
        say(f"{one.outcome.value:<4}  {one.session[:8]}  {plural(one.messages, 'message')}  {one.cwd}{more}")
    else:
        warn(f"{one.outcome.value}: {one.path}: {one.reason.rstrip('.')}.")
