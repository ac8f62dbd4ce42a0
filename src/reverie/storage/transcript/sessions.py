"""The sessions on disk: list them, find one, delete one with all its files, expire old ones.

It reads only the first and last lines of each file, and needs no SDK and no event loop.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from reverie.errors import SessionBusy, UserError
from reverie.moments import modified_time, parse_time
from reverie.origins import strip_tags
from reverie.quick import dataclass
from reverie.regular_files import read_head
from reverie.storage.atomic import storage_error
from reverie.storage.lease import Lease
from reverie.storage.transcript.file import parse_line, tail_records
from reverie.types import Record, TextBlock

_HEAD_BYTES = 262_144
_LONG_HEAD_BYTES = 16_777_216
_TITLE_LENGTH = 80
LAST = "last"  # names the last used session of a folder


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One line of a listing. `title` is its summary if it has one, else the first prompt of the user.

    `said` is the time of its last record, `modified` the time of its file: an imported session keeps its age, and does
    not expire because of it.
    """

    id: str
    path: Path
    modified: float
    size: int
    title: str
    cwd: str
    git_branch: str
    said: float

    @property
    def folder(self) -> Path:
        """The folder of the session next to its transcript."""
        return self.path.with_suffix("")

    @property
    def lease(self) -> Path:
        return self.folder / Lease.NAME


def list_sessions(project: Path) -> list[SessionInfo]:
    """Returns all sessions of one folder, the last used first; files without a conversation are left out."""
    found = [info for path in _transcripts(project) if (info := describe(path)) is not None]
    return sorted(found, key=lambda info: info.modified, reverse=True)


def list_all_sessions(projects: Path) -> list[SessionInfo]:
    """Returns the sessions of all folders, the last used first. `projects` has one folder per working directory."""
    try:
        folders = [Path(entry.path) for entry in os.scandir(projects) if entry.is_dir()]
    except FileNotFoundError:
        return []
    found = [info for folder in folders for info in list_sessions(folder)]
    return sorted(found, key=lambda info: info.modified, reverse=True)


def _transcripts(project: Path) -> Iterator[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(project) if entry.name.endswith(".jsonl"))
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(error, project, "list the sessions") from error
    yield from (project / name for name in names if not name.startswith("agent-"))


def describe(path: Path) -> SessionInfo | None:
    """Returns what a listing shows of one file; None if it has no conversation or cannot be read."""
    try:
        status = path.stat()
        title, cwd, branch, is_conversation = _read_beginning(path, _HEAD_BYTES)
        if not is_conversation and status.st_size > _HEAD_BYTES:  # the first prompt may be a large paste
            title, cwd, branch, is_conversation = _read_beginning(path, _LONG_HEAD_BYTES)
    except OSError:
        return None
    if not is_conversation:
        return None
    last = list(tail_records(path))
    summary = next((str(r.data["summary"]) for r in last if r.type == "summary" and "summary" in r.data), "")
    modified = modified_time(status)
    said = min(max(map(_moment, last), default=0.0) or modified, modified)
    return SessionInfo(path.stem, path, modified, status.st_size, _short(summary or title), cwd, branch, said)


def _read_beginning(path: Path, most: int) -> tuple[str, str, str, bool]:
    """Returns title, folder and branch from the first bytes, and whether there is a message of the conversation."""
    title, cwd, branch, is_conversation = "", "", "", False
    for line in read_head(path, most).split(b"\n"):
        for record in _records(line):
            cwd = cwd or str(record.data.get("cwd") or "")
            branch = branch or str(record.data.get("gitBranch") or "")
            is_conversation = is_conversation or (record.message is not None and not record.is_sidechain)
            title = title or _first_prompt(record)
        if title:
            break
    return title, cwd, branch, is_conversation


def _moment(record: Record) -> float:
    moment = parse_time(record.timestamp, needs_zone=True)
    return moment.timestamp() if moment is not None else 0.0


def _records(line: bytes) -> list[Record]:
    try:
        return parse_line(line)
    except ValueError:
        return []


