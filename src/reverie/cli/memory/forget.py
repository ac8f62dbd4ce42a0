"""`reverie forget`: finds a memory by its name or by what it says, and removes it with its index line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reverie.cli.below_agent import text_origin
from reverie.cli.memory.opening import file_names, undo_hint, version_json, with_memory
from reverie.cli.options import examples
from reverie.cli.output import answer, can_ask, columns, get_paint, one_line, say, warn
from reverie.errors import ReverieError, UserError
from reverie.memory.changes import WriteInfo, Writer
from reverie.text.columns import cut
from reverie.types import Origin

if TYPE_CHECKING:
    from reverie.memory.gate.saving import MemoryMatch
    from reverie.memory.opening import OpenedMemory

_OFFERED = 20


@examples('reverie forget "the staging port"', "reverie forget feedback_no_mocks --yes")
@click.command("forget")
@click.argument("text", nargs=-1, required=True, shell_complete=file_names)
@click.option("-y", "--yes", is_flag=True, help="Do not ask if exactly one memory matches clearly.")
@with_memory
def forget_command(text: tuple[str, ...], yes: bool, as_json: bool, memory: OpenedMemory) -> None:
    """Forget a memory: remove its file and its line in the index (MEMORY.md).

    TEXT is a file name, a title, or a few words of the memory, in any language. The command shows the memory and asks.
    With --yes it does not ask, but it removes a memory only if exactly one matches clearly. The change is one version
    in the history; `reverie memory undo` or `restore` brings the memory back. `reverie memory purge --forgotten FILE`
    removes the text from the history too.

    Exit codes: 0: forgotten; 1: no memory matches, or you said no; 2: wrong usage, or more than one matches; 4: storage
    error.
    """
    from reverie.memory.gate.saving import forget_file

    if text_origin() is Origin.MODEL:
        _forget_for_agent(memory, " ".join(text), as_json)
        return
    name = _choose_to_forget(memory, " ".join(text), yes=yes, quiet=as_json)
    forgotten = forget_file(memory, name, WriteInfo(Writer.USER, "Asked for with `reverie forget`."))
    result = {
        "forgotten": name,
        "version": version_json(forgotten.version),
        "also_in": forgotten.also_in,
        "purge": forgotten.purge,
    }
    hints = [*undo_hint(forgotten.version), get_paint().dim(f"Remove it from the history too: {forgotten.purge}")]
    answer(as_json, result, f"Forgot {get_paint().accent(name)}.", *hints)
    if forgotten.also_in and not as_json:
        warn(f"{', '.join(forgotten.also_in)} says much the same.")


def _forget_for_agent(memory: OpenedMemory, words: str, as_json: bool) -> None:
    from reverie.library.writing import forget

    done = forget(memory, words, Origin.MODEL.value, by="`reverie forget` of an agent")
    result = {"forgotten": done.name if done.undo else None, "waiting": done.waiting or None, "note": done.note or None}
    said = f"Forgot {done.name}." if done.undo else f"{done.name} stays until the user decides."
    answer(as_json, result, said, *filter(None, [done.note]))


def _choose_to_forget(memory: OpenedMemory, given: str, *, yes: bool, quiet: bool) -> str:
    """The file that the user wants to forget; raises if there is none."""
    from reverie.memory.gate.saving import MemoryMatch, find_memories

    found, is_clear = find_memories(memory, given)
    can_choose = can_ask() and not quiet
    if not found and can_choose:  # the user may mean one in other words: they choose
        found = [MemoryMatch(one.name, one.description, 0.0) for one in memory.directory.list()[:_OFFERED]]
        if found:
            say(f"No memory has these words. {'The newest are' if len(found) == _OFFERED else 'All memories'}:")
    if not found:
        raise ReverieError(f"No memory matches {given[:60]!r}; `reverie memory list` lists all memories.")
    if yes and is_clear:
        return found[0].file
    if not can_choose:
        listed = ", ".join(one.file for one in found)
        if yes:
            raise UserError(f"Nothing was forgotten: {given[:60]!r} matches {listed}; name one.")
        what = f"this would forget {found[0].file}" if is_clear else f"{given[:60]!r} matches {listed}"
        raise UserError(f"Nothing was forgotten: {what}. There is no terminal to ask on; name the file with --yes.")
    _show(found if not is_clear else found[:1])
    if is_clear or len(found) == 1:
        if click.confirm("Forget it?"):
            return found[0].file
    elif chosen := click.prompt("Which one? (0: none)", type=click.IntRange(0, len(found)), default=0):
        return found[chosen - 1].file
    raise ReverieError("Nothing was forgotten.")


def _show(found: list[MemoryMatch]) -> None:
    paint = get_paint()
    for number, one in enumerate(found, 1):
        mark = f"{number}  " if len(found) > 1 else ""
        say(f"  {mark}{paint.accent(one.file)}")
        if one.description:
            say(f"  {' ' * len(mark)}{paint.dim(cut(one_line(one.description), columns() - 6))}")
