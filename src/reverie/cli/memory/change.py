"""`reverie remember` and `reverie memory add|edit`: writes and edits memories.

Edits happen in a copy and go through the write gate. A file that changed in the meantime is not overwritten: the user's
text is saved elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reverie.cli.below_agent import text_origin
from reverie.cli.memory.opening import TYPES, file_names, undo_hint, version_json, with_memory
from reverie.cli.options import examples
from reverie.cli.output import (
    answer,
    can_ask,
    get_paint,
    say,
    say_all,
    warn,
    wrap,
)
from reverie.errors import ReverieError, UserError
from reverie.memory.changes import Change, WriteInfo, Writer
from reverie.memory.taxonomy import INDEX, is_index, is_topic
from reverie.memory.topic_file import TopicFile, decode
from reverie.regular_files import read_regular
from reverie.settings.loading import find_editor
from reverie.storage.history.versions import Version
from reverie.types import Origin

if TYPE_CHECKING:
    from reverie.memory.gate.saving import Choice, Saved
    from reverie.memory.note import Note, Related
    from reverie.memory.opening import OpenedMemory

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_TYPE_HELP = (
    "user: about you; feedback: how to work; project: facts about the work; reference: where to find something.  "
    "[default: chosen from the text]"
)
_TEMPLATE = """\
---
name: {name}
description:
type: {kind}
---

"""


def _note_options(function: F) -> F:
    kind = click.option("-t", "--type", "kind", type=TYPES, help=_TYPE_HELP)
    name = click.option("--name", default="", help="Its title.  [default: from its first sentence]")
    new = click.option("--new", "always_new", is_flag=True, help="Add a new memory, even if there is a similar one.")
    return kind(name(new(function)))


@examples(
    'reverie remember "Integration tests use a real database, because a mock hid a broken migration"',
    'reverie remember "The freeze begins on Thursday" --type project',
    'git log -1 --format=%B | reverie remember --name "Last change"',
)
@click.command("remember")
@click.argument("text", nargs=-1)
@_note_options
@with_memory
def remember_command(text: tuple[str, ...], memory: OpenedMemory, **more: Any) -> None:
    """Remember something, in your own words.

    The text becomes a new memory. If a similar memory exists, its text is replaced; on a terminal, Reverie asks first.
    Words like "tomorrow" become dates. Secrets are refused. Without TEXT, or with `-`, the text comes from standard
    input. What you type on a terminal is confirmed. Text from a pipe, a file or a program is inferred, until you
    confirm it with `reverie memory inferred`.

    Exit codes: 0: saved or already known; 1: memory is off; 2: wrong usage, or the text has a secret; 4: storage error.
    """
    from reverie.memory.gate.saving import user_info

    given, origin = _read_text(text)
    _remember(memory, given, user_info("Asked for with `reverie remember`.", given, origin), **more)


@examples(
    'reverie memory add "Anna owns the billing service"',
    "reverie memory add --file README.md --type project",
    "reverie memory add --type feedback",
)
@click.command("add")
@click.argument("text", nargs=-1)
@_note_options
@click.option("-f", "--file", "source", type=_FILE, help="Read the text from this file.")
@with_memory
def add_command(
    text: tuple[str, ...], kind: str | None, name: str, source: Path | None, memory: OpenedMemory, **more: Any
) -> None:
    """Add a memory: a sentence, a file with frontmatter, or a text from your editor.

    Without TEXT and --file, the command reads standard input or, on a terminal, opens $VISUAL or $EDITOR. Otherwise it
    works like `reverie remember`.
    """
    from reverie.memory.gate.saving import user_info

    memory.require_on("nothing is added")
    why = "Added with `reverie memory add`."
    if source is not None:
        given = read_regular(source).decode("utf-8", "replace")
        info = user_info(why, given, Origin.PIPED)
    elif not text and sys.stdin.isatty():
        given = edit_text(_TEMPLATE.format(name=name, kind=kind or ""), "new memory")
        if not TopicFile.parse(given).body.strip():
            raise ReverieError("Nothing was added: there is no text below the frontmatter.")
        info = WriteInfo(Writer.USER, why, confirms=True)
    else:
        given, origin = _read_text(text)
        info = user_info(why, given, origin)
    _remember(memory, given, info, kind=kind, name=name, **more)


def _read_text(words: tuple[str, ...]) -> tuple[str, Origin]:
    if words and words != ("-",):
        return " ".join(words), text_origin()
    if sys.stdin.isatty():
        raise UserError('Say what to remember: reverie remember "…".')
    return sys.stdin.buffer.read().decode("utf-8", "replace"), Origin.PIPED


def explain_inferred(info: WriteInfo) -> str:
    """Why a text of the user counts as inferred, in one sentence; empty if it is confirmed."""
    from reverie.memory.gate.saving import trust_of
    from reverie.memory.taxonomy import Trust

    if trust_of(info) is Trust.CONFIRMED:
        return ""
    origin = info.evidence[0].origin if info.evidence else Origin.PIPED
    why = {
        Origin.ENTERED: "it was entered in another program, not on a terminal",
        Origin.PASTED: "it looks pasted",
    }
    return f"It counts as inferred, because {why.get(origin, 'it comes from a pipe or a file')}."


def _remember(
    memory: OpenedMemory, text: str, info: WriteInfo, *, kind: str | None, name: str, always_new: bool, as_json: bool
) -> None:
    from reverie.memory.gate.saving import save_text

    if text_origin() is Origin.MODEL:
        _remember_for_agent(memory, text, kind, name, as_json)
        return

    def choose(near: Related, note: Note) -> Choice:
        if always_new:
            return "new"
        return _ask_choice(near, note) if can_ask() and not as_json else "update"

    saved, note = save_text(memory, text, info, choose, kind=kind, name=name)
    result = {
        "action": saved.action,
        "file": saved.file,
        "type": note.type.value,
        "name": note.topic.name,
        "description": note.topic.description,
        "trust": note.topic.trust.value if note.topic.trust else None,
        "instead_of": saved.instead_of or None,
        "warnings": list(saved.warnings),
        "version": version_json(saved.version),
    }
    answer(as_json, result, *_result_lines(saved, note))
    if not as_json:
        for text in saved.warnings:
            warn(f"{text} It was saved anyway.")
        if saved.version is not None and (inferred := explain_inferred(info)):
            say(get_paint().dim(f"{inferred} Confirm it: reverie memory inferred"))
        say_all(undo_hint(saved.version))


def _remember_for_agent(memory: OpenedMemory, text: str, kind: str | None, name: str, as_json: bool) -> None:
    """Saves a text as an agent's note, or lets it wait in the inbox, as for an agent that has a tool for it."""
    from dataclasses import asdict

    from reverie.library.writing import remember

    by = "`reverie remember` of an agent"
    saved = remember(memory, text, kind, name, Origin.MODEL.value, (), notes=True, by=by)
    did = f"It waits in the inbox ({saved.waiting})." if saved.action == "held" else f"{saved.name}: {saved.action}."
    answer(as_json, asdict(saved), f"{did} An agent started this, so these are not the user's words.")
    if saved.note and not as_json:
        say(saved.note)


