"""Reads and changes files that belong to the user and to another program: exactly, or not at all.

A link stays a link: the file it leads to changes. What is not a regular file of this user is left alone, with one
sentence that says why. Nobody ever sees half a file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from reverie.connect.journal import Edit, Journal, digest
from reverie.errors import ReverieError, StorageError, UserError
from reverie.parsing import Unparsable, load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import cause_of, flush_folder, make_private_dir, remove, storage_error, write_new
from reverie.types import JsonObject

MOST_BYTES = 4_000_000
_BOM = "\ufeff"

Strip = Callable[[str, str], str]
"""Takes our part out of a text. The second text is the file as it was before; empty if there was none."""


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file of the user as it is now. `data` is None if there is none."""

    path: Path
    real: Path
    """The same after links."""
    data: bytes | None
    mode: int = 0o600

    @property
    def text(self) -> str:
        """The content without a byte order mark. Raises `UserError` if it is not UTF-8."""
        try:
            return (self.data or b"").decode("utf-8").removeprefix(_BOM)
        except UnicodeDecodeError as error:
            raise UserError(f"{self.path}: is not UTF-8 text, so it was not changed; save it as UTF-8.") from error

    def encode(self, text: str) -> bytes:
        """The bytes of a new text; a byte order mark stays."""
        mark = _BOM if (self.data or b"").startswith(_BOM.encode()) else ""
        return (mark + text).encode()

    def parse(self) -> JsonObject:
        """The JSON object in it; empty if there is no file, or nothing in it. Else raises `UserError`."""
        if not self.text.strip():
            return {}
        try:
            found = load_json(self.text)
        except Unparsable as error:
            where = f"{self.path}:{error.line}" if error.line is not None else str(self.path)
            raise UserError(
                f"{where}: is not valid JSON ({str(error).rstrip('.')}); nothing was changed. Correct it first."
            ) from error
        if not isinstance(found, dict):
            raise UserError(f"{self.path}: is not a JSON object; nothing was changed. Correct it first.")
        return cast("JsonObject", found)


