"""`reverie remember|forget` and `reverie memory add|edit`: a memory from a sentence, a file or an editor, and its end.

What may not be worth keeping is saved with a warning. Edits happen in a copy and land through the gate. A file that
somebody else changed meanwhile is not overwritten: the person's text is kept and they are told where.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reverie.cli.memory.opening import TYPES, file_meant, file_names, undo_line, version_json, with_memory
from reverie.cli.output import answer, can_ask, columns, cut, one_line, painted, say, say_all, warn, wrapped
from reverie.errors import ReverieError, UserError
from reverie.memory.changes import Change, WriteInfo, Writer
from reverie.memory.taxonomy import INDEX, MemoryType, is_index, is_topic
from reverie.memory.topic_file import TopicFile, decode
from reverie.regular_files import read_regular
from reverie.settings.loading import find_editor
from reverie.storage.history.versions import Version

if TYPE_CHECKING:
    from reverie.memory.gate.saving import Choice, Meant, Saved
    from reverie.memory.note import Note, Related
    from reverie.memory.opening import OpenedMemory

F = TypeVar("F", bound=Callable[..., Any])
_TEMPLATE = """\
---
name: {name}
description:
type: {kind}
---

"""


def _note_options(function: F) -> F:
    """What can be said of a new memory beside its text."""
    kind = click.option("-t", "--type", "kind", type=TYPES, help="What kind of memory it is.  [default: by its words]")
    name = click.option("--name", default="", help="Its title.  [default: from its first sentence]")
    new_help = "A memory of its own, also beside one that says much the same."
    return kind(name(click.option("--new", "always_new", is_flag=True, help=new_help)(function)))


@click.command("remember")
@click.argument("text", nargs=-1)
@_note_options
@with_memory
def remember_command(text: tuple[str, ...], memory: OpenedMemory, **more: Any) -> None:
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
    _remember(memory, _given(text), "Asked for with `reverie remember`.", **more)


@click.command("add")
@click.argument("text", nargs=-1)
@_note_options
@click.option(
    "-f", "--file", "source", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="From a file."
)
@with_memory
def add_command(
    text: tuple[str, ...], kind: str | None, name: str, source: Path | None, memory: OpenedMemory, **more: Any
) -> None:
    """Add a memory: a sentence, a whole file with its frontmatter, or what you write in your editor.

    Without TEXT and --file it reads standard input or, on a terminal, opens $VISUAL or $EDITOR. Otherwise as `reverie
    remember`.

    \b
    Examples:
      reverie memory add "Anna owns the billing service"
      reverie memory add --file README.md --type project
      reverie memory add --type feedback
    """
    memory.require_on("nothing is added")
    if source is not None:
        given = read_regular(source).decode("utf-8", "replace")
    elif not text and sys.stdin.isatty():
        given = edited(_TEMPLATE.format(name=name, kind=kind or ""), "new memory")
        if not TopicFile.parse(given).body.strip():
            raise ReverieError("Nothing was added: there was no text below the frontmatter.")
    else:
        given = _given(text)
    _remember(memory, given, "Added with `reverie memory add`.", kind=kind, name=name, **more)


def _given(words: tuple[str, ...]) -> str:
    """What was given as arguments, else on standard input."""
    if words and words != ("-",):
        return " ".join(words)
    if sys.stdin.isatty():
        raise UserError('Say what to remember: reverie remember "…".')
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _remember(
    memory: OpenedMemory, text: str, why: str, *, kind: str | None, name: str, always_new: bool, as_json: bool
) -> None:
    """Saves a text and tells what became of it."""

    def choose(near: Related, note: Note) -> Choice:
        if always_new:
            return "new"
        return _asked(near, note) if can_ask() and not as_json else "update"

    saved, note = save_text(memory, text, WriteInfo(Writer.USER, why), choose, kind=kind, name=name)
    told = {
        "action": saved.action,
        "file": saved.file,
        "type": note.type.value,
        "name": note.topic.name,
        "description": note.topic.description,
        "instead_of": saved.instead_of or None,
        "warnings": list(saved.warnings),
        "version": version_json(saved.version),
    }
    answer(as_json, told, *_told(saved, note))
    if not as_json:
        for text in saved.warnings:
            warn(f"{text} It was saved all the same.")
        say_all(undo_line(saved.version))


def save_text(
    memory: OpenedMemory,
    text: str,
    info: WriteInfo,
    choose: Callable[[Related, Note], Choice] = lambda _near, _note: "update",
    *,
    kind: str | None = None,
    name: str = "",
) -> tuple[Saved, Note]:
    """Makes a memory of a person's text; `choose`: what to do where one says much the same."""
    from datetime import datetime

    from reverie.memory.gate.saving import refuse_secrets, save_note
    from reverie.memory.note import note_of

    memory.require_on("nothing is remembered")
    refuse_secrets(f"{name}\n{text}")
    today = datetime.now().astimezone().date()
    note = note_of(text, today=today, type=MemoryType(kind) if kind else None, name=name)
    return save_note(memory, note, info, lambda near: choose(near, note)), note


def _asked(near: Related, note: Note) -> Choice:
    paint = painted()
    say(f"{paint.accent(near.file)} says much the same:")
    say(f"  {paint.dim('now')}  {near.statement}")
    say(f"  {paint.dim('new')}  {note.statement}")
    choices: dict[str, Choice] = {"correct": "update", "new": "new", "leave": "nothing"}
    question = "Correct it, make a new memory, or leave it?"
    return choices[click.prompt(question, type=click.Choice(list(choices)), default="correct")]


