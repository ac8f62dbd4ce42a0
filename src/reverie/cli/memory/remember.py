"""`reverie remember`: a sentence becomes a memory. What may not be worth keeping is saved with a warning."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.memory.opening import (
    TYPES,
    can_ask,
    cwd_option,
    json_option,
    memory_in,
    painted,
    say,
    say_json,
    say_undo,
    version_json,
    warn,
    wrapped,
)
from reverie.errors import UserError
from reverie.memory.taxonomy import MemoryType

if TYPE_CHECKING:
    from reverie.memory.gate.saving import Choice, Saved
    from reverie.memory.note import Note, Related
    from reverie.memory.opening import OpenedMemory


@click.command("remember")
@click.argument("text", nargs=-1)
@click.option("-t", "--type", "kind", type=TYPES, help="What kind of memory it is.  [default: by its words]")
@click.option("--name", default="", help="Its title.  [default: from its first sentence]")
@click.option("--new", "always_new", is_flag=True, help="A memory of its own, also beside one that says much the same.")
@json_option
@cwd_option
def command(text: tuple[str, ...], kind: str | None, name: str, always_new: bool, as_json: bool, cwd: Path) -> None:
    """Remember something, in your own words.

    Becomes a file of its own with a line in the index; if a memory says much the same, that one is corrected instead
    (on a terminal you are asked). Days such as "tomorrow" get their date. Secrets are refused. `-` or no TEXT reads
    standard input.

    \b
    Examples:
      reverie remember "Integration tests use a real database, because a mock hid a broken migration"
      reverie remember "The freeze begins on Thursday" --type project
      git log -1 --format=%B | reverie remember --name "Last change"

    Exit codes: 0 saved, or known already; 1 memory is off; 2 refused (a secret) or usage; 4 storage.
    """
    remember(memory_in(cwd), given_text(text), kind, name, always_new=always_new, as_json=as_json)


def given_text(words: tuple[str, ...]) -> str:
    """What was given as arguments, else on standard input."""
    if words and words != ("-",):
        return " ".join(words)
    if sys.stdin.isatty():
        raise UserError('Say what to remember: reverie remember "…".')
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def remember(
    memory: OpenedMemory, text: str, kind: str | None, name: str, *, always_new: bool, as_json: bool, why: str = ""
) -> None:
    """Saves a text and tells what became of it."""
    from reverie.memory.changes import WriteInfo, Writer
    from reverie.memory.gate.saving import refuse_secrets, save_note
    from reverie.memory.note import note_of

    memory.require_on("nothing is remembered")
    refuse_secrets(f"{name}\n{text}")
    today = datetime.now().astimezone().date()
    note = note_of(text, today=today, type=MemoryType(kind) if kind else None, name=name)

    def choose(near: Related) -> Choice:
        if always_new:
            return "new"
        return _asked(near, note) if can_ask() and not as_json else "update"

    saved = save_note(memory, note, WriteInfo(Writer.USER, why or "Asked for with `reverie remember`."), choose)
    if as_json:
        say_json(
            {
                "action": saved.action,
                "file": saved.file,
                "type": note.type.value,
                "name": note.topic.name,
                "description": note.topic.description,
                "instead_of": saved.instead_of or None,
                "warnings": list(saved.warnings),
                "version": version_json(saved.version),
            }
        )
        return
    tell(saved, note)


def _asked(near: Related, note: Note) -> Choice:
    paint = painted()
    say(f"{paint.accent(near.file)} says much the same:")
    say(f"  {paint.dim('now')}  {near.statement}")
    say(f"  {paint.dim('new')}  {note.statement}")
    answer = click.prompt(
        "Correct it, make a new memory, or leave it?",
        type=click.Choice(["correct", "new", "leave"]),
        default="correct",
    )
    choices: dict[str, Choice] = {"correct": "update", "new": "new", "leave": "nothing"}
    return choices[answer]


def tell(saved: Saved, note: Note) -> None:
    """What became of it, in words."""
    paint = painted()
    match saved.action:
        case "added":
            say(f"Remembered as {paint.accent(saved.file)} ({note.type.value}).")
        case "updated":
            say(f"Corrected {paint.accent(saved.file)}:")
            say(f"  {paint.dim('before')}  {wrapped(saved.instead_of, 10)[0]}")
            say(f"  {paint.dim('now')}     {wrapped(note.statement, 10)[0]}")
        case "unchanged":
            say(f"{paint.accent(saved.file)} says this already; nothing was changed.")
        case "nothing":
            say("Nothing was changed.")
    for text in saved.warnings:
        warn(f"{text} It was saved all the same.")
    if saved.version is not None:
        say_undo(saved.version)
