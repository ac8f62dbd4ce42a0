"""`reverie memory inbox` and `reverie memory inferred`: what the user decides about memories, one key each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.memory.decisions import (
    KEYS,
    Decided,
    decide_item,
    decide_statement,
    item_lines,
    keys_of,
    statement_lines,
)
from reverie.cli.memory.opening import show_in_browser, undo_hint, with_memory
from reverie.cli.options import examples, web_option
from reverie.cli.output import answer, can_ask, get_paint, plural, read_key, say, say_all
from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory

T = TypeVar("T")


@examples(
    "reverie memory inbox",
    "reverie memory inbox --web",
    "reverie memory inbox show 3f2a",
    "reverie memory inbox accept 3f2a",
    "reverie memory inbox reject 3f2a 90bc",
    "reverie memory inbox keep 3f2a",
)
@agents_may(AgentsMay.NOTHING, reads=lambda given: given["verb"] in ("list", "show") and not given["web"])
@click.command("inbox")
@click.argument("verb", type=click.Choice(["list", "show", "accept", "reject", "keep"]), required=False)
@click.argument("ids", metavar="[ID...]", nargs=-1)
@web_option
@with_memory
def command(verb: str | None, ids: tuple[str, ...], web: bool, as_json: bool, memory: OpenedMemory) -> None:
    """Accept or reject what waits for your decision.

    A statement waits here if an agent wanted to save something that you did not say, or something that contradicts or
    removes what you confirmed. On a terminal, the command shows one item after the other: y accepts it, n rejects it, s
    leaves it, q ends. `accept` saves it as your own memory; `reject` deletes it. The first characters of an ID are
    enough.

    A memory that was changed here and elsewhere also waits here, in two files: y or `accept` takes the version of this
    machine, n or `reject` the other one, b or `keep` keeps both.
    """
    if web:
        show_in_browser(memory, "/inbox?project={project}")
        return
    inbox = memory.inbox
    if verb in (None, "list"):
        if ids:
            raise UserError("`inbox list` does not take an ID; `inbox show ID` shows one item.")
        items = inbox.list()
        if as_json or not items:
            answer(as_json, {"items": [item.to_json() for item in items]}, "The inbox is empty.")
        elif verb is None and can_ask():
            _review(
                items,
                lambda item: item_lines(item, memory, get_paint()),
                lambda item, yes: decide_item(memory, item, accepts=yes),
                keys_of,
            )
        else:
            for item in items:
                say_all([*item_lines(item, memory, get_paint()), ""])
            how = "accept ID, reject ID or keep ID" if any(item.other for item in items) else "accept ID, or reject ID"
            say(get_paint().dim(f"{plural(len(items), 'item')}: reverie memory inbox {how}"))
        return
    if not ids:
        raise UserError(f"Give an ID: reverie memory inbox {verb} ID.")
    for item in [inbox.show(one) for one in ids]:
        if verb == "show":
            answer(as_json, item.to_json(), *item_lines(item, memory, get_paint(), whole=True))
            continue
        if not as_json:
            say_all(item_lines(item, memory, get_paint()))
        if verb == "keep" and not item.other:
            raise UserError(f"{item.id} is not about two versions; accept it, or reject it.")
        _tell(decide_item(memory, item, accepts=None if verb == "keep" else verb == "accept"), as_json)


@examples(
    "reverie memory inferred",
    "reverie memory inferred confirm 3f2a",
    "reverie memory inferred reject 3f2a 90bc",
    "reverie memory inferred --json | jq -r '.statements[].statement'",
)
@agents_may(AgentsMay.NOTHING, reads=lambda given: given["verb"] == "list")
@click.command("inferred")
@click.argument("verb", type=click.Choice(["list", "confirm", "reject", "doubt"]), required=False)
@click.argument("ids", metavar="[ID...]", nargs=-1)
@with_memory
def inferred_command(verb: str | None, ids: tuple[str, ...], as_json: bool, memory: OpenedMemory) -> None:
    """List inferred statements, and confirm or reject them.

    A statement is inferred if it follows from what you said, but you did not say all of it, or if it comes from another
    text. On a terminal, the command shows one statement after the other with the words that it rests on: y confirms it,
    n removes it from its memory, s leaves it, q ends. `doubt` makes a confirmed statement inferred again. The first
    characters of an ID are enough.
    """
    if verb in (None, "list"):
        from reverie.memory.gate.review import list_inferred

        if ids:
            raise UserError("`inferred list` does not take an ID.")
        found = list_inferred(memory.directory)
        if as_json or not found:
            answer(as_json, {"statements": [one.to_json() for one in found]}, "No statement is inferred.")
        elif verb is None and can_ask():
            _review(
                found,
                lambda one: statement_lines(one, get_paint()),
                lambda one, yes: decide_statement(memory, one.id, "confirm" if yes else "reject"),
            )
        else:
            for one in found:
                say_all([*statement_lines(one, get_paint()), ""])
            say(get_paint().dim(f"{plural(len(found), 'statement')}: reverie memory inferred confirm ID, or reject ID"))
        return
    if not ids:
        raise UserError(f"Give an ID: reverie memory inferred {verb} ID.")
    for id in ids:
        _tell(decide_statement(memory, id, verb), as_json)


def _tell(decided: Decided, as_json: bool) -> None:
    answer(as_json, decided.result, decided.said, *undo_hint(decided.version))


def _review(
    found: Sequence[T],
    lines: Callable[[T], Iterable[str]],
    decide: Callable[[T, bool | None], Decided],
    keys_of: Callable[[T], Mapping[str, str]] = lambda _: KEYS,
) -> None:
    """Shows one after the other and waits for one key each."""
    paint = get_paint()
    for number, one in enumerate(found, 1):
        say_all(lines(one))
        keys = keys_of(one)
        offered = "  ".join(f"{paint.bold(key)} {word}" for key, word in keys.items())
        question = f"{paint.dim(f'{number} of {len(found)}')}  {offered} › "
        while (key := read_key(question)) not in keys:
            if not key.isalnum():  # Escape, Ctrl-D, the end of the input
                key = "q"
                break
            question = ""
        say(keys[key])
        if key == "q":
            return
        if key != "s":
            _tell(decide(one, None if key == "b" else key == "y"), False)
        say()