def _told(saved: Saved, note: Note) -> list[str]:
    """What became of it, in words."""
    paint = painted()
    match saved.action:
        case "added":
            return [f"Remembered as {paint.accent(saved.file)} ({note.type.value})."]
        case "updated":
            before, now = wrapped(saved.instead_of, 10)[0], wrapped(note.statement, 10)[0]
            head = f"Corrected {paint.accent(saved.file)}:"
            return [head, f"  {paint.dim('before')}  {before}", f"  {paint.dim('now')}     {now}"]
        case "unchanged":
            return [f"{paint.accent(saved.file)} says this already; nothing was changed."]
        case "nothing":
            return ["Nothing was changed."]


@click.command("edit")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@with_memory
def edit_command(file: str, as_json: bool, memory: OpenedMemory) -> None:
    """Edit a memory, or MEMORY.md, in $VISUAL or $EDITOR.

    You edit a copy. It is saved as one version when the editor ends, and its index line follows a new name or
    description. An empty text forgets the memory. Changing files in the directory itself works as well: that becomes a
    version at the next touch.

    \b
    Examples:
      reverie memory edit feedback_no_mocks
      EDITOR="code --wait" reverie memory edit MEMORY.md
    """
    name = file_meant(memory, file)
    before = memory.directory.read(name)
    text, info = before.text, WriteInfo(Writer.USER, "Edited with `reverie memory edit`.")
    while True:
        text = edited(text, name)
        if text == before.text:
            say("Nothing was changed.", err=True)
            answer(as_json, {"file": name, "changed": False, "version": None})
            return
        try:
            version = save_edited(memory, name, text, before.digest, info)
            break
        except ReverieError as error:
            if can_ask() and not as_json:
                warn(str(error))
                if click.confirm("Edit again?", default=True):
                    continue
            raise _kept(error, name, text) from error
    told = {"file": name, "changed": version is not None, "version": version_json(version)}
    did = "Saved" if memory.directory.exists(name) else "Forgot"
    answer(as_json, told, f"{did} {painted().accent(name)}.", *undo_line(version))


def save_edited(memory: OpenedMemory, name: str, text: str, base: str, info: WriteInfo) -> Version | None:
    """Saves what an editor made of a memory or an index, if it still is what `base` says."""
    if is_topic(name):
        return memory.directory.update(name, TopicFile.parse(text), info, base=base)
    if not is_index(name):
        raise UserError(f"{name} is neither a memory nor {INDEX}.")
    return memory.directory.transaction([Change(name, text, base)], info)


def _kept(error: ReverieError, name: str, text: str) -> ReverieError:
    """The same refusal, after the person's text was put where they find it; a secret is not kept."""
    import tempfile

    from reverie.memory.gate.write_gate import Refused

    if isinstance(error, Refused):
        return error
    with tempfile.NamedTemporaryFile("wb", prefix="reverie-", suffix=f"-{Path(name).name}", delete=False) as kept:
        kept.write(text.encode("utf-8", "surrogateescape"))
    return ReverieError(f"{error} Your text is in {kept.name}.")


def edited(text: str, name: str) -> str:
    """The text as the person left it in their editor."""
    import shlex
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="reverie-") as folder:
        draft = Path(folder) / (Path(name).name if name.endswith(".md") else "memory.md")
        draft.write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            words = shlex.split(find_editor())
            done = subprocess.run([*words, str(draft)], check=False)
        except ValueError as error:
            raise UserError(f"EDITOR is set to {find_editor()!r}, which cannot be read: {error}.") from error
        except OSError as error:
            raise UserError(
                f"The editor {find_editor()!r} cannot be started ({error.strerror}); set EDITOR."
            ) from error
        if done.returncode != 0:
            raise ReverieError(f"The editor ended with code {done.returncode}; nothing was changed.")
        try:
            return decode(read_regular(draft))
        except FileNotFoundError:
            raise ReverieError("The editor removed the draft; nothing was changed.") from None


@click.command("forget")
@click.argument("text", nargs=-1, required=True, shell_complete=file_names)
@click.option("-y", "--yes", is_flag=True, help="Do not ask, if it is clear which memory is meant.")
@with_memory
def forget_command(text: tuple[str, ...], yes: bool, as_json: bool, memory: OpenedMemory) -> None:
    """Forget a memory: its file and its index line go, as one version.

    TEXT is a file name, a title, or words that tell which memory is meant. Shows what it found and asks first; with
    --yes it goes only if one is clearly meant. `reverie memory undo` or `restore` bring it back.

    \b
    Examples:
      reverie forget "the staging port"
      reverie forget feedback_no_mocks --yes

    Exit codes: 0 forgotten, 1 nothing fits or you said no, 2 it is not clear which, 4 storage.
    """
    name = _to_forget(memory, " ".join(text), yes=yes, quiet=as_json)
    version = memory.directory.remove(name, WriteInfo(Writer.USER, "Asked for with `reverie forget`."))
    told = {"forgotten": name, "version": version_json(version)}
    answer(as_json, told, f"Forgot {painted().accent(name)}.", *undo_line(version))


def _to_forget(memory: OpenedMemory, given: str, *, yes: bool, quiet: bool) -> str:
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
    _show(found if not is_clear else found[:1])
    if is_clear or len(found) == 1:
        if click.confirm("Forget it?"):
            return found[0].file
    elif chosen := click.prompt("Which one? (0: none)", type=click.IntRange(0, len(found)), default=0):
        return found[chosen - 1].file
    raise ReverieError("Nothing was forgotten.")


def _show(found: list[Meant]) -> None:
    paint = painted()
    for number, one in enumerate(found, 1):
        mark = f"{number}  " if len(found) > 1 else ""
        say(f"  {mark}{paint.accent(one.file)}")
        if one.description:
            say(f"  {' ' * len(mark)}{paint.dim(cut(one_line(one.description), columns() - 6))}")
