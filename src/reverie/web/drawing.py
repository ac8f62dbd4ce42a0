"""Shapes for templates: a stacked chart and a wall of blocks, as attributes of SVG elements.

Numbers only. Texts and links stay in the templates, where they are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from reverie.web.visit import Data

WIDTH = 1000.0
HEIGHT = 240.0
ROWS = 16
ROW = 14.0
_GAP = 1.5
_LEAST = 0.4
"""Blocks that are narrower are drawn together with the next one of their source."""


def stacked(columns: Sequence[Mapping[str, object]], order: Iterable[str], top: int) -> Data:
    """One path per source over all columns, and one strip per column for links. `top`: the value at the upper edge."""
    width = WIDTH / max(1, len(columns))
    floor = [0.0] * len(columns)
    layers = list[Data]()
    for source in order:
        amounts = [_amount(column, source) * HEIGHT / max(1, top) for column in columns]
        if any(amounts):
            layers.append({"source": source, "d": _area(floor, amounts, width)})
            floor = [low + more for low, more in zip(floor, amounts, strict=True)]
    strips = [{"x": round(at * width, 2), "width": round(width, 2)} for at in range(len(columns))]
    return {"layers": layers, "strips": strips, "width": WIDTH, "height": HEIGHT}


def _amount(column: Mapping[str, object], source: str) -> float:
    sources = column["sources"]
    return float(sources.get(source, 0)) if isinstance(sources, Mapping) else 0.0  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def _area(floor: Sequence[float], amounts: Sequence[float], width: float) -> str:
    """Steps along the upper edge, then back along the lower one; columns without the source are left out."""
    parts, at = list[str](), 0
    while at < len(amounts):
        if amounts[at] <= 0:
            at += 1
            continue
        end = at
        while end < len(amounts) and amounts[end] > 0:
            end += 1
        upper = [f"V{_down(floor[i] + amounts[i])}H{(i + 1) * width:.1f}" for i in range(at, end)]
        lower = [f"V{_down(floor[i])}H{i * width:.1f}" for i in range(end - 1, at - 1, -1)]
        parts.append(f"M{at * width:.1f} {_down(floor[at])}{''.join(upper)}{''.join(lower)}Z")
        at = end
    return "".join(parts)


def _down(value: float) -> str:
    return f"{max(0.0, HEIGHT - value):.1f}"


def down(value: float, top: float) -> float:
    """The height of a value in a chart, from above."""
    return round(max(0.0, HEIGHT - value * HEIGHT / max(1.0, top)), 1)


def wall(pieces: Iterable[Mapping[str, object]], size: int, value: str = "tokens") -> Data:
    """A window of this size as rows, filled in the order of the prompt. A piece has a `number`, a `source`, a value.

    What does not fit into the window makes more rows.
    """
    per_row = max(1.0, size / ROWS)
    drawn, at = list[Data](), 0.0
    for number, source, amount in _joined(pieces, value, per_row * _LEAST / WIDTH):
        drawn.append({"number": number, "source": source, "rects": _rects(at, at + amount, per_row)})
        at += amount
    rows = max(1, math.ceil(at / per_row - 1e-9))
    return {"pieces": drawn, "rows": rows, "width": WIDTH, "height": rows * ROW}


def region(start: int, end: int, size: int) -> list[Data]:
    """A part of the same wall, e.g. what is kept for the answer."""
    return _rects(start, end, max(1.0, size / ROWS))


def _joined(pieces: Iterable[Mapping[str, object]], value: str, least: float) -> Iterable[tuple[object, object, float]]:
    waiting: tuple[object, object, float] | None = None
    for piece in pieces:
        amount, source = float(str(piece[value])), piece.get("source", "")
        if waiting is not None and (waiting[1] != source or waiting[2] >= least):
            yield waiting
            waiting = None
        waiting = (piece["number"], source, amount + (waiting[2] if waiting is not None else 0.0))
    if waiting is not None:
        yield waiting


def _rects(start: float, end: float, per_row: float) -> list[Data]:
    found = list[Data]()
    while end - start > 1e-6:
        row = int(start // per_row + 1e-9)
        stop = min(end, (row + 1) * per_row)
        x = (start - row * per_row) / per_row * WIDTH
        found.append(
            {
                "x": round(x, 2),
                "y": round(row * ROW, 1),
                "width": round(max(0.3, (stop - start) / per_row * WIDTH), 2),
                "height": ROW - _GAP,
            }
        )
        start = stop if stop > start else end
    return found