def _first_prompt(record: Record) -> str:
    if record.message is None or record.message.role != "user" or record.is_sidechain:
        return ""
    given = [b for b in record.message.content if isinstance(b, TextBlock) and b.origin.is_given and b.text.strip()]
    own = [block.text for block in given if block.origin.is_users]
    return next(iter(own or [strip_tags(block.text) for block in given]), "")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1] + "…"


def find_session(project: Path, wanted: str, *, everywhere: bool = False) -> SessionInfo:
    """Finds a session by id, the start of an id, or `last`; with `everywhere`, in all folders. Else UserError."""
    sessions = list_sessions(project)
    if wanted == LAST:
        if not sessions:
            raise UserError("there is no session here to continue: start one with `reverie chat` or `reverie run`")
        return sessions[0]
    matches = _named(sessions, wanted)
    elsewhere = [] if matches else _named(_sessions_elsewhere(project, wanted), wanted)
    if everywhere:
        matches = matches or elsewhere
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UserError(f"{len(matches)} sessions start with {wanted!r} ({_format_list(matches)}): give more of the id")
    if elsewhere:
        where = f": give `-C {elsewhere[0].cwd}`" if elsewhere[0].cwd else ""
        raise UserError(f"no session here starts with {wanted!r}, but one of another folder does{where}")
    near = _near(sessions, wanted)
    hint = f"did you mean {_format_list(near)}?" if near else "`reverie sessions list` shows them"
    raise UserError(f"no session here starts with {wanted!r}: {hint}")


def resolve_prefix(wanted: str | None, project: Path) -> str | None:
    """Returns the start of the wanted ids; the sessions may belong to any folder."""
    return find_session(project, LAST).id if wanted == LAST else wanted


def _named(sessions: Iterable[SessionInfo], wanted: str) -> list[SessionInfo]:
    begin = [info for info in sessions if wanted and info.id.startswith(wanted)]
    return [info for info in begin if info.id == wanted] or begin


def _sessions_elsewhere(project: Path, wanted: str) -> Iterator[SessionInfo]:
    try:
        folders = sorted(entry.path for entry in os.scandir(project.parent) if entry.is_dir())
    except OSError:
        return
    for folder in folders:
        if Path(folder) != project:
            paths = (path for path in _transcripts(Path(folder)) if wanted and path.stem.startswith(wanted))
            yield from (info for path in paths if (info := describe(path)) is not None)


def _near(sessions: list[SessionInfo], wanted: str) -> list[SessionInfo]:
    from difflib import get_close_matches

    if not wanted:
        return []
    titled = [info for info in sessions if wanted.casefold() in info.title.casefold()]
    begins = {info.id[: len(wanted)]: info for info in reversed(sessions)}
    return titled or [begins[one] for one in get_close_matches(wanted.lower(), begins, n=3, cutoff=0.7)]


def _format_list(sessions: list[SessionInfo]) -> str:
    shown = ", ".join(f"{info.id[:8]} “{info.title[:40]}”" for info in sessions[:3])
    return f"{shown} and more" if len(sessions) > 3 else shown


def delete_session(info: SessionInfo) -> None:
    """Removes the transcript and all files of the session. Raises SessionBusy if it is open."""
    holder = Lease.holder(info.lease)
    if holder is not None:
        pid = int(holder.get("pid") or 0)
        raise SessionBusy(f"session {info.id} is open in process {pid}: close it first", pid)
    try:
        if info.folder.is_dir() and not info.folder.is_symlink():
            shutil.rmtree(info.folder)
        info.path.unlink(missing_ok=True)
        info.path.with_name(info.path.name + ".torn").unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, info.path, "delete the session") from error


def expire_sessions(project: Path, days: int, *, now: float | None = None) -> list[str]:
    """Deletes sessions last used more than `days` ago (0: none); returns their ids. Open sessions stay."""
    if days <= 0:
        return []
    limit = (time.time() if now is None else now) - days * 86_400
    gone = list[str]()
    for info in list_sessions(project):
        if info.modified < limit:
            try:
                delete_session(info)
            except SessionBusy:
                continue
            gone.append(info.id)
    return gone
