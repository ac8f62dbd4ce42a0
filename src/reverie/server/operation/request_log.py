"""Lines of JSON about requests and errors. They have routes, statuses, times and ids; never bodies, paths of memories,
tokens, or the words of an error, which may quote a row."""

from __future__ import annotations

import json
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_MOST_FRAMES: Final = 12


def write_line(event: str, **values: object) -> None:
    """One line on standard error."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    shown = {name: value for name, value in values.items() if value not in (None, "")}
    print(json.dumps({"at": at, "event": event, **shown}), file=sys.stderr, flush=True)


def write_error(error: BaseException, **values: object) -> None:
    """What failed and where, without its words."""
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    where = [f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames]
    write_line("error", error=type(error).__name__, where=where, **values)
