"""What stands for a cleared result: one sentence that says so, and how to have the content again. Pure text."""

from __future__ import annotations

from functools import cache

from reverie.prompts import render

CLEARABLE = frozenset({"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"})
"""Tools whose results may go: they can be run again, or what they did is on disk."""

_AGAIN = {
    "Read": "Read the file again if you need it.",
    "Bash": "Run the command again if you need its output.",
    "Edit": "The edit was made; read the file to see it.",
    "Write": "The file was written; read it to see it.",
}
_FAILED = {
    "Edit": "The edit failed; read the file before you try again.",
    "Write": "Writing failed; look at the folder before you try again.",
}
_OTHERWISE = "Run the tool again with the same input if you need it."


def cleared(tool: str, *, kept_in: str | None = None, failed: bool = False) -> str:
    """The marker for a result of this tool. `kept_in`: the file that layer 1 put the whole result into."""
    if kept_in is not None:
        return _rendered(f"All of it is in {kept_in}.")
    return _rendered(_FAILED.get(tool, _AGAIN.get(tool, _OTHERWISE)) if failed else _AGAIN.get(tool, _OTHERWISE))


@cache
def _rendered(how: str) -> str:
    return render("reverie.layers.l2_microcompact", "cleared.md", {"how": how})
