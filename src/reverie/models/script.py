"""Plays a script: finds the reply to a request, and the fault that comes instead of it.

The choice only depends on the request (the number of assistant messages, the last message), so a process that was
killed can go on. Only faults that happen a number of times are counted. The caller acts on faults and delays.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeAlias, assert_never, cast

from reverie.errors import UserError
from reverie.models import script_syntax as syntax
from reverie.models.base import UNPARSED_INPUT
from reverie.models.forced import fit_schema, force_call, is_forced
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.types import JsonObject

ApiMessage: TypeAlias = Mapping[str, Any]

CLOSING = "That is the end of the script."
"""The reply after the end of a script."""

_FOREVER = float("inf")
_PROSE = "The quick brown fox jumps over the lazy dog while the keeper of the lighthouse writes down the hour. "


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One reply: content blocks in the form of the API, and how they are sent.

    A malformed tool input is `{"_unparsed": text}`: a server sends the text, a client gets the object. `wait_s` passes
    before the first chunk, `delay_s` before each one. `usage` replaces the reported usage.
    """

    content: list[JsonObject]
    stop_reason: str
    fault: syntax.Fault | None = None
    delay_s: float = 0.0
    wait_s: float = 0.0
    usage: JsonObject | None = None

    def fitted(
        self,
        messages: Sequence[ApiMessage],
        tools: Sequence[Mapping[str, Any]],
        choice: Mapping[str, Any] | None,
        schema: Mapping[str, Any] | None = None,
    ) -> ScriptedReply:
        """The reply in the form that the request fixes: a forced call, or JSON of a schema."""
        if self.stop_reason not in ("end_turn", "tool_use"):
            return self
        if is_forced(choice) and tools:
            return replace(self, content=force_call(self.content, choice, tools, messages), stop_reason="tool_use")
        if schema is None:
            return self
        said = self.content if tools else [block for block in self.content if block["type"] != "tool_use"]
        made = fit_schema(said, dict(schema))
        calls = any(block["type"] == "tool_use" for block in made)
        return replace(self, content=made, stop_reason="tool_use" if calls else "end_turn")


class Script:
    """A parsed script. One instance may serve many conversations at once."""

    def __init__(self, sections: Mapping[str, syntax.ScriptSection], name: str) -> None:
        self.name = name
        self._sections = sections
        self._struck: Counter[tuple[str, int, int, int]] = Counter()

    @staticmethod
    def parse(text: str, name: str = "script") -> Script:
        """Reads a script. A mistake in it is a `UserError` with `name` and the line."""
        return Script(syntax.parse_sections(text, name), name)

    @staticmethod
    def load(path: Path | str) -> Script:
        """Reads a script file."""
        try:
            text = read_regular_text(Path(path))
        except OSError as error:
            raise UserError(f"The script {path} cannot be read: {error.strerror or error}.") from error
        except UnicodeDecodeError as error:
            raise UserError(f"The script {path} is not UTF-8 text: {error}.") from error
        return Script.parse(text, str(path))

    def reply(self, messages: Sequence[ApiMessage], *, purpose: str = "main") -> ScriptedReply:
        """The reply to a request with these messages; after the end of the script a closing sentence."""
        section = self._sections.get(purpose) or self._sections.get(syntax.ANY_PURPOSE) or syntax.ScriptSection()
        position = _position(messages, purpose)
        found = _match(section, messages) or _at(section.steps, position)
        reply, loop = found or (syntax.Reply([syntax.Say(CLOSING)]), None)
        scene = _Scene(messages, purpose, position, loop or 1)
        content = [block for part in reply.parts for block in scene.blocks(part)]
        calls = any(block["type"] == "tool_use" for block in content)
        return ScriptedReply(
            content=content,
            stop_reason=reply.stop or ("tool_use" if calls else "end_turn"),
            fault=self._fault(reply, purpose, position),
            delay_s=reply.slow_s,
            wait_s=reply.wait_s,
            usage=reply.usage,
        )

    def _fault(self, reply: syntax.Reply, purpose: str, position: int) -> syntax.Fault | None:
        """The first fault at this place that has not happened often enough yet."""
        for index, rule in enumerate(reply.faults):
            key = (purpose, position, reply.line, index)
            if rule.times is None or self._struck[key] < rule.times:
                self._struck[key] += 1
                return rule
        return None


