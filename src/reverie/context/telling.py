"""The records of a transcript that a ledger reads. Other lines are not even parsed, and bad ones are passed over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from reverie.regular_files import open_regular
from reverie.storage.atomic import storage_error
from reverie.storage.transcript.file import parse_line
from reverie.types import Record

_TELLING = (b'"usage"', b'"fork_usage"', b'"cache_break"', b"keptBytes", b"clears", b"compact_boundary")


def telling_records(path: Path) -> Iterator[Record]:
    """The records of a transcript that a ledger reads; other lines are not even parsed, and bad ones passed over."""
    try:
        with os.fdopen(open_regular(path), "rb") as lines:
            for line in lines:
                if not any(word in line for word in _TELLING):
                    continue
                try:
                    yield from parse_line(line)
                except ValueError:
                    continue
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, path, "read the transcript") from error
