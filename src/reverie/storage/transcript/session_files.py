"""Reads a session file of any agent that we know: Reverie, Claude Code, pi and Codex. The first line shows which."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, TypeAlias

from reverie.errors import UserError
from reverie.parsing import load_json
from reverie.regular_files import LARGEST, read_head, read_regular
from reverie.storage.atomic import storage_error
from reverie.storage.transcript.codex_sessions import CodexReader, is_codex_head
from reverie.storage.transcript.file import Loaded, read_records
from reverie.storage.transcript.pi_sessions import is_pi_head, read_pi_session
from reverie.types import Json

Form: TypeAlias = Literal["claude-code", "codex", "pi"]
"""Whose form the records have. Ours is the one of Claude Code, with more fields."""

_HEAD_BYTES = 1_000_000
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def form_of(path: Path) -> Form:
    """Returns the form of a session file. A file that is none has the usual form, and reading it reports why."""
    try:
        first: Json = load_json(read_head(path, _HEAD_BYTES).partition(b"\n")[0])
    except (OSError, ValueError):
        return "claude-code"
    return "codex" if is_codex_head(first) else "pi" if is_pi_head(first) else "claude-code"


def is_session_name(path: Path) -> bool:
    """Whether the file is named by the id of its session."""
    return _UUID.fullmatch(path.stem) is not None


def read_session(path: Path) -> Loaded:
    """Reads a whole session file. Bad lines are reported in the result; `UserError` if there is no such file."""
    form = form_of(path)
    if form == "pi":
        return read_pi_session(path)
    if form == "claude-code":
        return read_records(path)
    reader = CodexReader(path.stem)
    try:
        lines = read_regular(path, LARGEST).split(b"\n")
    except FileNotFoundError:
        raise UserError(f"there is no transcript at {path}") from None
    except OSError as error:
        raise storage_error(error, path, "read the session") from error
    records = list(reader.feed(lines))
    return Loaded(records, reader.bad)
