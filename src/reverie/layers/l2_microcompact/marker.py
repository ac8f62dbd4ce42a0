"""What stands for a cleared result: one sentence that says so, and how to have the content again. Pure text.

It is as short as it can be, because it stays in the prompt for good: the call right above it names the file or command.
"""

from __future__ import annotations

from functools import cache

from reverie.prompts import render

CLEARABLE = frozenset({"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"})
"""Tools whose results may go: they can be run again, or what they did is on disk."""

_AGAIN = {
    "Read": "read the file again if needed.",
    "Bash": "run the command again if needed.",
    "Edit": "the edit was made.",
    "Write": "the file was written.",
}
_FAILED = {"Edit": "the edit failed.", "Write": "writing the file failed."}
_OTHERWISE = "run the tool again with the same input if needed."


def cleared(tool: str, *, kept_in: str | None = None, failed: bool = False) -> str:
    """The marker for a result of this tool. `kept_in`: the file that layer 1 put the whole result into."""
    if kept_in is not None:
        return _rendered(f"all of it is in {kept_in}.")
    return _rendered(_FAILED.get(tool, _AGAIN.get(tool, _OTHERWISE)) if failed else _AGAIN.get(tool, _OTHERWISE))


@cache
def _rendered(how: str) -> str:
    return render("reverie.layers.l2_microcompact", "cleared.md", {"how": how})
