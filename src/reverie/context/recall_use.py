"""Whether an answer used the memories that were recalled for its message. A measure for `reverie health`, not a proof.

A memory counts as used if the agent says or does something with a name, path or figure of the memory that the user's
message did not have, or opens its file, before the next message.
"""

from __future__ import annotations

import json
import re
from dataclasses import field

from reverie.quick import dataclass
from reverie.types import Message, Origin, TextBlock

_NAME = re.compile(r"[A-Za-z0-9_~/.@:+-]{3,}")
_TELLING = re.compile(r"[\d_/@]|[a-z][A-Z]|\w\.\w|\w-\w")
_MEMORY = re.compile(r"^## (?P<path>\S.*?) \(saved ", re.MULTILINE)


@dataclass(slots=True)
class RecallUse:
    """Follows the messages of one session."""

    shown: int = 0
    used: int = 0
    _asked: set[str] = field(default_factory=set[str])
    _open: list[set[str]] = field(default_factory=list[set[str]])

    def recalled(self, number: int) -> None:
        """Call when memories were recalled for the last message of the user."""
        self.shown += number
        self._open = []

    def said(self, message: Message) -> None:
        """Call for every message."""
        if message.role == "assistant":
            self._answered(message)
            return
        for block in message.content:
            if not isinstance(block, TextBlock):
                continue
            if block.origin is Origin.RECALLED:
                self._open = [_names(part) - self._asked for part in _split(block.text)]
            elif block.origin.is_given:
                self._asked, self._open = _names(block.text), []

    def _answered(self, message: Message) -> None:
        if not self._open:
            return
        calls = " ".join(json.dumps(call.input, default=str) for call in message.tool_uses)
        said = _names(f"{message.text} {calls}")
        left = [names for names in self._open if not names & said]
        self.used += len(self._open) - len(left)
        self._open = left


def _split(reminder: str) -> list[str]:
    """Returns the text of each memory in a reminder, with its path, without its age."""
    heads = list(_MEMORY.finditer(reminder))
    ends = [*(head.start() for head in heads[1:]), len(reminder)]
    bodies = [reminder[head.end() : end].partition("\n")[2] for head, end in zip(heads, ends, strict=True)]
    return [f"{head['path']} {body}" for head, body in zip(heads, bodies, strict=True)]


def _names(text: str) -> set[str]:
    found = (word.strip(".:,-/") for word in _NAME.findall(text))
    return {word.lower() for word in found if _TELLING.search(word)}
