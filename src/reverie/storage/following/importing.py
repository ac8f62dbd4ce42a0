"""Copies session files of other agents into one folder's sessions, because the user asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from reverie.errors import UserError
from reverie.paths import Places
from reverie.storage.atomic import storage_error
from reverie.storage.following.copying import Clean, copy_session
from reverie.storage.following.follower import Followed, Outcome
from reverie.storage.following.lines import SessionPart
from reverie.storage.following.sources import walk_folders
from reverie.types import Record


def session_files(paths: Iterable[Path], places: Places) -> Iterator[Path]:
    """Yields the files, and of folders all session files in them and their sub-folders."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for folder, found in walk_folders(path, without=places.home):
            if isinstance(found, OSError):
                raise storage_error(found, folder, "read the folder") from found
            yield from (Path(entry.path) for entry in found)


def import_file(file: Path, places: Places, *, clean: Clean = lambda record: record) -> Followed:
    """Copies a session to the sessions of this folder, or what is new in it. Raises `ReverieError`."""
    part, head = SessionPart(file), list[Record]()
    try:
        records = part.records()
        session, cwd = part.read_head(records, head)
        target = places.transcript(session)
        copied = copy_session(chain(head, records), target, part.form, clean=clean)
    except FileNotFoundError:
        raise UserError(f"there is no transcript at {file}") from None
    except OSError as error:
        raise storage_error(error, file, "read the session") from error
    if not copied.size:
        raise UserError(f"{file}: the file has no conversation")
    outcome = Outcome.NEW if copied.is_new else Outcome.GREW if copied.messages else Outcome.UNCHANGED
    return Followed(file, outcome, session, cwd, target, copied.messages)
