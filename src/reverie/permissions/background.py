"""What an agent that writes memory in the background may do: read, and write Markdown in the memory directory.

Extraction and dreams use it. The tools stay the same, because they are part of the cached prefix; permissions limit
them. The user is never asked: commands run in the sandbox and change nothing, other calls are denied with a reason,
counted and logged.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from pathlib import Path

from reverie.permissions.memory_paths import PermissionRefused, check_memory_write
from reverie.permissions.patterns import list_paths
from reverie.permissions.rules import Allow, Decision, Deny, Profile, ToolCall
from reverie.permissions.sensitive import is_sensitive
from reverie.quick import dataclass

_READS = frozenset({"Read", "Grep", "Glob"})
_WRITES = frozenset({"Write", "Edit"})


@dataclass
class BackgroundWriter:
    """The permission function of one run. `denied` counts the refusals per tool.

    `refuse_write` gets the name of each file to write (relative to the memory directory) and may return a reason
    against it; `refuse_read` gets each call that searches or reads.
    """

    memory: Path
    _: KW_ONLY
    refuse_write: Callable[[str], str | None] = lambda _name: None
    refuse_read: Callable[[ToolCall], str | None] = lambda _call: None
    on_denied: Callable[[str, str], None] = lambda _tool, _reason: None
    denied: Counter[str] = field(default_factory=Counter[str], init=False)

    async def __call__(self, call: ToolCall) -> Decision:
        reason = self.why_not(call)
        if reason is None:
            return Allow(profile=Profile.READ_ONLY if call.tool == "Bash" else None)
        self.denied[call.tool] += 1
        self.on_denied(call.tool, reason)
        return Deny(reason)

    def why_not(self, call: ToolCall) -> str | None:
        """Returns the reason why the call may not run; None if it may."""
        if call.tool in _READS:
            return self._why_not_read(call)
        if call.tool == "Bash":
            return self.refuse_read(call)
        if call.tool in _WRITES:
            return self._why_not_write(call)
        return (
            f"{call.tool} may not be used here: only Read, Grep, Glob, Bash that only reads, and Write or Edit of .md "
            f"files in {self.memory}."
        )

    def _why_not_read(self, call: ToolCall) -> str | None:
        for path in list_paths(call):
            if is_sensitive(path):
                return f"By its name, {path} may hold secrets, so it is not read in the background."
        return self.refuse_read(call)

    def _why_not_write(self, call: ToolCall) -> str | None:
        path = call.input.get("file_path")
        if not isinstance(path, str):
            return f"{call.tool} needs the absolute path of a file in {self.memory}."
        try:
            real = check_memory_write(path, self.memory)
        except PermissionRefused as refusal:
            return str(refusal)
        return self.refuse_write(real.relative_to(os.path.realpath(self.memory)).as_posix())
