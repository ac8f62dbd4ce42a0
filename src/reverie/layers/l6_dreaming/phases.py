"""What a dream is told: the files there are, the logs and transcripts to look into, and the four phases.

Pure but for reading the heads of the files. The words are in `prompts/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Final

from reverie.memory.daily_log import list_logs
from reverie.memory.index import LINE_CHARACTERS, MAX_BYTES, MAX_LINES
from reverie.memory.scan import manifest, scan
from reverie.moments import moment
from reverie.prompts import render

_PACKAGE: Final = "reverie.layers.l6_dreaming"
_MOST_TRANSCRIPTS: Final = 40
_MOST_LOGS: Final = 60


def system_prompt() -> str:
    """The system prompt of a dream that is not a fork."""
    return render(_PACKAGE, "system.md")


def directive(
    memory: Path, *, today: date, transcripts: Sequence[Path], undistilled: Sequence[Path] = (), here: bool = False
) -> str:
    """What the dream is asked. `undistilled`: logs that are its main source; `here`: it also sees a conversation."""
    found = scan(memory, newest=None)
    around = [_transcripts(transcripts)]
    if undistilled:
        around.insert(0, render(_PACKAGE, "distil.md", {"logs": _listed(undistilled, _MOST_LOGS)}))
    elif all_logs := list_logs(memory):
        newest = all_logs[-_MOST_LOGS:]
        around.insert(0, f"Daily logs, oldest first:\n{_listed(newest, _MOST_LOGS)}")
    if here:
        around.append("The conversation above is the current session: it is not what this is about.")
    return render(
        _PACKAGE,
        "dream.md",
        {
            "memory": str(memory),
            "today": today.isoformat(),
            "files": manifest(found.entries) or "(none yet)",
            "around": "\n\n".join(around),
            "line": str(LINE_CHARACTERS),
            "lines": f"{MAX_LINES:,}",
            "bytes": f"{MAX_BYTES:,}",
        },
    )


def _transcripts(paths: Sequence[Path]) -> str:
    if not paths:
        return "No transcripts have changed since the last dream."
    lines = [f"- {path} ({_written(path)})" for path in paths[:_MOST_TRANSCRIPTS]]
    more = f"\n- and {len(paths) - _MOST_TRANSCRIPTS} older ones" if len(paths) > _MOST_TRANSCRIPTS else ""
    return (
        "Transcripts that changed since the last dream, newest first, one JSON record a line:\n"
        + "\n".join(lines)
        + more
    )


def _listed(paths: Sequence[Path], most: int) -> str:
    return "\n".join(f"- {path}" for path in paths[:most])


def _written(path: Path) -> str:
    try:
        written = moment(path.stat().st_mtime)
    except OSError:
        return "gone"
    return written.isoformat(timespec="minutes").replace("+00:00", "Z")
