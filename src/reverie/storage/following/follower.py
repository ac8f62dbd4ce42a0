"""Follows session files of other agents: a pass looks at every file and copies what is new into our home.

Each session goes to the project of its own working directory. An unchanged file costs one `stat`. One bad file stops
nothing. A session that the user deleted does not come back. Files of sub-agents are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import cast

from reverie.errors import ReverieError, SessionBusy
from reverie.moments import parse_time
from reverie.paths import Places, check_session_id
from reverie.quick import dataclass
from reverie.regular_files import refuse_special
from reverie.settings import Settings
from reverie.storage.atomic import cause_of
from reverie.storage.following.copying import Clean, Copied, CopyRefused, copy_session, set_time
from reverie.storage.following.lines import SessionPart, digest_before, identity
from reverie.storage.following.sources import FolderState, all_entries, walk_folders
from reverie.types import JsonObject, Record

_BATCH_FILES, _BATCH_BYTES = 32, 16_000_000
"""After so much, what was copied is remembered, and other processes may look at the folder."""
_DELETED = "you deleted its copy; `reverie sessions import` brings it back"


class Outcome(StrEnum):
    """What a pass did with one file."""

    NEW = "new"
    GREW = "grew"
    UNCHANGED = "unchanged"
    LEFT_ALONE = "left alone"
    EMPTY = "without a conversation"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Followed:
    """One file. `reason` says why it was left alone or failed; `is_news` whether that is so since this pass."""

    path: Path
    outcome: Outcome
    session: str = ""
    cwd: str = ""
    target: Path | None = None
    messages: int = 0
    reason: str = ""
    is_news: bool = True

    def to_json(self) -> JsonObject:
        target = str(self.target) if self.target is not None else None
        return {
            "file": str(self.path),
            "outcome": self.outcome.value,
            "session": self.session,
            "cwd": self.cwd,
            "path": target,
            "messages": self.messages,
            "reason": self.reason,
        }


@dataclass(eq=False)
class Follower:
    """Follows files into one home. `clean` removes from each record what must not come back."""

    settings: Settings
    clean: Clean = field(default=lambda record: record)

    @cached_property
    def _places(self) -> Places:
        return Places.of(self.settings.places.home, self.settings)

    def follow(self, path: Path) -> Iterator[Followed]:
        """Follows a file, or all session files in a folder and its sub-folders. Yields one result per file."""
        if path.is_dir():
            yield from self._follow_folder(path)
        else:
            yield self.follow_file(path)

    def follow_file(self, path: Path) -> Followed:
        """Brings the copy of one session file up to date."""
        path = Path(os.path.abspath(path))  # noqa: PTH100 (links stay: they name the source)
        (found,) = self._follow_batch(path.parent, [path.name])
        return found

    def _follow_folder(self, top: Path) -> Iterator[Followed]:
        for folder, found in walk_folders(top, without=self._places.home):
            if isinstance(found, OSError):
                yield Followed(folder, Outcome.FAILED, reason=f"the folder cannot be read: {cause_of(found)}")
            else:
                yield from self._follow_entries(folder, found)

    def _follow_entries(self, folder: Path, entries: Sequence[os.DirEntry[str]]) -> Iterator[Followed]:
        known = FolderState(self._places, folder).files() if entries else {}
        changed = list[tuple[int, int, str]]()
        for entry in entries:
            try:
                found = entry.stat()
            except OSError as error:
                yield Followed(Path(entry.path), Outcome.FAILED, reason=cause_of(error))
                continue
            state = known.get(entry.name)
            if state is not None and state.get("stat") == identity(found):
                # Thousands of them: without what nobody asks of an unchanged file.
                is_usual = not state.get("left") and not state.get("outcome")
                path = Path(entry.path)
                yield Followed(path, Outcome.UNCHANGED) if is_usual else self._remembered(path, state)
            else:
                changed.append((found.st_mtime_ns, found.st_size, entry.name))
        for names in _batches(sorted(changed)):  # the oldest first: the newest session is the last used one
            yield from self._follow_batch(folder, names)

    def _follow_batch(self, folder: Path, names: list[str]) -> list[Followed]:
        state = FolderState(self._places, folder)
        results = list[Followed]()
        try:
            with state.locked():
                files = state.files()
                before = dict(files)
                for name in names:
                    result, entry = self._update(folder / name, files.get(name))
                    results.append(result)
                    if entry is not None:
                        files[name] = entry
                if files != before:
                    state.keep(files)
        except ReverieError as error:  # the home cannot be written, or another process is at it
            done = {result.path.name for result in results}
            results += [
                Followed(folder / name, Outcome.FAILED, reason=str(error)) for name in names if name not in done
            ]
        return results

    def _update(self, path: Path, known: JsonObject | None) -> tuple[Followed, JsonObject | None]:
        """Copies what is new in one file. Also returns what to remember about it; None: nothing new."""
        try:
            refuse_special(path)
            now = identity(path.stat())
            if known is not None and known.get("stat") == now:
                return self._remembered(path, known), None
            if known is not None and known.get("copied") and not self._target(known).exists():
                return self._deleted(path, {**known, "stat": now})
            if known is not None and known.get("copied") and self._target(known).stat().st_size < known["copied"]:
                known = {**known, "offset": None}  # a power cut or a purge made the copy shorter: compare all of it
            return self._copy(path, known or {}, now)
        except OSError as error:
            return Followed(path, Outcome.FAILED, reason=cause_of(error)), None
        except SessionBusy as error:
            return Followed(path, Outcome.LEFT_ALONE, reason=str(error)), None
        except UnicodeEncodeError:
            return Followed(path, Outcome.FAILED, reason="it has text that cannot be the name of a file"), None
        except ReverieError as error:
            return Followed(path, Outcome.FAILED, reason=str(error)), None

    def _copy(self, path: Path, known: JsonObject, now: list[int]) -> tuple[Followed, JsonObject]:
        part = _open_part(path, known, now)
        session, cwd = str(known.get("session") or ""), str(known.get("cwd") or "")
        records, looked_at = part.records(), list[Record]()
        if not part.offset:
            session, cwd = part.read_head(records, looked_at)
            if known.get("session") and not looked_at:  # it was cut to nothing; what was copied stays
                emptied: JsonObject = {**known, "stat": now, "offset": None}
                return self._result(path, emptied, Outcome.UNCHANGED), emptied
            if known.get("session") not in (session, None):
                known = {}  # another session has taken the place of this file
        fresh: JsonObject = {"stat": part.stat or now}
        if not looked_at and not known.get("session"):
            why = "it is empty" if not now[1] else "no line of it is a record"
            return self._not_copied(path, fresh, Outcome.FAILED, why)
        target = self._target(known) if known.get("target") else self._place(session, cwd)
        if target is None:
            said = any(record.message is not None for record in looked_at)
            why = "none of its records names the folder of the session" if said else ""
            return self._not_copied(path, fresh, Outcome.FAILED if said else Outcome.EMPTY, why)
        entry: JsonObject = {
            **fresh,
            "session": target.stem,
            "cwd": cwd,
            "target": str(target.relative_to(self._places.home)),
        }
        if not target.exists() and target in self._copied_before:
            return self._deleted(path, {**entry, "copied": 1})
        last = _Last()
        size = cast("int | None", known.get("copied")) if part.begins_later else None
        try:
            copied = copy_session(last.watch(chain(looked_at, records)), target, part.form, size=size, clean=self.clean)
        except CopyRefused as error:
            left: JsonObject = {"copied": 1, **known, **entry, "stat": now, "left": str(error)}
            return self._result(path, left, Outcome.LEFT_ALONE, reason=str(error)), left
        if not copied.size:
            return self._not_copied(path, {"stat": part.stat}, Outcome.EMPTY, "")
        if copied.records:
            set_time(target, last.said)
        entry |= {
            "stat": part.stat,
            "copied": copied.size,
            "form": part.form,
            "offset": part.offset,
            "check": digest_before(path, part.offset),
        }
        if part.form == "codex":
            entry["reader"] = part.reader
        return self._result(path, entry, _outcome(copied), copied.messages, _bad_lines(part)), entry

    def _place(self, session: str, cwd: str) -> Path | None:
        """Returns where the copy of a session goes; None if its records do not say it."""
        if not Path(cwd).is_absolute() or "\0" in cwd:
            return None
        return Places.of(Path(cwd), self.settings).transcript(check_session_id(session))

    @cached_property
    def _copied_before(self) -> set[Path]:
        """The copies of all sessions that were ever followed: one that is not there any more was deleted."""
        return {self._target(entry) for entry in all_entries(self._places) if entry.get("copied")}

    def _target(self, entry: JsonObject) -> Path:
        return self._places.home / str(entry.get("target"))

    def _not_copied(self, path: Path, entry: JsonObject, outcome: Outcome, why: str) -> tuple[Followed, JsonObject]:
        return Followed(path, outcome, reason=why), {**entry, "outcome": outcome.value, "why": why}

    def _deleted(self, path: Path, entry: JsonObject) -> tuple[Followed, JsonObject]:
        is_news = entry.get("left") != _DELETED
        left = {**entry, "left": _DELETED}
        return self._result(path, left, Outcome.LEFT_ALONE, reason=_DELETED, is_news=is_news), left

    def _remembered(self, path: Path, entry: JsonObject) -> Followed:
        """The result for a file that has not changed since the last pass."""
        if entry.get("outcome"):
            why = str(entry.get("why") or "")
            return Followed(path, Outcome(str(entry["outcome"])), reason=why, is_news=False)
        if entry.get("left"):
            return self._result(path, entry, Outcome.LEFT_ALONE, reason=str(entry["left"]), is_news=False)
        return self._result(path, entry, Outcome.UNCHANGED, is_news=False)

    def _result(
        self,
        path: Path,
        entry: JsonObject,
        outcome: Outcome,
        messages: int = 0,
        reason: str = "",
        *,
        is_news: bool = True,
    ) -> Followed:
        session, cwd = str(entry.get("session") or ""), str(entry.get("cwd") or "")
        return Followed(path, outcome, session, cwd, self._target(entry), messages, reason, is_news)


def followed_copies(settings: Settings) -> list[tuple[Path, Path]]:
    """Returns the copies of all followed sessions that are there, each with the folder of its session."""
    places = Places.of(settings.places.home, settings)
    known = {str(entry["target"]): Path(str(entry["cwd"])) for entry in all_entries(places) if entry.get("copied")}
    return [(path, cwd) for target, cwd in known.items() if (path := places.home / target).is_file()]


@dataclass(eq=False, slots=True)
class _Last:
    """Remembers the time of the last record that passes."""

    said: float = 0.0

    def watch(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            moment = parse_time(record.timestamp, needs_zone=True)
            if moment is not None:
                self.said = max(self.said, moment.timestamp())
            yield record


def _open_part(path: Path, known: JsonObject, now: list[int]) -> SessionPart:
    """Opens the new part of a file; all of it if it was rewritten or cut, or if its form needs that."""
    offset, form, before = known.get("offset"), known.get("form"), cast("list[int]", known.get("stat") or [0, 0, 0])
    is_longer = before[0] == now[0] and now[1] > before[1]
    if isinstance(offset, int) and form in ("claude-code", "codex") and is_longer:
        is_same = digest_before(path, offset) == known.get("check")
        return SessionPart(path, offset=offset, form=form, reader=known.get("reader")) if is_same else SessionPart(path)
    return SessionPart(path)


def _outcome(copied: Copied) -> Outcome:
    if copied.is_new:
        return Outcome.NEW
    return Outcome.GREW if copied.messages else Outcome.UNCHANGED


def _bad_lines(part: SessionPart) -> str:
    return f"{part.bad} of its lines cannot be read" if part.bad else ""


def _batches(changed: list[tuple[int, int, str]]) -> Iterator[list[str]]:
    batch, held = list[str](), 0
    for _, size, name in changed:
        batch.append(name)
        held += size
        if len(batch) >= _BATCH_FILES or held >= _BATCH_BYTES:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
