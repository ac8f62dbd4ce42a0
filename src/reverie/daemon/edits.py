"""Makes a version of what somebody else changed in the memory directory, soon after it happened, and says who it was.

The files are looked at with every event, by their times only; nothing is read if nothing has changed.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Any, Final, cast

from reverie.daemon.hook_call import HookCall
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.lookup import absorb
from reverie.types import JsonObject

_TOOLS: Final = ("Write", "Edit", "MultiEdit")


class Edits:
    """What the memory directories looked like at the last event. For any thread."""

    def __init__(self) -> None:
        self._seen = dict[Path, object]()
        self._lock = Lock()

    def look(self, call: HookCall, directory: MemoryDirectory) -> None:
        """Makes a version if files have changed: of Claude Code if this event is its write there, else by hand."""
        with self._lock:
            if self._seen.get(directory.root) == (now := _look(directory.root)):
                return
            absorb(directory, _writer(call, directory.root))
            self._seen[directory.root] = now


def _writer(call: HookCall, root: Path) -> WriteInfo | None:
    given: Any = call.payload.get("tool_input")
    named = cast(JsonObject, given).get("file_path") if isinstance(given, dict) else None
    if call.event != "PostToolUse" or call.text("tool_name") not in _TOOLS or not isinstance(named, str):
        return None
    path = Path(os.path.realpath(named))
    if not path.is_relative_to(os.path.realpath(root)):
        return None
    return WriteInfo(Writer.AGENT, f"Claude Code wrote {path.name}", call.session)


def _look(root: Path) -> object:
    try:
        with os.scandir(root) as found:
            files = [(one.name, one.stat().st_mtime_ns) for one in found if one.name.endswith(".md")]
    except OSError:
        return None
    return sorted(files)
