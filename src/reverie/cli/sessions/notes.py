"""`reverie notes`: what the session's notes say, how old they are, what is missing; or bring them up to date now.

Looking loads no event loop, no SDK and no flags. An update is made by a live session itself, else by code.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import examples, folder_options, session_choice
from reverie.cli.output import answer, format_age, get_paint, say
from reverie.cli.screen import printable
from reverie.moments import iso
from reverie.regular_files import read_regular_text

if TYPE_CHECKING:
    from reverie.layers.l3_session_notes.numbers import NoteNumbers
    from reverie.layers.l3_session_notes.standing import Standing
    from reverie.storage.transcript.view import View


@click.command(
    "notes", epilog=examples("reverie notes", "reverie notes 3f2a --update", "reverie notes --json | jq -r .path")
)
@session_choice()
@click.option("--update", is_flag=True, help="Bring them up to date first, whatever the size of the conversation.")
@folder_options
def command(session: str, update: bool, as_json: bool, cwd: Path) -> None:
    """Show the notes that are kept of a conversation while it runs.

    SESSION is a session's id, its beginning, or `last`. The file is yours to edit: only its headings, and the lines in
    italics under them, must stay. A live session updates it with its own model, any other is read by code.
    """
    from reverie.cli.sessions.actions import act_on_session
    from reverie.errors import ReverieError
    from reverie.layers.l3_session_notes.numbers import NoteNumbers
    from reverie.paths import Places
    from reverie.settings import load_settings
    from reverie.storage.transcript.chain import conversation
    from reverie.storage.transcript.file import read_records
    from reverie.storage.transcript.sessions import find_session
    from reverie.storage.transcript.view import View

    cwd = cwd.resolve()
    settings = load_settings(cwd)
    places = Places.of(cwd, settings)
    found = find_session(places.project, session)
    if update and (failed := act_on_session(found.id, cwd, {"do": "notes"}).get("error")):
        raise ReverieError(f"the notes were not brought up to date: {failed}")
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
    """The notes as they are looked at. `text` and `modified` are None if there are none yet."""

    path: Path
    text: str | None
    modified: float | None
    standing: Standing
    first_tokens: int

    def about(self) -> list[str]:
        """Where they are and what is missing, a line each."""
        if self.modified is None:
            return [
                f"There are no notes yet: they begin at {self.first_tokens:,} tokens of conversation. "
                "`reverie notes --update`, or /notes update in the chat, takes them now."
            ]
        return [f"{self.path}, {format_age(self.modified)} old", *self.standing.in_words()]

    def to_json(self) -> dict[str, object]:
        when = iso(self.modified) if self.modified is not None else None
        return {"path": str(self.path), "text": self.text, "modified": when, **self.standing.to_json()}


def read_notes(path: Path, template: Path, view: View, numbers: NoteNumbers) -> NotesReport:
    """The notes of a conversation as they stand on disk."""
    from reverie.layers.l3_session_notes.standing import standing
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
    return NotesReport(path, text, modified, standing(view, text or "", own, numbers), numbers.first_tokens)
