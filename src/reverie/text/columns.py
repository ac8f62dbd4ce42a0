"""Text in columns: how wide a text is on a terminal, cutting it to a width, and tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise


def width(text: str) -> int:
    """Columns that a terminal gives to this text."""
    if text.isascii():
        return len(text)
    # By the standard library's tables: a listing must not pay for importing another library.
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(char) in ("Mn", "Me", "Cf") else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, most: int) -> str:
    """At most `most` columns, with an ellipsis where something is missing."""
    if len(text) <= most and (text.isascii() or width(text) <= most):
        return text
    used, kept = 0, list[str]()
    for char in text:
        used += width(char)
        if used > most - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def split_wide(word: str) -> list[str]:
    """A word in pieces between which a line may end: scripts with wide characters write no blanks between words."""
    if word.isascii():
        return [word]
    pieces = [word[:1]]
    for before, char in pairwise(word):
        if width(before) == width(char) == 2:
            pieces.append(char)
        else:
            pieces[-1] += char
    return pieces


def table(
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[int] = (),
    room: int = 10_000,
    flexible: int = -1,
    least: int = 16,
    shorten: Callable[[str, int], str] = cut,
    measure: Callable[[str], int] = width,
) -> Iterator[str]:
    """Rows of cells in columns, two blanks apart; a column of empty cells is left out.

    `right`: columns of figures. `flexible`: the column that is shortened to `room`, but not below `least`.
    `measure`: the width of a cell, where cells hold more than text.
    """
    listed = list(rows)
    wides = [max(map(measure, column)) for column in zip(*listed, strict=True)]
    if flexible >= 0 and listed:
        others = sum(wide + 2 for at, wide in enumerate(wides) if wide and at != flexible % len(wides))
        wides[flexible] = max(least, min(wides[flexible], room - others))
    for row in listed:
        shown = list[str]()
        for at, (cell, wide) in enumerate(zip(row, wides, strict=True)):
            if wide:
                fitting = shorten(cell, wide) if measure(cell) > wide else cell
                gap = " " * (wide - measure(fitting))
                shown.append(gap + fitting if at in right else fitting + gap)
        yield "  ".join(shown).rstrip()
