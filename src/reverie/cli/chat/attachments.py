"""What goes along with a message: long pastes, output of the user's commands (`!cmd`), pictures (`@picture.png`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from reverie.cli.output import plural
from reverie.cli.screen import printable
from reverie.errors import UserError
from reverie.origins import SHORT_PASTE, fence
from reverie.quick import dataclass
from reverie.tools.bash import Bash
from reverie.tools.read import Read
from reverie.types import ImageBlock, Origin, TextBlock

if TYPE_CHECKING:
    from reverie.session.session import Session

_ENDING = r"\.(?:png|jpe?g|gif|webp)"
_PICTURE = re.compile(rf'(?:^|\s)@(?:"([^"\n]+{_ENDING})"|(\S+{_ENDING}))(?=$|[\s,;:!?.)])', re.IGNORECASE)
_MOST_PICTURES = 10
_SENT_CHARACTERS = 30_000


async def run_shell(session: Session, command: str) -> tuple[str, TextBlock]:
    """Runs a command of the user. Returns its output, and the block that tells the model about it later."""
    output = await Bash(is_users=True).run({"command": command}, session.tool_context)
    text = output.content if isinstance(output.content, str) else ""
    if len(text) > _SENT_CHARACTERS:
        half = _SENT_CHARACTERS // 2
        sent = f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"
    else:
        sent = text
    return text, fence(Origin.TOOL, f"The user ran this command: {command}\nIts output:\n{sent}")


async def find_pictures(session: Session, blocks: Iterable[TextBlock]) -> list[ImageBlock]:
    """The pictures that the user's own words name. Raises UserError for one that cannot be sent."""
    own = (block.text for block in blocks if block.origin.is_users)
    names = [found[1] or found[2] for text in own for found in _PICTURE.finditer(text)]
    if len(names) > _MOST_PICTURES:
        raise UserError(f"These are {len(names)} pictures; at most {_MOST_PICTURES} go with one message.")
    found = list[ImageBlock]()
    for name in dict.fromkeys(names):
        output = await Read().run({"file_path": name}, session.tool_context)
        if output.is_error or isinstance(output.content, str):
            why = output.content if output.is_error and isinstance(output.content, str) else f"{name} is not a picture."
            raise UserError(f"{why} The message was not sent.")
        found += [block for block in output.content if isinstance(block, ImageBlock)]
    return found


def shorten_paste(text: str, number: int) -> str:
    """The mark for a pasted text; empty if it is a short line, which is shown as it is."""
    short = text.strip("\n")
    if len(text) <= SHORT_PASTE and "\n" not in short and printable(short) == short:
        return ""
    return f"[Pasted text {number}: {plural(text.count(chr(10)) + 1, 'line')}, {len(text):,} characters]"


_MARK = re.compile(r"(\[Pasted text \d+: [\d,]+ lines?, [\d,]+ characters\])")


@dataclass(slots=True)
class Pastes:
    """All long pastes of a chat by their marks."""

    _texts: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, data: str) -> tuple[str, bool]:
        """What to insert for a paste, and whether it is a mark. A short line is inserted as it is."""
        text = data.replace("\r\n", "\n").replace("\r", "\n")
        mark = shorten_paste(text, len(self._texts) + 1)
        if not mark:
            return text.strip("\n"), False
        self._texts[mark] = text
        return mark, True

    def split(self, text: str, own: Origin) -> tuple[TextBlock, ...]:
        """The text with this origin, and each paste in place of its mark."""
        pieces = _MARK.split(text) if self._texts else [text]
        made = [fence(Origin.PASTED, self._texts[one]) if one in self._texts else TextBlock(one, own) for one in pieces]
        return tuple(block for block in made if block.text.strip()) or (TextBlock(text, own),)
