"""What an agent that writes memory in the background may do: read, and write Markdown inside the memory directory.

Shared by extraction and dreaming. Decided by permission and not by taking tools away, because the tools are part of the
cached prefix. Nobody is ever asked: what is not allowed is denied with a reason, counted and told to whoever logs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from reverie.permissions.inside import PermissionRefused, inside_for_write
from reverie.permissions.patterns import touched_paths
from reverie.permissions.rules import Allow, Decision, Deny, ToolCall
from reverie.permissions.secret_reads import why_secret
from reverie.permissions.sensitive import is_sensitive
from reverie.permissions.shell.read_only import why_not_read_only

_READS = frozenset({"Read", "Grep", "Glob"})
_WRITES = frozenset({"Write", "Edit"})


class BackgroundWriter:
    """The permission function of one run. `denied` counts refusals by tool.

    `refuse_write` is asked about each file that could be written (relative to the memory directory) and may say why
    not; `refuse_read` about each path that would be searched or read.
    """

    def __init__(
        self,
        memory: Path,
        *,
        refuse_write: Callable[[str], str | None] = lambda _name: None,
        refuse_read: Callable[[ToolCall], str | None] = lambda _call: None,
        on_denied: Callable[[str, str], None] = lambda _tool, _reason: None,
    ) -> None:
        self._memory = memory
        self._refuse_write = refuse_write
        self._refuse_read = refuse_read
        self._on_denied = on_denied
        self.denied: Counter[str] = Counter()

    async def __call__(self, call: ToolCall) -> Decision:
        """Allows the call, or denies it with a reason the agent can act on."""
        reason = self.why_not(call)
        if reason is None:
            return Allow()
        self.denied[call.tool] += 1
        self._on_denied(call.tool, reason)
        return Deny(reason)

    def why_not(self, call: ToolCall) -> str | None:
        """None if the call may run."""
        if call.tool in _READS:
            return self._why_not_read(call)
        if call.tool == "Bash":
            command = call.input.get("command")
            if not isinstance(command, str):
                return "The command is not text."
            return why_not_read_only(command) or why_secret(command, call.cwd) or self._refuse_read(call)
        if call.tool in _WRITES:
            return self._why_not_write(call)
        return (
            f"{call.tool} may not be used here: only Read, Grep, Glob, Bash that only reads, and Write or Edit of .md "
            f"files in {self._memory}."
        )

    def _why_not_read(self, call: ToolCall) -> str | None:
        for path in touched_paths(call):
            if is_sensitive(path):
                return f"{path} may hold secrets by its name, and is not read in the background."
        return self._refuse_read(call)

    def _why_not_write(self, call: ToolCall) -> str | None:
        path = call.input.get("file_path")
        if not isinstance(path, str):
            return f"{call.tool} needs the absolute path of a file in {self._memory}."
        try:
            real = inside_for_write(path, self._memory)
        except PermissionRefused as refusal:
            return str(refusal)
        return self._refuse_write(real.relative_to(os.path.realpath(self._memory)).as_posix())
