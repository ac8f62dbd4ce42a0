"""What the embedded model sees of a conversation: the question, what its calls of this turn brought, and the past."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reverie.models.base import Request
from reverie.models.wire import as_object
from reverie.origins import untagged
from reverie.types import JsonObject, Message, Origin, Purpose, TextBlock, ToolUseBlock

_HIT = re.compile(r"^(?P<path>(?:[A-Za-z]:)?[^:\n]+):(?P<line>\d+)[:-](?P<text>.*)$")
_MEMORY = re.compile(r"^## (?P<path>/.+) \((?P<age>saved [^()]+)\)$")
_REMINDER = re.compile(r"<(system-reminder|fork-directive)>.*?</\1>", re.DOTALL)
_LETTER = re.compile(r'^<letter\b[^>]*? from="(?P<sender>[^"]*)"[^>]*>\n[^\n]*\n(?P<text>.*?)\n?</letter>$', re.DOTALL)
_NUMBERED = re.compile(r"^\s*(?P<line>\d+)(?:\t|→|\s\|\s?|:\s?)(?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """A call of this turn and what came of it."""

    tool: str
    input: JsonObject
    text: str
    failed: bool

    def hits(self) -> list[Line]:
        """The lines a search found."""
        found = (_HIT.match(line) for line in self.text.splitlines())
        return [Line(hit["path"], int(hit["line"]), hit["text"]) for hit in found if hit] if not self.failed else []

    def files(self) -> list[str]:
        """The files a search by name found."""
        if self.failed:
            return []
        return [line.strip() for line in self.text.splitlines() if re.fullmatch(r"\s*[^\s:()]+\s*", line)]

    def lines(self) -> list[Line]:
        """The lines of a file that was read."""
        path = str(self.input.get("file_path", ""))
        found = (_NUMBERED.match(line) for line in self.text.splitlines())
        return [Line(path, int(hit["line"]), hit["text"]) for hit in found if hit] if not self.failed else []


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that was put beside the question: its file, how old it is, what it says."""

    file: str
    age: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """`question` is what the user asked last; `done` what was looked up since; `before` who said what until then.

    `is_request`: the question is somebody's who may give orders. Otherwise it is material: it can be looked up, and
    nothing it asks for is done.
    """

    question: str
    done: tuple[Done, ...]
    before: tuple[tuple[str, str], ...]
    recalled: tuple[Recalled, ...] = ()
    letters: tuple[tuple[str, str], ...] = ()
    """What other agents wrote since the question: sender and text."""
    is_request: bool = True


def read_turn(request: Request) -> Turn:
    """Finds the turn a request is in. Only the user asks, and whoever gives an agent its task."""
    told = request.purpose in (Purpose.AGENT, Purpose.SIDE_QUESTION)
    asked = _last_told(request.messages) if told else _last_question(request.messages)
    if asked is None:
        return Turn("", (), ())
    message = request.messages[asked]
    unanswered = Message("user", message.content[: message.said_from])  # said earlier: no request of this turn
    before = tuple(said((*request.messages[:asked], unanswered)))
    since = request.messages[asked:]
    message = Message("user", message.content[message.said_from :])
    spoken = _told(message) if told else [block.text for block in _texts(message) if block.origin.is_users]
    material = [] if told else [untagged(block.text) for block in _texts(message) if _is_material(block)]
    if spoken:
        before = (*before, *(("material", text) for text in material))
    return Turn(
        "\n".join(spoken or material),
        tuple(_done(since)),
        before,
        tuple(_recalled(since)),
        tuple(_letters(since)),
        is_request=bool(spoken),
    )


def said(messages: tuple[Message, ...]) -> Iterator[tuple[str, str]]:
    """Who said what: role and text, without what the session put in. What a compaction left is a `summary`."""
    for message in messages:
        for block in _texts(message):
            if block.origin.is_users or block.origin in (Origin.MODEL, Origin.AGENT):
                yield message.role, block.text
            elif block.origin in (Origin.SUMMARY, Origin.NOTES):
                yield "summary", untagged(block.text)
            elif block.origin.is_given:
                yield "material", untagged(block.text)


def _last_told(messages: tuple[Message, ...]) -> int | None:
    """The message that tells an agent, or somebody asked beside the work, what is wanted."""
    return next((at for at in range(len(messages) - 1, -1, -1) if _told(messages[at])), None)


def _told(message: Message) -> list[str]:
    """What is left of a message's texts when the reminders in them are taken out; of several, the last."""
    if message.role != "user":
        return []
    given = (block for block in _texts(message) if block.origin.is_users or block.origin in (Origin.AGENT, Origin.CODE))
    texts = [untagged(_REMINDER.sub("", block.text)).strip() for block in given]
    return [text for text in texts if text][-1:]


def _last_question(messages: tuple[Message, ...]) -> int | None:
    """The last message of the user: with words of their own, or with nothing but material."""
    users = (at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user")
    return next((at for at in users if any(block.origin.is_given for block in messages[at].content)), None)


def _is_material(block: TextBlock) -> bool:
    return block.origin.is_given and not block.origin.is_users


def _texts(message: Message) -> list[TextBlock]:
    return [block for block in message.content if isinstance(block, TextBlock) and block.text.strip()]


def _letters(messages: tuple[Message, ...]) -> Iterator[tuple[str, str]]:
    for message in messages:
        for block in message.content:
            if isinstance(block, TextBlock) and block.origin is Origin.AGENT and (found := _LETTER.match(block.text)):
                yield found["sender"], found["text"].strip()


def _recalled(messages: tuple[Message, ...]) -> Iterator[Recalled]:
    """The memories in the reminders of this turn, without their frontmatter."""
    for message in messages:
        for block in message.content:
            if isinstance(block, TextBlock) and block.origin is Origin.RECALLED:
                yield from _memories(block.text.splitlines())


def _memories(lines: list[str]) -> Iterator[Recalled]:
    heads = [(number, head) for number, line in enumerate(lines) if (head := _MEMORY.match(line))]
    ends = [*(number for number, _ in heads[1:]), len(lines)]
    for (number, head), end in zip(heads, ends, strict=True):
        own = lines[number + 1 : end]
        fences = [at for at, line in enumerate(own) if line.strip() == "---"]
        own = own[fences[1] + 1 :] if len(fences) > 1 else own
        said = tuple(line.strip() for line in own if line.strip() and not line.startswith(("<", "[cut")))
        yield Recalled(head["path"].rpartition("/")[2], head["age"], said)


def done_calls(messages: tuple[Message, ...]) -> tuple[Done, ...]:
    """Every call in these messages that has its result, in order."""
    return tuple(_done(messages))


def _done(messages: tuple[Message, ...]) -> Iterator[Done]:
    calls: dict[str, ToolUseBlock] = {}
    for message in messages:
        calls |= {call.id: call for call in message.tool_uses}
        for result in message.tool_results:
            call = calls.get(result.tool_use_id)
            if call is not None:
                yield Done(call.name, as_object(call.input), result.text, bool(result.is_error))
