"""Recorded sessions as a list of rounds: what entered the conversation, when it was asked, what the model answered; and
what every replayed session is given alike: a prompt of realistic size, a window, thresholds.

Reads Claude Code's transcripts and ours. Compactions that happened while recording are left out: the raw messages on
both sides of them are replayed, their summaries are not. Side chains and answers that were errors are left out too. The
prompt stands in for the one that was recorded, which transcripts do not hold. Its size matters, because it is read with
every request and no policy can save it; the text does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from reverie.errors import UserError
from reverie.lab.scratch import recordings
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.window import OUTPUT_RESERVE, Thresholds, thresholds
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import SessionHeader
from reverie.types import JsonObject, Message, Record, TextBlock, ToolResultBlock

DEFAULT_MODEL = "claude-opus-4-5"
_SYNTHETIC = "<synthetic>"
_NO_RESULT = "The call was interrupted."
_GO_ON = "Go on."


@dataclass(frozen=True, slots=True)
class Round:
    """One request of a recorded session. `at` is when it was made, in seconds; `entered` came before it."""

    at: float
    entered: tuple[Message, ...]
    response: Message


@dataclass(frozen=True, slots=True)
class Recorded:
    """A session to replay. `model` answered most of it."""

    name: str
    model: str
    rounds: tuple[Round, ...]


def load(paths: Sequence[Path]) -> list[Recorded]:
    """The sessions of these files, and of every *.jsonl in these folders. UserError if there is none."""
    sessions = [session for path in recordings(paths) if (session := load_session(path)).rounds]
    if not sessions:
        shown = ", ".join(map(str, paths)) or "nothing"
        raise UserError(f"There is no recorded answer in {shown}; name transcripts (*.jsonl) with answers in them.")
    return sessions


def load_session(path: Path) -> Recorded:
    """One transcript, round by round."""
    rounds = tuple(_rounds(conversation(read_records(path).records)))
    models = Counter(str(each.response.fields.get("model") or DEFAULT_MODEL) for each in rounds)
    return Recorded(path.stem, models.most_common(1)[0][0] if models else DEFAULT_MODEL, rounds)


def _rounds(records: Iterable[Record]) -> Iterator[Round]:
    """Records split from one response are one answer; results recorded between them belong to the next request."""
    clock = 0.0
    entered, current = list[Message](), None
    for record in records:
        message = record.message
        if message is None or _left_out(record, message):
            continue
        before, clock = clock, max(clock, _seconds(record.timestamp))
        if message.role == "user":
            entered.append(message)
        elif current is not None and message.id is not None and message.id == current.response.id:
            whole = Message("assistant", current.response.content + message.content, fields=current.response.fields)
            current = Round(current.at, current.entered, whole)
        else:
            if current is not None:
                yield current
            # A request is made when the last thing it carries was there, not when its answer was.
            current = Round(before or clock, tuple(entered) or _gone_on(current), message)
            entered = []
    if current is not None:
        yield current


def _gone_on(before: Round | None) -> tuple[Message, ...]:
    """What stands between two answers where nothing was recorded: the session was compacted there, or cut short."""
    calls = before.response.tool_uses if before is not None else ()
    answers = tuple(ToolResultBlock(call.id, _NO_RESULT, is_error=True) for call in calls)
    return (Message("user", answers or (TextBlock(_GO_ON),)),)


def _left_out(record: Record, message: Message) -> bool:
    if record.data.get("isCompactSummary") or record.data.get("isApiErrorMessage"):
        return True
    return message.role == "assistant" and message.fields.get("model") == _SYNTHETIC


def _seconds(timestamp: str | None) -> float:
    """A record's time; 0 where it has none that can be read, so that it counts as no pause."""
    try:
        return datetime.fromisoformat(timestamp or "").timestamp()
    except ValueError:
        return 0.0


PREFIX_TOKENS = 8_000
"""System prompt, instruction files and tool definitions together: what an agent with a dozen tools sends."""
WINDOW = 200_000
"""The window thresholds are set for, unless another is asked for."""
FOLDER = Path("/session/tool-results")
"""Where the sessions say that they keep their files; nothing is written there."""
TTL = "5m"
NEVER_FULL = 100_000_000
"""The window requests are billed in: no policy is refused, so that all are compared on the same messages."""

_TOOLS = ("Read", "Bash", "Grep", "Glob", "Edit", "Write", "WebFetch", "WebSearch", "Agent", "SendMessage", "Skill")
_SENTENCE = "Work step by step, look before you change anything, and say what you did. "
_TOOL_TOKENS = 250


@dataclass(frozen=True, slots=True)
class Setting:
    """One session's surroundings."""

    header: SessionHeader
    facts: ModelFacts
    limits: Thresholds

    @staticmethod
    def of(model: str, prefix_tokens: int = PREFIX_TOKENS, window: int = WINDOW) -> Setting:
        facts = Catalogue.load().facts(model)
        tools = tuple(_tool(name) for name in _TOOLS) if prefix_tokens else ()
        system = _text(4 * (prefix_tokens - _TOOL_TOKENS * len(tools)))
        header = SessionHeader(model=f"anthropic:{model}", system=(system,) if system else (), tools=tools, ttl=TTL)
        return Setting(header, facts, thresholds(window, facts.max_output))


def check_room(prefix_tokens: int, window: int) -> None:
    """UserError if the prompt alone would fill the window."""
    limit = thresholds(window, OUTPUT_RESERVE).autocompact
    if 2 * prefix_tokens > limit:
        raise UserError(
            f"A prefix of {prefix_tokens:,} tokens leaves too little of a window of {window:,}, which is compacted at "
            f"{limit:,}: lower --prefix-tokens or raise --window."
        )


def _tool(name: str) -> JsonObject:
    schema = {"type": "object", "properties": {"input": {"type": "string"}}}
    return {"name": name, "description": _text(3 * _TOOL_TOKENS - 110), "input_schema": schema}


def _text(size: int) -> str:
    return (_SENTENCE * (size // len(_SENTENCE) + 1))[: max(0, size)]
