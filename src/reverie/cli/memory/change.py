"""`reverie memory add|edit`: a memory from a sentence, a file or an editor.

Edits happen in a copy and land through the gate. A file that somebody else changed meanwhile is not overwritten: the
person's text is kept and they are told where.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.memory.opening import (
    TYPES,
    can_ask,
    cwd_option,
    file_meant,
    file_names,
    json_option,
    memory_in,
    painted,
    say,
    say_json,
    say_undo,
    version_json,
    warn,
)
from reverie.cli.memory.remember import given_text, remember
from reverie.errors import ReverieError, UserError
from reverie.memory.changes import Change, WriteInfo, Writer
from reverie.memory.taxonomy import INDEX, is_index, is_topic
from reverie.memory.topic_file import TopicFile, decode
from reverie.regular_files import read_regular
from reverie.settings.loading import editor
from reverie.storage.history.versions import Version

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory

_TEMPLATE = """\
---
name: {name}
description:
type: {kind}
---

"""


@click.command("add")
@click.argument("text", nargs=-1)
@click.option("-t", "--type", "kind", type=TYPES, help="What kind of memory it is.  [default: by its words]")
@click.option("--name", default="", help="Its title.  [default: from its first sentence]")
@click.option("--new", "always_new", is_flag=True, help="A memory of its own, also beside one that says much the same.")
@click.option(
    "-f", "--file", "source", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="From a file."
)
@json_option
@cwd_option
def add_command(
    text: tuple[str, ...],
    kind: str | None,
    name: str,
    always_new: bool,
    source: Path | None,
    as_json: bool,
    cwd: Path,
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
    memory = memory_in(cwd)
    memory.require_on("nothing is added")
    if source is not None:
        given = read_regular(source).decode("utf-8", "replace")
    elif not text and sys.stdin.isatty():
        given = edited(_TEMPLATE.format(name=name, kind=kind or ""), "new memory")
        if not TopicFile.parse(given).body.strip():
            raise ReverieError("Nothing was added: there was no text below the frontmatter.")
    else:
        given = given_text(text)
    remember(memory, given, kind, name, always_new=always_new, as_json=as_json, why="Added with `reverie memory add`.")


@click.command("edit")
@click.argument("file", metavar="FILE", shell_complete=file_names)
@json_option
@cwd_option
def edit_command(file: str, as_json: bool, cwd: Path) -> None:
    """Edit a memory, or MEMORY.md, in $VISUAL or $EDITOR.

    You edit a copy. It is saved as one version when the editor ends, and its index line follows a new name or
    description. An empty text forgets the memory. Changing files in the directory itself works as well: that becomes a
    version at the next touch.

    \b
    Examples:
      reverie memory edit feedback_no_mocks
      EDITOR="code --wait" reverie memory edit MEMORY.md
    """
    memory = memory_in(cwd)
    name = file_meant(memory, file)
    before = memory.directory.read(name)
    text, info = before.text, WriteInfo(Writer.USER, "Edited with `reverie memory edit`.")
    while True:
        text = edited(text, name)
        if text == before.text:
            say("Nothing was changed.", err=True)
            if as_json:
                say_json({"file": name, "changed": False, "version": None})
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
    if as_json:
        say_json({"file": name, "changed": version is not None, "version": version_json(version)})
        return
    gone = not memory.directory.exists(name)
    say(f"{'Forgot' if gone else 'Saved'} {painted().accent(name)}.")
    if version is not None:
        say_undo(version)


def save_edited(memory: OpenedMemory, name: str, text: str, base: str, info: WriteInfo) -> Version | None:
    """Saves what an editor made of a memory or an index, if it still is what `base` says."""
    if is_topic(name):
        return memory.directory.update(name, TopicFile.parse(text), info, base=base)
    if not is_index(name):
        raise UserError(f"{name} is neither a memory nor {INDEX}.")
    return memory.directory.transaction([Change(name, text, base)], info)


def _kept(error: ReverieError, name: str, text: str) -> ReverieError:
    """The same refusal, after the person's text was put where they find it; a secret is not kept."""
    from reverie.memory.gate.write_gate import Refused

    if isinstance(error, Refused):
        return error
    with tempfile.NamedTemporaryFile("wb", prefix="reverie-", suffix=f"-{Path(name).name}", delete=False) as kept:
        kept.write(text.encode("utf-8", "surrogateescape"))
    return ReverieError(f"{error} Your text is in {kept.name}.")


def edited(text: str, name: str) -> str:
    """The text as the person left it in their editor."""
    import shlex

    with tempfile.TemporaryDirectory(prefix="reverie-") as folder:
        draft = Path(folder) / (Path(name).name if name.endswith(".md") else "memory.md")
        draft.write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            words = shlex.split(editor())
            done = subprocess.run([*words, str(draft)], check=False)
        except ValueError as error:
            raise UserError(f"EDITOR is set to {editor()!r}, which cannot be read: {error}.") from error
        except OSError as error:
            raise UserError(f"The editor {editor()!r} cannot be started ({error.strerror}); set EDITOR.") from error
        if done.returncode != 0:
            raise ReverieError(f"The editor ended with code {done.returncode}; nothing was changed.")
        try:
            return decode(read_regular(draft))
        except FileNotFoundError:
            raise ReverieError("The editor removed the draft; nothing was changed.") from None