def _ask_choice(near: Related, note: Note) -> Choice:
    paint = get_paint()
    say(f"{paint.accent(near.file)} is similar:")
    say(f"  {paint.dim('now')}  {near.statement}")
    say(f"  {paint.dim('new')}  {note.statement}")
    choices: dict[str, Choice] = {"correct": "update", "new": "new", "leave": "nothing"}
    question = "Correct it, make a new memory, or leave it?"
    return choices[click.prompt(question, type=click.Choice(list(choices)), default="correct")]


def _result_lines(saved: Saved, note: Note) -> list[str]:
    paint = get_paint()
    match saved.action:
        case "added":
            return [f"Remembered as {paint.accent(saved.file)} ({note.type.value})."]
        case "updated":
            before, now = wrap(saved.instead_of, 10)[0], wrap(note.statement, 10)[0]
            head = f"Corrected {paint.accent(saved.file)}:"
            return [head, f"  {paint.dim('before')}  {before}", f"  {paint.dim('now')}     {now}"]
        case "confirmed":
            return [f"{paint.accent(saved.file)} already says this; it is confirmed now."]
        case "unchanged":
            return [f"{paint.accent(saved.file)} already says this; nothing was changed."]
        case "nothing":
            return ["Nothing was changed."]


@examples("reverie memory edit feedback_no_mocks", 'EDITOR="code --wait" reverie memory edit MEMORY.md')
@click.command("edit")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@with_memory
def edit_command(file: str, as_json: bool, memory: OpenedMemory) -> None:
    """Edit a memory, or MEMORY.md, in $VISUAL or $EDITOR.

    You edit a copy. When you close the editor, the copy is saved as one version, and the index line is updated. If you
    save an empty text, the memory is forgotten. You can also change files in the memory directory itself: the next
    command saves such changes as a version.
    """
    from reverie.memory.lookup import find_file

    name = find_file(memory.directory, file)
    before = memory.directory.read(name)
    text, info = before.text, WriteInfo(Writer.USER, "Edited with `reverie memory edit`.", confirms=True)
    while True:
        text = edit_text(text, name)
        if text == before.text:
            say("Nothing was changed.", err=True)
            answer(as_json, {"file": name, "changed": False, "version": None})
            return
        try:
            version = save_edit(memory, name, text, before.digest, info)
            break
        except ReverieError as error:
            if can_ask() and not as_json:
                warn(str(error))
                if click.confirm("Edit again?", default=True):
                    continue
            raise _keep_text(error, name, text) from error
    result = {"file": name, "changed": version is not None, "version": version_json(version)}
    did = "Saved" if memory.directory.exists(name) else "Forgot"
    answer(as_json, result, f"{did} {get_paint().accent(name)}.", *undo_hint(version))


def save_edit(memory: OpenedMemory, name: str, text: str, base: str, info: WriteInfo) -> Version | None:
    """Saves an edited memory or index, if the file still has the digest `base`."""
    if is_topic(name):
        return memory.directory.update(name, TopicFile.parse(text), info, base=base)
    if not is_index(name):
        raise UserError(f"{name} is neither a memory nor {INDEX}.")
    return memory.directory.transaction([Change(name, text, base)], info).version


def _keep_text(error: ReverieError, name: str, text: str) -> ReverieError:
    """Saves the user's text in a temporary file, unless it has a secret; returns the error with its path."""
    import tempfile

    from reverie.memory.gate.write_gate import Refused

    if isinstance(error, Refused):
        return error
    with tempfile.NamedTemporaryFile("wb", prefix="reverie-", suffix=f"-{Path(name).name}", delete=False) as kept:
        kept.write(text.encode("utf-8", "surrogateescape"))
    return ReverieError(f"{error} Your text is in {kept.name}.")


def edit_text(text: str, name: str) -> str:
    """The text after the user has edited it."""
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
            raise UserError(f"EDITOR ({find_editor()!r}) cannot be parsed: {error}.") from error
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
