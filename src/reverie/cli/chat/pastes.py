"""Long pasted text at the prompt: a mark is shown, and the text keeps an origin of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reverie.cli.output import plural
from reverie.cli.screen import printable
from reverie.origins import SHORT_PASTE, fence
from reverie.types import Origin, TextBlock

_MARK = re.compile(r"(\[Pasted text \d+: [\d,]+ lines?, [\d,]+ characters\])")


@dataclass(slots=True)
class Pastes:
    """All long pastes of a chat by their marks."""

    _texts: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, data: str) -> tuple[str, bool]:
        """What to insert for a paste, and whether it is a mark. A short line is inserted as it is."""
        text = data.replace("\r\n", "\n").replace("\r", "\n")
        short = text.strip("\n")
        if len(text) <= SHORT_PASTE and "\n" not in short and printable(short) == short:
            return short, False
        lines = plural(text.count("\n") + 1, "line")
        mark = f"[Pasted text {len(self._texts) + 1}: {lines}, {len(text):,} characters]"
        self._texts[mark] = text
        return mark, True

    def split(self, text: str, own: Origin) -> tuple[TextBlock, ...]:
        """The text with this origin, and each paste in place of its mark."""
        pieces = _MARK.split(text) if self._texts else [text]
        made = [fence(Origin.PASTED, self._texts[one]) if one in self._texts else TextBlock(one, own) for one in pieces]
        return tuple(block for block in made if block.text.strip()) or (TextBlock(text, own),)
