"""The messages of the user for the new context: short ones word for word, long ones as excerpts.

A long message is kept whole in a file next to the transcript, and its excerpt names that file. If all messages together
are too long, the oldest are shortened first and are whole in a file too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from reverie.layers.base import WriteFile
from reverie.layers.l1_tool_results.replacement import file_name
from reverie.models.tokens import encoded, estimate_text
from reverie.origins import strip_tags
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry
from reverie.text.cutting import shorten
from reverie.types import TextBlock

_LINE = 100


@dataclass(frozen=True, slots=True)
class UserRequest:
    """One message of the user: their own words and what they piped or pasted, in order."""

    uuid: str
    parts: tuple[TextBlock, ...]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)

    @property
    def plain(self) -> str:
        """The text without the tags around piped or pasted parts."""
        return "\n".join(strip_tags(part.text) for part in self.parts)

    @property
    def own(self) -> str:
        """The user's own words."""
        return "\n".join(part.text for part in self.parts if part.origin.is_users)

    @property
    def words(self) -> str:
        """The user's own words; if there are none, what they piped or pasted."""
        return self.own or self.plain

    @property
    def bytes(self) -> int:
        return len(self.text.encode("utf-8", "replace"))


def requests_in(entries: Iterable[Entry]) -> list[UserRequest]:
    """Returns every message of the user, in order."""
    found = list[UserRequest]()
    for entry in entries:
        if entry.message.role != "user" or entry.brought:
            continue
        given = tuple(b for b in entry.message.content if isinstance(b, TextBlock) and b.origin.is_given)
        if any(block.text.strip() for block in given):
            found.append(UserRequest(entry.uuid or "", given))
    return found


def files_for(requests: Sequence[UserRequest], folder: Path, limit: int) -> list[WriteFile]:
    """Returns the files that keep the long ones."""
    return [
        WriteFile(path_of(request, folder), request.plain.encode("utf-8", "replace"))
        for request in requests
        if request.bytes > limit
    ]


def path_of(request: UserRequest, folder: Path) -> Path:
    """Returns the file of a long message."""
    return folder / file_name(request.uuid or request.text, structured=False)


def all_requests_file(requests: Sequence[UserRequest], path: Path) -> WriteFile:
    """Returns one file with every message in full, for when not all of them can be shown."""
    text = "\n\n".join(f"--- message {number} ---\n{one.plain}" for number, one in enumerate(requests, 1))
    return WriteFile(path, text.encode("utf-8", "replace"))


def render_requests(
    requests: Sequence[UserRequest],
    folder: Path,
    *,
    limit: int,
    budget: int,
    kept_whole: Path,
    unsaved: frozenset[Path],
) -> str:
    """Renders the messages as a numbered list within `limit` bytes per message and `budget` tokens in total.

    The disk refused the files in `unsaved`: their content is shown in full as long as it fits.
    """
    shown = [one.text for one in requests]
    for at, one in enumerate(requests):
        path = path_of(one, folder)
        if one.bytes > limit and path not in unsaved:
            shown[at] = _excerpt(one, limit, path)
    sizes = [estimate_text(text) + 4 for text in shown]
    total, first = sum(sizes), 0
    while first < len(requests) and total > budget:  # the oldest are shorten first, to one line each
        line = shorten(requests[first].text, _LINE)
        total += estimate_text(line) + 4 - sizes[first]
        shown[first], sizes[first] = line, estimate_text(line) + 4
        first += 1
    left_out = 0
    while left_out < first and total > budget:
        total -= sizes[left_out]
        left_out += 1
    lines = [f"{number}. {text}" for number, text in enumerate(shown, 1)][left_out:]
    if first:
        which = f"Messages 1 to {left_out} are not shown and those up to {first} only" if left_out else ""
        head = which or f"Messages 1 to {first} are shown"
        lines.insert(0, f"({head} by their beginning; all are word for word in {kept_whole}.)")
    return "\n".join(lines)


def _excerpt(request: UserRequest, limit: int, path: Path) -> str:
    own = sum(len(encoded(part.text)) for part in request.parts if part.origin.is_users)
    material = [part for part in request.parts if not part.origin.is_users]
    room = max(limit - own, limit // 4) // max(1, len(material))
    shown = "\n".join(part.text if part.origin.is_users else _cut(part.text, room, path) for part in request.parts)
    return _cut(shown, limit, path) if own > limit else shown


def _cut(text: str, limit: int, path: Path) -> str:
    raw = encoded(text)
    if len(raw) <= limit:
        return text
    head = raw[: limit * 3 // 4].decode("utf-8", "ignore")
    tail = raw[len(raw) - limit // 4 :].decode("utf-8", "ignore")
    return f"{head}\n[… {len(raw):,} bytes in all; word for word in {path} …]\n{tail}"