def read_user_file(path: Path) -> UserFile:
    """Reads a file that is to be changed. Raises `UserError` if it is not a file of this user."""
    real = Path(os.path.realpath(path))
    try:
        found = os.stat(real)  # noqa: PTH116
        data = read_regular(real, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise UserError(f"{path}: is a link to {real}, which is not there; nothing was changed.") from None
        _check_folder(path, real)
        return UserFile(path, real, None)
    except OSError as error:
        raise UserError(f"{path}: cannot be used: {cause_of(error)}; nothing was changed.") from error
    if found.st_uid != os.getuid():
        raise UserError(f"{path}: belongs to another user, so it was not changed.")
    if not os.access(real, os.W_OK) or not os.access(real.parent, os.W_OK):
        raise UserError(f"{path}: cannot be written, so nothing was changed; check its permissions.")
    return UserFile(path, real, data, stat.S_IMODE(found.st_mode))


def _check_folder(path: Path, real: Path) -> None:
    there = next(folder for folder in real.parents if os.path.lexists(folder))
    if not there.is_dir():
        raise UserError(f"{path}: cannot be made, because {there} is not a folder; nothing was changed.")
    if not os.access(there, os.W_OK):
        raise UserError(f"{path}: cannot be made, because {there} cannot be written; nothing was changed.")


@dataclass(frozen=True, slots=True)
class Change:
    """What will be written to one file. `base`: the content that `disconnect` puts back."""

    kind: str
    agent: str
    scope: str
    file: UserFile
    base: bytes | None
    after: bytes | None
    made: tuple[str, ...] = ()
    """What the agent makes because of this change and was not there before."""
    undoes: Edit | None = None
    """The edit that this change takes back; None: it is a new edit."""

    @property
    def is_needed(self) -> bool:
        return self.file.data != self.after


def plan_change(
    journal: Journal, kind: str, agent: str, scope: str, file: UserFile, add: Callable[[UserFile], str], strip: Strip
) -> Change:
    """Plans to put our part into a file. What is there of ours already, perhaps of an older version, is replaced."""
    if add(file) == file.text and file.data is not None:
        return Change(kind, agent, scope, file, file.data, file.data)
    edit = journal.find(kind, file.path)
    if edit is not None and digest(file.data) == edit.after:
        base = journal.bytes_before(edit)
    elif not file.text.strip():
        base = file.data
    else:
        base = file.encode(strip(file.text, _text_before(journal, edit, file) if edit is not None else file.text))
    clean = replace(file, data=base)
    return Change(kind, agent, scope, file, base, clean.encode(add(clean)))


def plan_removal(journal: Journal, edit: Edit, strip: Strip) -> Change:
    """Plans to take one edit back, as `revert` does."""
    file = read_user_file(Path(edit.path))
    return Change(
        edit.kind, edit.agent, edit.scope, file, file.data, _content_without(journal, edit, file, strip), undoes=edit
    )


def _text_before(journal: Journal, edit: Edit, file: UserFile) -> str:
    return replace(file, data=journal.bytes_before(edit)).text


def _content_without(journal: Journal, edit: Edit, file: UserFile, strip: Strip) -> bytes | None:
    """What a file has without an edit: its old bytes or, if somebody has changed it since, all but our part."""
    now = digest(file.data)
    if file.data is None:
        return None
    if now in (edit.before, edit.after):
        return file.data if now == edit.before else journal.bytes_before(edit)
    try:
        text = strip(file.text, _text_before(journal, edit, file)) if file.text.strip() else file.text
    except Unparsable as error:
        raise UserError(f"{file.path}: cannot be read ({error}), so Reverie's entries are still in it.") from error
    is_empty = not edit.before and text.split() in ([], ["{}"], ["{", "}"])
    return None if is_empty else file.encode(text)


def apply_changes(journal: Journal, changes: Sequence[Change], strips: Callable[[str], Strip]) -> None:
    """Makes all changes or, if one fails, none of them."""
    done: list[Edit] = []
    try:
        for change in changes:
            if change.is_needed and change.undoes is not None:
                revert(journal, change.undoes, strips(change.kind))
            elif change.is_needed:
                done.append(_apply(journal, change))
    except (ReverieError, OSError):
        for edit in reversed(done):
            with suppress(ReverieError, OSError):  # the journal has it: the next command tries again
                revert(journal, edit, strips(edit.kind))
        raise


def _apply(journal: Journal, change: Change) -> Edit:
    file = change.file
    assert change.after is not None, "only a change that takes an edit back removes a file"
    known = journal.find(change.kind, file.path)
    made = tuple(dict.fromkeys((*_missing_folders(file.real.parent), *(known.made if known else ()), *change.made)))
    edit = Edit(
        change.kind, change.agent, change.scope, str(file.path), digest(change.base), digest(change.after), made
    )
    if read_user_file(file.path).data != file.data:
        raise StorageError(f"{file.path}: was changed by another program just now; try again.")
    journal.record(edit, change.base)
    try:
        replace_file(file, change.after)
    except BaseException:
        if known is not None:
            journal.record(known, journal.bytes_before(known) if known.before else None)
        else:
            _remove_folders(edit)
            journal.drop(edit)
        raise
    return edit


def replace_file(file: UserFile, data: bytes) -> None:
    """Replaces the content in one step. The temporary file has a fixed name: the next command removes one that a crash
    left."""
    make_private_dir(file.real.parent)
    temporary = _temporary(file.real)
    try:
        remove(temporary)
        write_new(temporary, data, file.mode, fsync=True)
        try:
            temporary.replace(file.real)
        except BaseException:
            remove(temporary)
            raise
        flush_folder(file.real.parent)
    except OSError as error:
        raise storage_error(error, file.real, "write") from error


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.reverie.tmp")


def _missing_folders(folder: Path) -> tuple[str, ...]:
    missing = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
    return tuple(map(str, reversed(missing)))


def revert(journal: Journal, edit: Edit, strip: Strip) -> bool:
    """Takes an edit back; returns whether the file has its old bytes again.

    If somebody has changed the file since, only our part goes.
    """
    path = Path(edit.path)
    remove(_temporary(Path(os.path.realpath(path))))
    if not os.path.lexists(path):  # the user removed it: nothing of ours is left
        _remove_folders(edit)
        journal.drop(edit)
        return not edit.before
    file = read_user_file(path)
    after = _content_without(journal, edit, file, strip)
    _put(file, after)
    _remove_folders(edit)
    journal.drop(edit)
    return digest(after) == edit.before


def _put(file: UserFile, data: bytes | None) -> None:
    if data is not None:
        if data != file.data:
            replace_file(file, data)
        return
    try:
        file.real.unlink()
    except OSError as error:
        raise storage_error(error, file.real, "remove") from error


def _remove_folders(edit: Edit) -> None:
    for folder in reversed(edit.made):
        with suppress(OSError):  # somebody else keeps something there
            Path(folder).rmdir()
