"""What the offline mind sees of a conversation: the question, the results of this turn's calls, and the past.

It decides who may give orders: the user in the message of this turn, and the task that an agent was started with. A
message of an agent, a pipe, a paste, and a message that an earlier turn left unanswered never give orders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from reverie.models.base import Request
from reverie.models.wire import as_object
from reverie.origins import strip_tags
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.types import Block, JsonObject, Message, Origin, Purpose, TextBlock, ToolUseBlock

_HIT = late(r"^(?P<path>(?:[A-Za-z]:)?[^:\n]+):(?P<line>\d+)[:-](?P<text>.*)$")
_MEMORY = late(r"^## (?P<path>/.+) \((?P<age>saved [^();]+)(?:; \w+)*\)$")
_LETTER = late(r'^<letter\b(?>[^>]*? from="(?P<sender>[^"]*)")[^>]*+>\n[^\n]*\n(?P<text>.*?)\n?</letter>$', re.DOTALL)
_TASKS = ("<agent-text>", "<reverie-task>")
_NUMBERED = late(r"^\s*(?P<line>\d+)(?:\t|→|\s\|\s?|:\s?)(?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """A call of this turn and its result."""

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
    """A memory that was added to the question: its file, its age, its text."""

    file: str
    age: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """`question` is the last question of the user; `done` the lookups since; `before` who said what until then.

    `is_request`: the question is from somebody who may give orders. Otherwise it is material: it can be looked up, but
    its orders are not followed. `is_over`: it was answered or dropped, and something else began this turn.
    """

    question: str
    done: tuple[Done, ...]
    before: tuple[tuple[str, str], ...]
    recalled: tuple[Recalled, ...] = ()
    letters: tuple[tuple[str, str], ...] = ()
    """What other agents wrote since the question: sender and text."""
    is_request: bool = True
    is_over: bool = False

    @property
    def may_act(self) -> bool:
        """Whether more is allowed than looking things up."""
        return self.is_request and not self.is_over


def read_turn(request: Request) -> Turn:
    """Finds the turn of a request. Only the user asks, and whoever gives an agent its task."""
    messages = request.messages
    asked = _last_asked(messages, request.purpose)
    if asked is None:
        return Turn("", (), (), is_request=False)
    at, number = asked
    records = messages[at].records
    earlier = Message("user", tuple(block for record in records[:number] for block in record))
    later = Message("user", tuple(block for record in records[number + 1 :] for block in record))
    since = (replace(messages[at], content=(*records[number], *later.content)), *messages[at + 1 :])
    answered = [n for n, message in enumerate(since) if message.role == "assistant" and not message.tool_uses]
    unread = since[answered[-1] + 1 :] if answered else ()
    if request.purpose is Purpose.AGENT and (letters := list(_letters(unread))):
        before = (*read_said(messages[: len(messages) - len(unread)]),)
        return Turn("\n".join(text for _, text in letters), tuple(_done(unread)), before, is_request=False)
    spoken, material = _asked_in(records[number], request.purpose)
    before = tuple(read_said((*messages[:at], earlier)))
    if spoken:
        before = (*before, *(("material", text) for text in material))
    return Turn(
        "\n".join(spoken or material),
        tuple(_done(since)),
        before,
        tuple(_recalled(since)),
        tuple(_letters(since)),
        is_request=bool(spoken),
        is_over=bool(answered) or any(_letters((later,))),
    )


def read_said(messages: tuple[Message, ...]) -> Iterator[tuple[str, str]]:
    """Reads who said what: role and text, without injected text. What a compaction left is a `summary`."""
    for message in messages:
        for block in _texts(message):
            if block.origin.is_users or block.origin in (Origin.MODEL, Origin.AGENT):
                yield message.role, block.text
            elif block.origin in (Origin.SUMMARY, Origin.NOTES):
                yield "summary", strip_tags(block.text)
            elif block.origin.is_given:
                yield "material", strip_tags(block.text)


def _last_asked(messages: tuple[Message, ...], purpose: Purpose) -> tuple[int, int] | None:
    """The last record with a question: the number of its message, and its number in that message."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role != "user":
            continue
        records = messages[at].records
        for number in range(len(records) - 1, -1, -1):
            if any(_asked_in(records[number], purpose)):
                return at, number
    return None


def _asked_in(record: tuple[Block, ...], purpose: Purpose) -> tuple[list[str], list[str]]:
    """What a record asks for, and its material. An agent's order is its task, not a message of another agent."""
    texts = [block for block in record if isinstance(block, TextBlock) and block.text.strip()]
    if purpose is Purpose.AGENT:
        return [strip_tags(block.text) for block in texts if _is_task(block)][-1:], []
    if purpose is Purpose.SIDE_QUESTION:
        tasks = [block for block in texts if _is_task(block)]
        own = [block.text for block in texts if block.origin.is_users]
        return (own or [strip_tags(block.text) for block in tasks])[-1:] if tasks else [], []
    spoken = [block.text for block in texts if block.origin.is_users]
    return spoken, [strip_tags(block.text) for block in texts if block.origin.is_given and not block.origin.is_users]


def _is_task(block: TextBlock) -> bool:
    """Whether a block is the task of an agent, or what Reverie itself asks about a conversation."""
    return block.origin in (Origin.AGENT, Origin.CODE) and block.text.startswith(_TASKS)


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
    for (number, head), end in zip(heads, ends, strict=False):
        own = lines[number + 1 : end]
        quoted = [line[2:] for line in own if line.startswith(">")]
        own = quoted or own  # reminders of older sessions are not quoted
        fences = [at for at, line in enumerate(own) if line.strip() == "---"]
        own = own[fences[1] + 1 :] if len(fences) > 1 else own
        said = tuple(line.strip() for line in own if line.strip() and not line.startswith(("<", "[cut")))
        yield Recalled(head["path"].rpartition("/")[2], head["age"], said)


def read_done_calls(messages: tuple[Message, ...]) -> tuple[Done, ...]:
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
