"""Text in Markdown, which editors show: foreign text cannot leave its code block."""

from __future__ import annotations

import re

from reverie.text.patterns import late

_FENCES = late(r"^\s*(`{3,})", re.MULTILINE)


def code(text: str) -> str:
    """The text in a code block that is longer than any in it."""
    longest = max((len(found[1]) for found in _FENCES.finditer(text)), default=2)
    mark = "`" * (longest + 1)
    ending = "" if text.endswith("\n") else "\n"
    return f"{mark}\n{text}{ending}{mark}"