class _Scene:
    """Fills in a reply: the values of its placeholders, and the ids of its tool calls."""

    def __init__(self, messages: Sequence[ApiMessage], purpose: str, position: int, loop: int) -> None:
        self._messages = messages
        self._purpose = purpose
        self._position = position
        self._loop = loop
        self._calls = 0

    def blocks(self, part: syntax.Part) -> list[JsonObject]:
        match part:
            case syntax.Say(text):
                return [{"type": "text", "text": self._fill(text)}]
            case syntax.Think(text):
                thought = self._fill(text)
                return [{"type": "thinking", "thinking": thought, "signature": f"scripted-{_digest(thought)}"}]
            case syntax.Fill(characters):
                return [{"type": "text", "text": (_PROSE * (characters // len(_PROSE) + 1))[:characters]}]
            case syntax.Call():
                return [self._call(part, i) for i in range(1, part.times + 1)]
            case _:
                assert_never(part)

    def _call(self, call: syntax.Call, i: int) -> JsonObject:
        self._calls += 1
        if call.malformed:
            given: JsonObject = {UNPARSED_INPUT: self._fill(call.input, i)}
        else:
            given = load_json(self._fill(call.input, i, quoted=True))
        return {"type": "tool_use", "id": self._id(), "name": call.name, "input": given}

    def _id(self) -> str:
        """An id from purpose and position. The digest keeps it unique after a compaction, when positions restart."""
        said = _text_and_results(self._messages[0]) if self._messages else ""
        digest = _digest(f"{len(self._messages)}\0{said}\0{self._value('text')}\0{self._value('result')}")
        return f"toolu_{self._purpose}_{self._position + 1}_{self._calls}_{digest}"

    def _fill(self, text: str, i: int = 1, *, quoted: bool = False) -> str:
        if "{" not in text:
            return text

        def put(found: re.Match[str]) -> str:
            value = str(i) if found[1] == "i" else self._value(found[1])
            return json.dumps(value, ensure_ascii=False)[1:-1] if quoted else value

        return syntax.PLACEHOLDER.sub(put, text)

    def _value(self, name: str) -> str:
        match name:
            case "round":
                return str(self._position + 1)
            case "loop":
                return str(self._loop)
            case "turn":
                return str(sum(bool(_text(message)) for message in self._messages if message["role"] == "user"))
            case _:
                read = _text if name == "text" else _results
                texts = (read(message) for message in reversed(self._messages) if message["role"] == "user")
                return next((text for text in texts if text), "")


def _position(messages: Sequence[ApiMessage], purpose: str) -> int:
    """How many replies this thread has had.

    A fork's request begins with its parent's answers. Its own begin at the first one with a tool call of its purpose.
    """
    # An answer that was recorded in several messages is still one.
    answers = [list(group) for role, group in groupby(messages, key=lambda each: each["role"]) if role == "assistant"]
    if purpose == "main":
        return len(answers)
    own = f"toolu_{purpose}_"
    for index, answer in enumerate(answers):
        if any(str(block.get("id", "")).startswith(own) for message in answer for block in _blocks(message)):
            return len(answers) - index
    return 0


def _match(section: syntax.ScriptSection, messages: Sequence[ApiMessage]) -> tuple[syntax.Reply, int | None] | None:
    """The reply of the matcher that fits the last message, or that began earlier and still has replies."""
    if not section.whens:
        return None
    lengths = [_length(when.body) for when in section.whens]
    for ago, text in enumerate(islice(_user_texts(messages), int(min(max(lengths), len(messages) + 1)))):
        for when, length in zip(section.whens, lengths, strict=True):
            if ago < length and when.pattern.search(text):
                return _at(when.body, ago)
    return None


def _user_texts(messages: Sequence[ApiMessage]) -> list[str]:
    groups: list[list[str]] = [[]]
    last = "user"
    for message in reversed(messages):
        if message["role"] != "assistant":
            groups[-1].append(_text_and_results(message))
        elif last != "assistant":
            groups.append([])
        last = message["role"]
    return ["\n".join(reversed(group)) for group in groups]


def _at(steps: Sequence[syntax.Step], index: int) -> tuple[syntax.Reply, int | None] | None:
    """The reply at this position and the pass of the innermost repeat around it, if any; None after the end."""
    for step in steps:
        if isinstance(step, syntax.Reply):
            if index == 0:
                return step, None
            index -= 1
            continue
        once, whole = _length(step.body), _length((step,))
        if index < whole:
            past, rest = (0, index) if once == _FOREVER else divmod(index, int(once))
            found = _at(step.body, rest)
            return found and (found[0], found[1] or past + 1)
        index -= int(whole)
    return None


def _length(steps: Sequence[syntax.Step]) -> float:
    total: float = 0
    for step in steps:
        if isinstance(step, syntax.Reply):
            total += 1
        else:
            total += _FOREVER if step.times is None else step.times * _length(step.body)
    return total


def _blocks(message: ApiMessage) -> list[Mapping[str, Any]]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [cast(Mapping[str, Any], block) for block in content if isinstance(block, Mapping)]


def _text(message: ApiMessage) -> str:
    """The text of a message without reminders; all of it if there are only reminders."""
    texts = [str(block["text"]) for block in _blocks(message) if block.get("type") == "text"]
    return "\n".join([text for text in texts if not text.startswith("<system-reminder>")] or texts)


def _results(message: ApiMessage) -> str:
    parts: list[str] = []
    for block in _blocks(message):
        if block.get("type") == "tool_result":
            content = block.get("content") or ""
            inner = {"content": content}
            parts.append(content if isinstance(content, str) else _text(inner))
    return "\n".join(parts)


def _text_and_results(message: ApiMessage) -> str:
    return "\n".join(part for part in (_results(message), _text(message)) if part)


def _digest(text: str) -> str:
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
