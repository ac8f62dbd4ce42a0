"""`reverie memory inbox`: memories that wait for the user's decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reverie.cli.memory.opening import undo_hint, version_json, with_memory
from reverie.cli.options import examples
from reverie.cli.output import answer, get_paint, one_line, plural, say, wrap
from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.memory.gate.inbox import Item, MemoryInbox
    from reverie.memory.opening import OpenedMemory

_WHY = {"evidence": "you did not say this", "contradiction": "you confirmed something else"}


@examples(
    "reverie memory inbox",
    "reverie memory inbox show 3f2a",
    "reverie memory inbox accept 3f2a",
    "reverie memory inbox reject all",
)
@click.command("inbox")
@click.argument("verb", type=click.Choice(["list", "show", "accept", "reject"]), default="list")
@click.argument("ids", metavar="[ID...]", nargs=-1)
@with_memory
def command(verb: str, ids: tuple[str, ...], as_json: bool, memory: OpenedMemory) -> None:
    """Accept or reject memories that wait for your decision.

    A memory waits here if an agent wanted to save something that does not come from your own words, or something that
    contradicts a memory that comes from you. `accept` saves it as your own memory; `reject` deletes it. The first
    characters of an ID are enough; `all` means every item.
    """
    inbox = memory.inbox
    if verb == "list":
        if ids:
            raise UserError("`inbox list` does not take an ID; `inbox show ID` shows one item.")
        _list(inbox, as_json)
        return
    if not ids:
        raise UserError(f"Give an ID: reverie memory inbox {verb} ID.")
    items = inbox.list() if ids == ("all",) else [inbox.show(one) for one in ids]
    if verb == "accept":
        memory.require_on("nothing is accepted")
    for item in items:
        if verb == "show":
            _show(item, as_json)
        elif verb == "accept":
            version = inbox.accept(item.id, memory.directory)
            result = {"accepted": item.id, "file": item.file, "version": version_json(version)}
            said = f"Accepted {item.id}: {get_paint().accent(one_line(item.file))}, confirmed by you."
            answer(as_json, result, said, *undo_hint(version))
        else:
            inbox.reject(item.id)
            result = {"rejected": item.id, "file": item.file}
            answer(as_json, result, f"Rejected {item.id}: {one_line(item.file)}.")


def _list(inbox: MemoryInbox, as_json: bool) -> None:
    items = inbox.list()
    answer(as_json, {"items": [item.to_json() for item in items]}, *([] if items else ["The inbox is empty."]))
    if as_json or not items:
        return
    for item in items:
        _brief(item)
        say()
    say(get_paint().dim(f"{plural(len(items), 'item')}: reverie memory inbox accept ID, or reject ID"))


def _brief(item: Item) -> None:
    paint = get_paint()
    why = _WHY.get(item.why, item.why)
    say(f"{paint.accent(item.id)}  {paint.bold(one_line(item.file))}  {paint.dim(f'{why}, {item.time[:10]}')}")
    for text in [item.question] if item.question else item.statements:
        for number, line in enumerate(wrap(text, 12)):
            say(f"          {'- ' if number == 0 and not item.question else '  '}{line}")


def _show(item: Item, as_json: bool) -> None:
    if as_json:
        answer(True, item.to_json())
        return
    paint = get_paint()
    _brief(item)
    say()
    for line in item.text.splitlines():
        say(f"  {one_line(line)}")
    if item.sources:
        say()
        say(paint.dim("Checked against:"))
    for source in item.sources:
        for number, line in enumerate(wrap(source.excerpt, 14)):
            say(paint.dim(f"  {source.origin if number == 0 else '':<10}  {line}"))
