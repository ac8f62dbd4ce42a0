"""Writes a request as text for a program that cannot return calls of our tools, and reads the answer.

Everything that others wrote is inside JSON strings, so no text can imitate a message, a result or the answer. System
and tools come first and each message is one line, so that a request begins with the text of the request before it.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from typing import Literal, TypeAlias, cast

from reverie.models import wire
from reverie.models.base import UNPARSED_INPUT, Request
from reverie.models.forced import is_forced, read_object
from reverie.models.wire import as_object, read_input
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.types import Block, Json, JsonObject, Origin, TextBlock, ToolUseBlock

InputForm: TypeAlias = Literal["object", "text"]
"""How a call has its input: as an object, or as a text with JSON, for programs whose schemas must be closed."""

_INPUTS = {
    "object": "a JSON object that fits the tool's schema",
    "text": "a text with the JSON of an object that fits the tool's schema",
}
_HERE = "reverie.models.programs"
_SECRET = secrets.token_bytes(32)
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_FENCED = re.compile(r"```[a-z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_MEDIA = ("image", "document")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


@dataclass(frozen=True, slots=True)
class Frame:
    """A request as text: what comes first, one line per message, and what to do now.

    `schema` is the form of the answer, if it has one. `key` must be in an answer that the program does not check: texts
    of others cannot know it, so calls that the answer only quotes are not made.
    """

    system: str
    lines: tuple[str, ...]
    now: str
    schema: JsonObject | None
    calls: bool
    key: str
    digest: str

    @property
    def prompt(self) -> str:
        return "\n".join((*self.lines, "", self.now))


def frame(request: Request, *, form: InputForm = "object", keyed: bool = False) -> Frame:
    """The text of a request. `keyed`: the program does not know schemas, so the answer has a key."""
    body = wire.body(request)
    lines = tuple(_line(_show(message)) for message in cast("list[JsonObject]", body["messages"]))
    digest = hashlib.blake2s("\n".join(lines).encode(), key=_SECRET, digest_size=8).hexdigest()
    system = [*request.system, render(_HERE, "conversation.md")]
    tools: list[JsonObject] = body.get("tools") or []
    schema, key = request.output_schema, ""
    if tools:
        named = "\n".join(_line(tool) for tool in tools)
        system.append(render(_HERE, "tools.md", {"tools": named, "input": _INPUTS[form]}))
        now, schema = _ask_for_calls(request), _calls_schema(form)
        if keyed:
            key = digest
            now += f' The object also has `"key": "{key}"`.'
    elif schema is not None:
        now = render(_HERE, "next_value.md", {"schema": _line(schema)})
    else:
        now = render(_HERE, "next_text.md")
    return Frame("\n\n".join(system), lines, now, schema, bool(tools), key, digest)


def read_answer(given: str | JsonObject, framed: Frame) -> tuple[Block, ...]:
    """The blocks of an answer: a text, or the JSON object if the program has checked it. Prose is an answer too."""
    if not framed.calls:
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return _text_blocks(text)
    found = _find_object(given, framed.key) if isinstance(given, str) else given
    if found is None:
        return _text_blocks(cast(str, given))
    calls: list[Block] = []
    for call in cast("list[Json]", found.get("calls") or []):
        name = as_object(call).get("name")
        if isinstance(name, str) and name.strip():
            calls.append(ToolUseBlock(f"call_{framed.digest}_{len(calls)}", name.strip(), _input(call.get("input"))))
    return (*_text_blocks(found.get("text")), *calls)


def _ask_for_calls(request: Request) -> str:
    now = render(_HERE, "next_call.md")
    choice = as_object(request.tool_choice)
    if is_forced(choice):
        now += f" It must call the tool {choice['name']}." if choice.get("name") else " It must call a tool."
    if choice.get("type") == "none":
        now += " It must not call a tool."
    if request.output_schema is not None:
        now += f" If it makes no call, `text` is JSON of this schema: {_line(request.output_schema)}"
    return now


def _calls_schema(form: InputForm) -> JsonObject:
    call = {"name": {"type": "string"}, "input": {"type": "string" if form == "text" else "object"}}
    calls = {"type": "array", "items": _closed(call)}
    return _closed({"text": {"type": "string"}, "calls": calls})


def _closed(properties: JsonObject) -> JsonObject:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _line(value: Json) -> str:
    """One line of JSON. Characters that some readers take for a line break, and half surrogates, are escaped."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", _encode(value))


def _show(message: JsonObject) -> JsonObject:
    content = cast("Json", message.get("content"))
    parts = cast("list[Json]", content) if isinstance(content, list) else [{"type": "text", "text": content}]
    return {"role": message.get("role"), "content": [_show_part(part) for part in parts if not _is_thought(part)]}


def _is_thought(part: Json) -> bool:
    return as_object(part).get("type") in ("thinking", "redacted_thinking")


def _show_part(part: Json) -> Json:
    given = as_object(part)
    if given.get("type") in _MEDIA:
        return {"type": "text", "text": f"(The {given['type']} here cannot be shown.)"}
    shown = {key: value for key, value in given.items() if key != "cache_control"} or part
    if isinstance(inner := given.get("content"), list):
        return {**as_object(shown), "content": [_show_part(each) for each in cast("list[Json]", inner)]}
    return shown


def _find_object(text: str, key: str) -> JsonObject | None:
    """The object of an answer. With a key it may be anywhere in the text; without one, it is all of it."""
    whole = text.strip()
    fenced = [match[1] for match in _FENCED.finditer(whole)]
    candidates = [whole]
    if key:
        candidates += [*reversed(fenced), whole[whole.find("{") : whole.rfind("}") + 1]]
    elif len(fenced) == 1 and whole.startswith("```") and whole.endswith("```"):
        candidates += fenced
    for candidate in candidates:
        found = read_object(candidate)
        if found is not None and _is_answer(found) and (not key or found.get("key") == key):
            return found
    return None


def _is_answer(found: JsonObject) -> bool:
    calls, text = found.get("calls", []), found.get("text", "")
    return found.keys() <= {"text", "calls", "key"} and isinstance(calls, list | None) and isinstance(text, str | None)


def _input(given: Json) -> JsonObject:
    if isinstance(given, str):
        return read_input(given)
    found = as_object(given)
    return found if found or not given else {UNPARSED_INPUT: json.dumps(given)}


def _text_blocks(text: Json) -> tuple[Block, ...]:
    return (TextBlock(text, Origin.MODEL),) if isinstance(text, str) and text.strip() else ()
