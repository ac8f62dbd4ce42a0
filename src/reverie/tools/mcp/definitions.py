"""One tool of a server, and the texts about it for the model: a line for the list, and the whole definition.

The same tool always gives the same bytes. Texts of servers are bounded, without invisible characters, and cannot look
like a line or a tag of ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from reverie.errors import UserError
from reverie.origins import escape_tags
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.text.quoting import without_hidden
from reverie.tools.mcp.names import make_name
from reverie.tools.text_form import replace_surrogates
from reverie.types import JsonObject

LONGEST_SCHEMA = 12_000
_LONGEST_LINE = 120
_HEAD = "### "
_DEFINED = late(r"^### (mcp__[A-Za-z0-9_-]+)(?: .*)?$((?:\n(?!### ).*)*)", 8)
_LISTED = late(r"^- (mcp__[A-Za-z0-9_-]+)(?:: (.*))?$", 8)
_SENTENCE = late(r"(?<=[.!?])\s")
_WORD = late(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool of a server. `name` is for the model, `raw` is the server's own."""

    name: str
    raw: str
    description: str
    schema: JsonObject
    only_reads: bool = False
    """The server says that it changes nothing. It decides nothing: a server may say anything."""

    @property
    def digest(self) -> str:
        """Changes with everything that the model learns about the tool."""
        made = json.dumps([self.description, self.schema], sort_keys=True, default=str)
        return hashlib.sha256(made.encode("utf-8", "replace")).hexdigest()[:24]

    @property
    def line(self) -> str:
        """The description in one line, for the list."""
        first = " ".join(self.description.split())
        if len(first) > _LONGEST_LINE:
            sentence = _SENTENCE.split(first, 1)[0]
            first = sentence if len(sentence) <= _LONGEST_LINE else f"{first[: _LONGEST_LINE - 1].rstrip()}…"
        return escape_tags(first)

    def text(self) -> str:
        """The definition as the model sees it."""
        about = "\n".join(f"  {line}" for line in escape_tags(self.description).splitlines() if line.strip())
        schema = escape_tags(json.dumps(self.schema, sort_keys=True, ensure_ascii=False, separators=(",", ":")))
        hint = "\n  (The server says that it only reads.)" if self.only_reads else ""
        return f"{_HEAD}{self.name}\n{about or '  (no description)'}{hint}\n  input: {schema}"


def clean(text: object, most: int) -> str:
    """Returns a text of a server without invisible and control characters, and not longer than `most`."""
    if not isinstance(text, str):
        return ""
    made = without_hidden(replace_surrogates(text[: 4 * most])).strip()
    return made if len(made) <= most else f"{made[: most - 1].rstrip()}…"


def define(
    server: str, raw: str, description: object, schema: object, *, only_reads: bool, most: int
) -> ToolDefinition:
    """Returns the definition of a tool as a server lists it; raises UserError if it cannot be used."""
    made: JsonObject = cast("JsonObject", schema) if isinstance(schema, dict) else {}
    try:
        text = json.dumps({"type": "object", **made}, default=str, ensure_ascii=False)
        made = cast("JsonObject", load_json(without_hidden(text)))
    except (ValueError, RecursionError) as error:
        raise UserError(f"the tool {raw[:80]!r} is left out: its schema cannot be read") from error
    if len(json.dumps(made)) > LONGEST_SCHEMA:
        made = cast("JsonObject", _without_prose(made))
    if len(json.dumps(made)) > LONGEST_SCHEMA:
        raise UserError(f"the tool {raw[:80]!r} is left out: its schema has more than {LONGEST_SCHEMA:,} characters")
    return ToolDefinition(make_name(server, raw), raw, clean(description, most), made, only_reads)


def _without_prose(value: Any) -> Any:
    """Returns a schema without descriptions and examples; a property may have such a name."""
    if isinstance(value, list):
        return [_without_prose(one) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    kept = dict[str, Any]()
    for key, one in cast("JsonObject", value).items():
        if key not in ("description", "examples") or isinstance(one, dict):
            kept[key] = _without_prose(one)
    return kept


def defined_in(text: str) -> Iterator[tuple[str, str]]:
    """Yields the name and the whole text of each definition in a text of ours, such as a result of LoadTools."""
    for found in _DEFINED.finditer(text):
        yield found[1], found[0].rstrip()


def listed_in(text: str) -> Iterator[tuple[str, str]]:
    """Yields the name and the line of each tool in a list of ours."""
    for found in _LISTED.finditer(text):
        yield found[1], found[2] or ""


def list_lines(lines: Mapping[str, str], most: int) -> str:
    """Returns one line per tool, by name; without descriptions where they do not fit, and cut where names do not."""
    whole = [f"- {name}: {line}" if line else f"- {name}" for name, line in sorted(lines.items())]
    if sum(map(len, whole)) + len(whole) <= most:
        return "\n".join(whole)
    names = [f"- {name}" for name in sorted(lines)]
    shown, room = list[str](), most
    for index, name in enumerate(names):
        room -= len(name) + 1
        if room < 0:
            left = len(names) - index
            shown.append(f"(and {left} more: LoadTools with a query finds them)")
            break
        shown.append(name)
    return "\n".join(shown)


def find_tools(wanted: str, tools: Iterable[ToolDefinition], most: int) -> list[ToolDefinition]:
    """Returns the tools whose names and descriptions share most words with a query."""
    words = set(_WORD.findall(wanted.lower()))
    scored = list[tuple[int, str, ToolDefinition]]()
    for tool in tools:
        name = set(_WORD.findall(tool.name.lower().replace("_", " ")))
        about = set(_WORD.findall(tool.description.lower()))
        score = 3 * len(words & name) + len(words & about)
        if score:
            scored.append((-score, tool.name, tool))
    return [tool for _, _, tool in sorted(scored, key=lambda one: one[:2])[:most]]


def join_definitions(texts: Sequence[str], most: int) -> tuple[str, list[str]]:
    """Joins definitions while there is room; returns the text and those that did not fit."""
    shown, left, room = list[str](), list[str](), most
    for text in texts:
        room -= len(text) + 2
        (shown if room >= 0 or not shown else left).append(text)
    return "\n\n".join(shown), left
