"""`reverie sessions`: lists, shows and deletes conversations of Reverie, and of other agents that were copied here.

Loads no event loop, no SDK and no flags, so that it starts fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.options import (
    cwd_option,
    examples,
    folder_options,
    json_lines_option,
    places_of,
    session_choice,
    session_ids,
    session_option,
    web_option,
    with_places,
)
from reverie.cli.output import (
    Paint,
    answer,
    can_ask,
    columns,
    format_age,
    format_size,
    get_paint,
    keep_end,
    line_width,
    one_line,
    plural,
    say_all,
    table,
)
from reverie.cli.screen import clean, json_text, write_document
from reverie.cli.sessions.follow import follow_command, import_command
from reverie.cli.sessions.upload import upload_command
from reverie.daemon.told import ToldBook
from reverie.errors import ReverieError, UserError
from reverie.moments import iso
from reverie.paths import Places
from reverie.paths.places import hooks_folder
from reverie.storage.lease import Lease
from reverie.storage.transcript.file import dump_record
from reverie.storage.transcript.session_files import read_session
from reverie.storage.transcript.sessions import (
    SessionInfo,
    delete_session,
    find_session,
    list_all_sessions,
    list_sessions,
)
from reverie.text.columns import cut

_ID_SHOWN = 8


@examples("reverie sessions list", "reverie sessions show last", "reverie sessions delete 3f2a --yes")
@agents_may(AgentsMay.ALL)
@click.group("sessions")
def command() -> None:
    """List, show and delete conversations; copy those of Claude Code, Codex and pi.

    SESSION is the id of a session (its first characters are enough), or `last`: the last used session of this folder.
    The default is `last`. The command looks in this folder first, then in all others.
    """


@examples(
    "reverie sessions list",
    "reverie sessions list --all --limit 20",
    "reverie sessions list --json | jq -r '.sessions[].id'",
)
@agents_may(AgentsMay.ALL)
@command.command("list")
@click.option("-a", "--all", "everywhere", is_flag=True, help="List the sessions of all folders.")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="Show only the newest N.", metavar="N")
@with_places
def list_command(everywhere: bool, limit: int | None, as_json: bool, places: Places) -> None:
    """List the conversations of this folder, sorted by their last message, newest first.

    A dot marks live sessions: they are open in a process. `last` is the session that was used last. For example, an old
    conversation that you have just imported is `last`, but it is not the first of the list.
    """
    found = list_all_sessions(places.projects) if everywhere else list_sessions(places.project)
    found = sorted(found, key=lambda info: info.said, reverse=True)[:limit]
    if as_json:
        answer(True, {"sessions": [_as_json(info) for info in found]})
        return
    if not found:
        where = "There are no sessions yet" if everywhere else f"There are no sessions of {places.cwd} yet"
        click.echo(f"{where}; `reverie chat` starts one.", err=True)
        return
    say_all(_table(found, get_paint(), columns(200) if sys.stdout.isatty() else 10_000, everywhere))


def _holder_pid(info: SessionInfo) -> int | None:
    """The PID of the process that has the session open; None if there is none, 0 if it is unknown."""
    try:
        holder = Lease.holder(info.lease)
    except ReverieError:
        return None
    return None if holder is None else int(holder.get("pid") or 0)


def _as_json(info: SessionInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "title": info.title,
        "modified": iso(info.modified),
        "said": iso(info.said),
        "size": info.size,
        "cwd": info.cwd,
        "branch": info.git_branch,
        "path": str(info.path),
        "open_in": _holder_pid(info),
    }


def _table(found: list[SessionInfo], paint: Paint, wide: int, everywhere: bool) -> Iterator[str]:
    short = _distinct_length([info.id for info in found])
    narrow = wide < 100
    rows = [
        (
            format_age(info.said),
            paint.accent(info.id[:short]),
            one_line(info.title) or "(untitled)",
            paint.dim(format_size(info.size)),
            "" if narrow and everywhere else paint.dim(cut(one_line(info.git_branch), 14 if narrow else 24)),
            paint.dim(keep_end(_from_home(info.cwd), max(12, wide // 4))) if everywhere else "",
        )
        for info in found
    ]
    for info, line in zip(found, table(rows, right=(0, 3), room=wide - 2, flexible=2), strict=True):
        yield f"{' ' if _holder_pid(info) is None else paint.good('●')} {line}"


def _distinct_length(ids: list[str]) -> int:
    short = _ID_SHOWN
    while short < max(map(len, ids)) and len({one[:short] for one in ids}) < len(set(ids)):
        short += 1
    return short


def _from_home(folder: str) -> str:
    home = str(Path.home())
    return "~" + folder[len(home) :] if folder == home or folder.startswith(home + "/") else folder


def _find(wanted: str, cwd: Path) -> SessionInfo:
    return find_session(places_of(cwd).project, wanted, everywhere=True)


@examples(
    "reverie sessions show last",
    "reverie sessions show 3f2a --full | less -R",
    "reverie sessions show last --json | jq .type",
    "reverie sessions show 3f2a --web",
)
@agents_may(AgentsMay.ALL)
@command.command("show")
@session_choice()
@click.option("--full", is_flag=True, help="Also show tool results, thinking, and what Reverie added (e.g. memories).")
@web_option
@json_lines_option
@cwd_option
def show_command(session: str, full: bool, web: bool, as_json: bool, cwd: Path) -> None:
    """Show a conversation: messages, and one line per tool call.

    SESSION can also be the path of a transcript. Lines that cannot be read are listed at the end.
    """
    path = Path(session) if session.endswith(".jsonl") else _find(session, cwd).path
    if web:
        from reverie.cli.sessions.cost import session_in_home, show_page

        show_page(cwd, f"/sessions/{session_in_home(path, places_of(cwd))}")
        return
    loaded = read_session(path)
    if as_json:
        for record in loaded.records:
            write_document(dump_record(record).decode("utf-8", "replace"))
        return
    from reverie.cli.sessions.text import transcript_text

    paint = get_paint()
    pieces = transcript_text(loaded, paint, line_width(100), full=full)
    if can_ask():
        _show_paged("".join(pieces).rstrip("\n"), paint)
        return
    for piece in pieces:
        click.echo(piece, nl=False, color=paint.on)


def _show_paged(text: str, paint: Paint) -> None:
    import shutil

    if text.count("\n") < shutil.get_terminal_size().lines - 2:
        click.echo(text, color=paint.on)
    else:
        click.echo_via_pager(clean(text), color=paint.on)


@examples('grep -c tool_use "$(reverie sessions path last)"')
@agents_may(AgentsMay.ALL)
@command.command("path")
@session_choice()
@folder_options
def path_command(session: str, as_json: bool, cwd: Path) -> None:
    """Print the path of a transcript."""
    found = _find(session, cwd)
    shown = json_text({"session": found.id, "path": str(found.path)}) if as_json else str(found.path)
    write_document(f"{shown}\n")


@examples("reverie sessions delete 3f2a 77b0", "reverie sessions delete last --yes")
@command.command("delete")
@click.argument("sessions", metavar="[SESSION]...", nargs=-1, shell_complete=session_ids)
@session_option("The same as SESSION. Repeatable.", "also", multiple=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@folder_options
def delete_command(sessions: tuple[str, ...], also: tuple[str, ...], yes: bool, as_json: bool, cwd: Path) -> None:
    """Delete conversations and all their files.

    Shows what will be deleted, and asks. A live session, which is open in a process, is not deleted (exit code 3).
    """
    if not sessions and not also:
        raise click.UsageError("Name the sessions to delete; `last` is the last session of this folder.")
    found = list({info.path: info for info in (_find(one, cwd) for one in (*sessions, *also))}.values())
    for info in found:
        files, held = _measure_folder(info)
        more = f" and {plural(files, 'more file')} ({format_size(held)})" if files else ""
        line = f"{info.id[:_ID_SHOWN]}  {cut(one_line(info.title), 50)}  transcript ({format_size(info.size)}){more}"
        click.echo(line, err=as_json)
    if not yes:
        if not sys.stdin.isatty():
            raise UserError("Nothing was deleted: there is no terminal to ask on; give --yes.")
        if not click.confirm(f"Delete {plural(len(found), 'session')}? This cannot be undone."):
            click.echo("Nothing was deleted.")
            return
    for info in found:
        delete_session(info)
        ToldBook(hooks_folder(places_of(cwd).home)).forget(info.id)
        if not as_json:
            click.echo(f"Deleted {info.id}.")
    answer(as_json, {"deleted": [info.id for info in found]})


def _measure_folder(info: SessionInfo) -> tuple[int, int]:
    files, held = 0, 0
    for folder, _, names in os.walk(info.folder):
        for name in names:
            try:
                held += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
                files += 1
            except OSError:
                continue
    return files, held


command.add_command(import_command)
command.add_command(follow_command)
command.add_command(upload_command)
