"""What `connect` has changed in files of other programs, and the bytes that were there before.

An edit is written down before its file changes. So a crash at any moment leaves either a file that is as it was, or one
that the next `connect` or `disconnect` knows. It never decides what to write.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, cast

from reverie.errors import StorageError
from reverie.parsing import Unparsable, load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import cause_of, make_private_dir, remove, write_atomic
from reverie.storage.locks import exclusive

UNKNOWN = "unknown"
"""In place of a digest: nobody wrote down what was there."""
_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Edit:
    """One changed file. `before` and `after` are digests of its content; `before` is empty if there was no file."""

    kind: str
    agent: str
    scope: str
    path: str
    before: str
    after: str
    made: tuple[str, ...] = ()
    """What was not there before: the folders that were made for it, and what the agent makes because of it. The
    outermost comes first."""

    @property
    def place(self) -> tuple[str, str]:
        return self.kind, self.path


def digest(data: bytes | None) -> str:
    """What identifies the content of a file; empty for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


class Journal:
    """The list of edits in `<home>/connect`, and copies of the files as they were."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "connect"
        self._file = self.folder / "journal.json"
        self._copies = self.folder / "before"

    @contextmanager
    def locked(self) -> Generator[None]:
        """One `connect` or `disconnect` at a time."""
        make_private_dir(self.folder)
        with exclusive(self.folder / ".lock", timeout_s=_WAIT_S, what="The list of connected agents"):
            yield

    @property
    def edits(self) -> list[Edit]:
        """Every edit that was not taken back."""
        try:
            raw = load_json(read_regular(self._file))
            return [
                Edit(kind, agent, scope, path, before, after, tuple(made))
                for kind, agent, scope, path, before, after, made in cast("list[Any]", raw["edits"])
            ]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"{self._file}: cannot be read: {cause_of(error)}.") from error
        except (Unparsable, KeyError, TypeError, ValueError) as error:
            raise StorageError(
                f"{self._file}: is damaged; move it away, and remove Reverie's lines from the settings of the agent."
            ) from error

    def find(self, kind: str, path: Path) -> Edit | None:
        return next((one for one in self.edits if one.place == (kind, str(path))), None)

    def record(self, edit: Edit, before: bytes | None) -> None:
        """Writes an edit down, in place of an earlier one of the same file."""
        make_private_dir(self._copies)
        if before is not None:
            write_atomic(self._copies / edit.before, before)
        self._write([*(one for one in self.edits if one.place != edit.place), edit])

    def drop(self, edit: Edit) -> None:
        """Forgets an edit and its copy."""
        left = [one for one in self.edits if one.place != edit.place]
        if edit.after != UNKNOWN:
            self._write(left)
        if edit.before and all(one.before != edit.before for one in left):
            remove(self._copies / edit.before)
        if not left:
            with suppress(OSError):
                self._copies.rmdir()

    def bytes_before(self, edit: Edit) -> bytes | None:
        """The content that an edit found. Raises `StorageError` if the copy is gone or was changed."""
        if edit.before in ("", UNKNOWN):
            return None
        try:
            data = read_regular(self._copies / edit.before)
        except OSError as error:
            raise StorageError(f"{self._copies / edit.before}: cannot be read: {cause_of(error)}.") from error
        if digest(data) != edit.before:
            raise StorageError(f"{self._copies / edit.before}: was changed, so the old content is not known.")
        return data

    def _write(self, edits: list[Edit]) -> None:
        if not edits:
            remove(self._file)
            return
        data = {"edits": [astuple(one) for one in edits]}
        write_atomic(self._file, json.dumps(data, indent=2).encode() + b"\n")
