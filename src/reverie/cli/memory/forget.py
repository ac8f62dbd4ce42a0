"""`reverie forget`: finds the memory that a few words mean, asks, and removes it as one version that can be undone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.memory.opening import (
    can_ask,
    cwd_option,
    file_names,
    json_option,
    memory_in,
    painted,
    say,
    say_json,
    say_undo,
    version_json,
)
from reverie.cli.output import columns, cut, one_line
from reverie.errors import ReverieError, UserError
from reverie.memory.changes import WriteInfo, Writer

if TYPE_CHECKING:
    from reverie.memory.gate.saving import Meant
    from reverie.memory.opening import OpenedMemory


@click.command("forget")
@click.argument("text", nargs=-1, required=True, shell_complete=file_names)
@click.option("-y", "--yes", is_flag=True, help="Do not ask, if it is clear which memory is meant.")
@json_option
@cwd_option
def command(text: tuple[str, ...], yes: bool, as_json: bool, cwd: Path) -> None:
    """Forget a memory: its file and its index line go, as one version.

    TEXT is a file name, a title, or words that tell which memory is meant. Shows what it found and asks first; with
    --yes it goes only if one is clearly meant. `reverie memory undo` or `restore` bring it back.

    \b
    Examples:
      reverie forget "the staging port"
      reverie forget feedback_no_mocks --yes

    Exit codes: 0 forgotten, 1 nothing fits or you said no, 2 it is not clear which, 4 storage.
    """
    memory = memory_in(cwd)
    given = " ".join(text)
    name = chosen(memory, given, yes=yes, quiet=as_json)
    version = memory.directory.remove(name, WriteInfo(Writer.USER, "Asked for with `reverie forget`."))
    if as_json:
        say_json({"forgotten": name, "version": version_json(version)})
        return
    say(f"Forgot {painted().accent(name)}.")
    say_undo(version)


forget_command = command


def chosen(memory: OpenedMemory, given: str, *, yes: bool, quiet: bool) -> str:
    """The file to forget, as confirmed; raises if none is."""
    from reverie.memory.gate.saving import memories_meant

    found, is_clear = memories_meant(memory, given)
    if not found:
        raise ReverieError(f"No memory fits {given[:60]!r}; `reverie memory list` shows what there is.")
    if yes and is_clear:
        return found[0].file
    if not can_ask() or quiet:
        listed = ", ".join(one.file for one in found)
        if yes:
            raise UserError(f"Nothing was forgotten: {given[:60]!r} may mean {listed}; say which.")
        what = f"this would forget {found[0].file}" if is_clear else f"{given[:60]!r} may mean {listed}"
        raise UserError(f"Nothing was forgotten: {what}, and nobody is there to confirm it; name the file with --yes.")
    show(found if not is_clear else found[:1])
    if is_clear or len(found) == 1:
        if click.confirm("Forget it?"):
            return found[0].file
    else:
        answer = click.prompt("Which one? (0: none)", type=click.IntRange(0, len(found)), default=0)
        if answer:
            return found[answer - 1].file
    raise ReverieError("Nothing was forgotten.")


def show(found: list[Meant]) -> None:
    paint = painted()
    for number, one in enumerate(found, 1):
        mark = f"{number}  " if len(found) > 1 else ""
        say(f"  {mark}{paint.accent(one.file)}")
        if one.description:
            say(f"  {' ' * len(mark)}{paint.dim(cut(one_line(one.description), columns() - 6))}")
