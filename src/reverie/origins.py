"""Tags around text that is not the user's, and the split of one string into the user's words and material.

Only typed and entered text is the user's. Other text in a user message is between tags that it cannot close or open.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from reverie.types import Origin, TextBlock

UserInput: TypeAlias = str | Sequence[TextBlock]
SHORT_PASTE = 300  # a pasted line of up to this many characters counts as entered; a longer one as pasted
NO_REQUEST = "The user sent this and wrote nothing beside it. Say what it is, or answer what it asks."
LONG_PART, MANY_LINES = 4_000, 40  # a paragraph beyond one of these is material

_TAGS = {Origin.CODE: "system-reminder", Origin.RECALLED: "system-reminder"}
_TASK = "reverie-task"
_OPENING = re.compile("[<＜﹤]")
_OURS = re.compile(
    r"[\s/]*(?:system-reminder|fork-directive|reverie-task|letter|persisted-output|[a-z]{3,12}-text)(?![a-z0-9])"
)
_LONGEST_TAG = 80
_ALSO = {Origin.CODE: (_TASK,), Origin.AGENT: ("letter", "fork-directive")}
_TAGGED = re.compile(r"\s*<(?P<tag>[a-z]+-(?:text|task))\b[^>\n]*>\n(?P<text>.*)\n</(?P=tag)>\s*\Z", re.DOTALL)
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_MATERIAL = re.compile(
    r"""\s{4,}\S | \t
      | >\s | \$\s | >>>\s | [+-]{3}\s | @@\s | [+-](?!\s?\w+\s\w+\s\w)
      | [\[(]?\d{4}-\d\d-\d\d[T\s\]_] | [\[(]?\d{1,2}:\d\d:\d\d | [A-Z][a-z]{2}\s+\d{1,2}\s\d\d:\d\d
      | \[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b[\]:\s]
      | Traceback\s\( | File\s" | at\s[\w$.<>]+\( | \S+:\d+(?::\d+)?[:\s]
      | .*[;{}]\s*$
    """,
    re.VERBOSE,
)


def tag_of(origin: Origin) -> str:
    """Returns the tag for text of this origin."""
    return _TAGS.get(origin, f"{origin.value}-text")


def escape_tags(text: str) -> str:
    """Escapes every tag of ours in the text, even with other letters or invisible characters in it."""
    return _OPENING.sub(lambda found: "&lt;" if _is_tag(text, found.end()) else found[0], text)


def _is_tag(text: str, at: int) -> bool:
    seen = (char for char in text[at : at + _LONGEST_TAG] if unicodedata.category(char) not in ("Cf", "Cc", "Mn", "Me"))
    return _OURS.match(unicodedata.normalize("NFKC", "".join(seen)).casefold()) is not None


def fence(origin: Origin, text: str, note: str = "") -> TextBlock:
    """Puts the text between the tags of its origin. `note` is a remark of ours about it."""
    tag = tag_of(origin)
    opening = f'<{tag} note="{note}">' if note else f"<{tag}>"
    return TextBlock(f"{opening}\n{escape_tags(text)}\n</{tag}>", origin)


def task(text: str) -> TextBlock:
    """Returns a task of Reverie itself for a model."""
    safe = text.replace(f"</{_TASK}", f"&lt;/{_TASK}")
    return TextBlock(f"<{_TASK}>\n{safe}\n</{_TASK}>", Origin.CODE)


def strip_tags(text: str) -> str:
    """Removes the tags around a text."""
    found = _TAGGED.match(text)
    return found["text"] if found else text


def fence_block(block: TextBlock) -> TextBlock:
    """Returns the block for a user message: with tags, unless it is the user's own or has them already."""
    if block.origin.is_users or block.origin is Origin.MODEL or _has_tags(block) or not block.text.strip():
        return block
    made = fence(block.origin, block.text)
    return TextBlock(made.text, block.origin, block.extra)


def _has_tags(block: TextBlock) -> bool:
    own = (tag_of(block.origin), *_ALSO.get(block.origin, ()))
    text = block.text.strip()
    is_inside = any(text.startswith((f"<{tag}>", f"<{tag} ")) and text.endswith(f"</{tag}>") for tag in own)
    inside = strip_tags(text)
    return is_inside and (inside == text or escape_tags(inside) == inside)


def split_material(text: str, origin: Origin) -> list[TextBlock]:
    """Splits a string into the user's words, with this origin, and material, which counts as pasted. In order."""
    found = list[tuple[bool, list[str]]]()
    for lines, is_code in _paragraphs(text.splitlines(keepends=True)):
        is_material = is_code or _is_material(lines)
        blank = not "".join(lines).strip()
        if found and (blank or found[-1][0] == is_material):
            found[-1][1].extend(lines)
        else:
            found.append((is_material, lines))
    blocks = list[TextBlock]()
    for is_material, lines in found:
        piece = "".join(lines)
        if not piece.strip():
            continue
        note = NO_REQUEST if len(found) == 1 else ""
        blocks.append(fence(Origin.PASTED, piece.strip("\n"), note=note) if is_material else TextBlock(piece, origin))
    return blocks if any(block.origin is Origin.PASTED for block in blocks) else [TextBlock(text, origin)]


def input_blocks(said: UserInput) -> list[TextBlock]:
    """Returns the blocks of an input: a string counts as entered, with material split off; blocks stay unchanged."""
    if isinstance(said, str):
        return split_material(said, Origin.ENTERED) if said.strip() else []
    return list(said)


def _paragraphs(lines: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Yields paragraphs and blank parts in order; True for a fenced code block. Linear in the length of the text."""
    held, at = list[str](), 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if opening:
            if held:
                yield held, False
            end = next(
                (n for n in range(at + 1, len(lines)) if lines[n].strip().startswith(opening[1])), len(lines) - 1
            )
            yield lines[at : end + 1], True
            held, at = [], end + 1
            continue
        is_blank = not lines[at].strip()
        if held and is_blank != (not held[-1].strip()):
            yield held, False
            held = []
        held.append(lines[at])
        at += 1
    if held:
        yield held, False


def _is_material(lines: list[str]) -> bool:
    written = [line for line in lines if line.strip()]
    if len(written) > MANY_LINES or sum(map(len, written)) > LONG_PART:
        return True
    odd = sum(_MATERIAL.match(line[:400]) is not None for line in written)
    return len(written) >= 3 and 3 * odd >= 2 * len(written)
