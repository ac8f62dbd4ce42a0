"""The five tools as a client sees them: names, descriptions, schemas. Every byte is paid for in every session, so a
test limits them. Also checks what a client sends. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from reverie.errors import UserError
from reverie.memory.taxonomy import MemoryType
from reverie.quick import dataclass
from reverie.types import JsonObject

MOST_CHARACTERS: Final = 20_000
"""Of one argument: a memory is short, and so is a question."""
_NAME: Final = "A name such as `feedback_use_pnpm.md`"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool. `reads` says that it changes nothing."""

    name: str
    title: str
    description: str
    properties: Mapping[str, JsonObject]
    required: tuple[str, ...] = ()
    reads: bool = True

    @property
    def schema(self) -> JsonObject:
        schema: JsonObject = {"type": "object", "properties": {**self.properties}, "additionalProperties": False}
        return {**schema, "required": list(self.required)} if self.required else schema


TOOLS: Final = {
    spec.name: spec
    for spec in (
        ToolSpec(
            "recall",
            "Recall memories",
            "Search the user's long-term memory from earlier sessions: preferences, rules, decisions, corrections, "
            "people, dates, facts about this project. Call it with your first reading calls, before you answer or "
            "change anything, when the result could depend on this user or project: before choosing a tool, style, "
            "name, place or command, and when the user refers to earlier work or asks what was said or decided. It is "
            "quick and free; an empty result is fine. Not for general knowledge, arithmetic or text in the prompt "
            "alone.",
            {
                "query": {
                    "type": "string",
                    "description": "The user's request in their own words, and the topic if they do not name it",
                }
            },
            ("query",),
        ),
        ToolSpec(
            "remember",
            "Remember",
            "Save one lasting fact for later sessions. Call it when the user says to remember something, states a "
            "preference or rule, corrects you, or decides something. Write one or two plain sentences that can be "
            "understood alone, with the reason and real dates. Never secrets, steps of this task, or what the code "
            "says. The result says whether it was stored or waits for the user.",
            {
                "text": {"type": "string"},
                "type": {
                    "enum": [str(one) for one in MemoryType],
                    "description": "user: about them; feedback: how to work; project: current work; reference: where "
                    "something is",
                },
            },
            ("text",),
            reads=False,
        ),
        ToolSpec(
            "forget",
            "Forget a memory",
            "Remove a memory that the user wants gone or that is wrong. To correct one, use `remember`. Tell the user "
            "what was removed; it can be undone.",
            {"name": {"type": "string", "description": f"{_NAME}, or words that only this memory has"}},
            ("name",),
            reads=False,
        ),
        ToolSpec(
            "read",
            "Read a memory",
            "One memory in full with its age and evidence; without `name`, the list of all memories.",
            {"name": {"type": "string", "description": _NAME}},
        ),
        ToolSpec(
            "history",
            "History of memory",
            "Who changed memory, when and why, newest first; with `name`, of one memory.",
            {
                "name": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "default 10"},
            },
        ),
    )
}

_KINDS: Final[Mapping[str, tuple[type, str]]] = {"string": (str, "a text"), "integer": (int, "a whole number")}


def check_arguments(spec: ToolSpec, given: object) -> dict[str, Any]:
    """The arguments of a call. Raises `UserError` with one sentence if they do not fit the schema."""
    if given is not None and not isinstance(given, dict):
        raise UserError(f"`{spec.name}` takes an object with arguments.")
    found = cast("dict[str, Any]", given or {})
    if unknown := [name for name in found if name not in spec.properties]:
        known = ", ".join(f"`{name}`" for name in spec.properties)
        raise UserError(f"`{spec.name}` has no argument {unknown[0][:40]!r}; there are: {known}.")
    found = {name: value for name, value in found.items() if value is not None}
    for name in spec.required:
        if name not in found or (isinstance(found[name], str) and not found[name].strip()):
            raise UserError(f"`{spec.name}` needs `{name}`, a text that is not empty.")
    for name, value in found.items():
        _check(spec.name, name, value, spec.properties[name])
    return found


def _check(tool: str, name: str, value: Any, schema: JsonObject) -> None:
    kind, called = _KINDS[str(schema.get("type", "string"))]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UserError(f"`{name}` of `{tool}` is {type(value).__name__}; give {called}.")
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        raise UserError(f"`{name}` has {len(value):,} characters; give at most {MOST_CHARACTERS:,}.")
    if "enum" in schema and value not in cast("list[str]", schema["enum"]):
        known = ", ".join(cast("list[str]", schema["enum"]))
        raise UserError(f"{str(value)[:40]!r} is not a {name} of memory; there are {known}.")
    if isinstance(value, int) and not cast("int", schema["minimum"]) <= value <= cast("int", schema["maximum"]):
        raise UserError(f"`{name}` is {value}; give a number from {schema['minimum']} to {schema['maximum']}.")
