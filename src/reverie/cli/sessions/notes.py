"""`reverie notes`: shows the notes of a session, how old they are and what is missing; or updates them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import examples, folder_options, load_places, session_choice
from reverie.cli.output import answer, format_age, get_paint, say
from reverie.cli.screen import printable
from reverie.moments import iso
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text

if TYPE_CHECKING:
    from reverie.layers.l3_session_notes.trigger import NoteCoverage, NoteNumbers
    from reverie.storage.transcript.view import View


@examples("reverie notes", "reverie notes 3f2a --update", "reverie notes --json | jq -r .path")
@click.command("notes")
@session_choice()
@click.option("--update", is_flag=True, help="Update them first, even in a short conversation.")
@folder_options
def command(session: str, update: bool, as_json: bool, cwd: Path) -> None:
    """Show or update the notes of a conversation.

    SESSION is the id of a session (its first characters are enough), or `last`. The notes are a Markdown file; `--json`
    shows its path. You can edit the file, but keep its headings and the lines in italics below them. If the session is
    open in another process, its model updates the notes. If not, built-in rules update them, without a model.
    """
    from reverie.cli.sessions.actions import act_on_session, find_with_folder
    from reverie.errors import ReverieError
    from reverie.layers.l3_session_notes.trigger import NoteNumbers
    from reverie.storage.transcript.chain import conversation
    from reverie.storage.transcript.file import read_records
    from reverie.storage.transcript.view import View

    found, cwd = find_with_folder(session, cwd)
    settings, places = load_places(cwd)
    if update and (failed := act_on_session(found.id, cwd, {"do": "notes"}).get("error")):
        raise ReverieError(f"The notes were not updated: {failed}")
    path = places.session_notes(found.id)
    numbers = NoteNumbers(**{field.name: getattr(settings.notes, field.name) for field in fields(NoteNumbers)})
    view = View.of(conversation(read_records(found.path).records))
    shown = read_notes(path, places.notes_config / "template.md", view, numbers)
    for line in () if as_json else shown.about():
        say(get_paint(err=True).dim(line), err=True)
    text = [] if shown.text is None else [printable(shown.text.rstrip())]
    answer(as_json, {"session": found.id, **shown.to_json()}, *text)


@dataclass(frozen=True, slots=True)
class NotesReport:
    """The notes of a session and their state. `text` and `modified` are None if there are no notes yet."""

    path: Path
    text: str | None
    modified: float | None
    coverage: NoteCoverage
    first_tokens: int

    def about(self) -> list[str]:
        """Where the notes are and what is missing."""
        if self.modified is None:
            when = f"There are no notes yet: they begin at {self.first_tokens:,} tokens of conversation."
            return [f"{when} `reverie notes --update`, or /notes update in the chat, writes them now."]
        return [f"{self.path}, {format_age(self.modified)} old", *self.coverage.in_words()]

    def to_json(self) -> dict[str, object]:
        when = iso(self.modified) if self.modified is not None else None
        return {"path": str(self.path), "text": self.text, "modified": when, **self.coverage.to_json()}


def read_notes(path: Path, template: Path, view: View, numbers: NoteNumbers) -> NotesReport:
    """Reads the notes of a conversation from disk."""
    from reverie.layers.l3_session_notes.trigger import measure_coverage
    from reverie.layers.l3_session_notes.writer import template_or_default
    from reverie.storage.atomic import storage_error

    def read(file: Path) -> str | None:
        try:
            return read_regular_text(file, errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise storage_error(error, file, "read") from error

    text = read(path)
    modified = path.stat().st_mtime if text is not None else None
    own, _ = template_or_default(read(template))
    return NotesReport(path, text, modified, measure_coverage(view, text or "", own, numbers), numbers.first_tokens)
