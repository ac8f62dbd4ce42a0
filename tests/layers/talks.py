"""Long conversations for the tests of notes and compaction: scripts that fill a window, and what was sent."""

from __future__ import annotations

from pathlib import Path

from reverie.models.request_log import LoggedRequest, read_log
from reverie.origins import strip_tags
from reverie.paths import Places
from reverie.session import Session
from reverie.settings import load_settings
from reverie.storage.transcript.records import CompactBoundary, Payload, from_record
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import TextBlock

SESSION = "a-long-session"
STATE = "_What is being worked on right now, what is half done, and what comes next._"
SUMMARY = "<analysis>a draft</analysis><summary>## What is wanted, and why\\nThe harbour lights.</summary>"
READS = 'repeat forever\n  call Read {"file_path": "f{loop}.txt"}\nend\n'
SMALL = {"window.context_window": 32_000}
REFERENCE = {"notes.cadence": "reference"}


def files(folder: Path, count: int = 40, characters: int = 4_000) -> None:
    """f1.txt, f2.txt, …, each of about so many characters."""
    for number in range(1, count + 1):
        line = f"file {number}: the lamp of the harbour burns all night long\n"
        (folder / f"f{number}.txt").write_text(line * (characters // len(line)))


def notes_path(folder: Path, session: str = SESSION) -> Path:
    return Places.of(folder, load_settings(folder)).session_notes(session)


def notes_script(folder: Path, text: str = "Reading the files.") -> str:
    """A section in which the notes are edited once an update."""
    path = notes_path(folder)
    return (
        "\n[notes]\n"
        f'call Edit {{"file_path": "{path}", "old_string": "{STATE}", "new_string": "{STATE}\\n\\n{text}"}}\n'
        "---\nsay The notes are up to date.\n"
    )


def compaction_script(answer: str = SUMMARY) -> str:
    return "\n[compaction]\nsay " + answer.replace("\\n", "\n| ") + "\n"


def payloads(log: SessionLog, kind: type[Payload]) -> list[Payload]:
    found = [from_record(record) for record in log.records]
    return [one for one in found if isinstance(one, kind)]


def boundaries(session: Session) -> list[CompactBoundary]:
    return [one for one in payloads(session.log, CompactBoundary) if isinstance(one, CompactBoundary)]


def sent(log: Path, purpose: str) -> list[LoggedRequest]:
    """The requests that were sent for a purpose."""
    return [request for request in read_log(log) if request.purpose == purpose] if log.exists() else []


def said(session: Session) -> list[str]:
    """What the person said in the whole conversation."""
    return [
        strip_tags(block.text)
        for entry in session.view.history
        for block in entry.message.content
        if isinstance(block, TextBlock) and block.origin.is_given
    ]


def context(session: Session) -> str:
    """Everything the model would read now."""
    return "\n".join(str(message.wire()) for message in session.view.messages())


def flags(home: Path, text: str) -> None:
    (home / ".reverie").mkdir(parents=True, exist_ok=True)
    (home / ".reverie" / "flags.toml").write_text(text)
