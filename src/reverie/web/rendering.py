"""Turns the data of a page into HTML or JSON. Everything is escaped; numbers and times look as on the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from reverie.cli.output import format_age, format_seconds, format_size, format_tokens, plural
from reverie.moments import local_minutes, parse_time
from reverie.web import drawing
from reverie.web.prose import inline, prose

if TYPE_CHECKING:
    from jinja2 import Environment, Template

TEMPLATES = Path(__file__).with_name("templates")
STATIC = Path(__file__).with_name("static")

_HIDDEN = {
    **{code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: 0x2421,
    **{code: f"⟨U+{code:04X}⟩" for code in (*range(0x80, 0xA0), 0x61C, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF)},
    **{code: f"⟨U+{code:04X}⟩" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xE0000, 0xE0080))},
    **dict.fromkeys(range(55296, 57344), "�"),
}
"""Characters that could change how other text reads, and what is shown instead."""


def shown(text: object) -> str:
    """Foreign text as it is, except that control and bidirectional characters are visible."""
    return str(text).translate(_HIDDEN)


def short(text: object, most: int = 80) -> str:
    """One line of at most `most` characters."""
    line = " ".join(shown(str(text)[: most * 4]).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def dollars(amount: float | None) -> str:
    """An amount of money, with enough digits to see something."""
    if amount is None:
        return "–"
    return f"${amount:,.2f}" if abs(amount) >= 1 or amount == 0 else f"${amount:.4f}"


def when(moment: float | str | None) -> str:
    """A time, local: `2026-11-16 14:05`."""
    if moment is None or moment == "":
        return "–"
    if not isinstance(moment, str):
        return local_minutes(moment)
    found = parse_time(moment)
    return local_minutes(found.timestamp()) if found is not None else short(moment, 40)


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def segment(text: object) -> str:
    """A text as one segment of an address."""
    return quote(str(text), safe="", errors="replace")


@cache
def environment() -> Environment:
    """The templates. An unknown name in one is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters: dict[str, Any] = found.filters
    filters.update(
        age=format_age,
        down=drawing.down,
        region=drawing.region,
        stacked=drawing.stacked,
        wall=drawing.wall,
        dollars=dollars,
        inline=inline,
        percent=percent,
        plural=plural,
        prose=prose,
        seconds=format_seconds,
        segment=segment,
        short=short,
        shown=shown,
        size=format_size,
        tokens=format_tokens,
        when=when,
    )
    return found


def warm_up() -> None:
    """Loads what the first visits would wait for: templates, and modules that read transcripts."""
    for name in ("home_tables", "money_tables", "window_map"):
        import_module(f"reverie.web.{name}")
    for name in environment().list_templates(["html"]):
        environment().get_template(name)


def render(name: str, data: Mapping[str, Any], part: str = "") -> str | None:
    """The page `name`, or only its block `part`; None if it has no such block."""
    template: Template = environment().get_template(f"{name}.html")
    if not part:
        return template.render(data)
    from jinja2 import UndefinedError

    block = template.blocks.get(part)
    try:
        return None if block is None else "".join(block(template.new_context(dict(data))))
    except UndefinedError:
        return None  # this block cannot be shown alone: it needs what the page around it sets


def to_json(data: Mapping[str, Any]) -> bytes:
    """JSON that is also valid where a text has half of a surrogate pair."""
    return json.dumps(data, ensure_ascii=False, default=str).encode("utf-8", "replace")
