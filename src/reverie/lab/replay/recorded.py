"""Recorded sessions as a list of rounds, and what all replays have in common: a system prompt, a window, thresholds.

Reads transcripts of Reverie, Claude Code, Codex and pi, without side chains, failed answers and the summaries of
compactions. Transcripts have no system prompt, so a text of realistic size replaces it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from reverie.errors import UserError
from reverie.lab.recordings import find_recordings
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.window import OUTPUT_RESERVE, Thresholds, thresholds
from reverie.moments import parse_time
from reverie.quick import dataclass
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_files import read_session
from reverie.types import JsonObject, Message, Record, TextBlock, ToolResultBlock

DEFAULT_MODEL = "claude-opus-4-5"
LINE_NUMBER = re.compile(r"^[^\S\n]*\d+(?:→|\t)", re.MULTILINE)
"""What Read puts before every line."""
_SYNTHETIC = "<synthetic>"
_NO_RESULT = "The call was interrupted."
_GO_ON = "Go on."


@dataclass(frozen=True, slots=True)
class Round:
    """One request of a recorded session. `at`: its time in seconds; `entered`: the messages before it."""

    at: float
    entered: tuple[Message, ...]
    response: Message


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A session to replay. `model`: the one with the most answers."""

    name: str
    model: str
    rounds: tuple[Round, ...]


def load(paths: Sequence[Path]) -> list[RecordedSession]:
    """The sessions in these files and folders (*.jsonl). UserError if there is none."""
    sessions = [session for path in find_recordings(paths) if (session := load_session(path)).rounds]
    if not sessions:
        shown = ", ".join(map(str, paths)) or "nothing"
        raise UserError(f"There is no recorded answer in {shown}; name transcripts (*.jsonl) with answers in them.")
    return sessions


def load_session(path: Path) -> RecordedSession:
    """The rounds of one transcript."""
    rounds = tuple(_rounds(conversation(read_session(path).records)))
    models = Counter(str(each.response.fields.get("model") or DEFAULT_MODEL) for each in rounds)
    return RecordedSession(path.stem, models.most_common(1)[0][0] if models else DEFAULT_MODEL, rounds)


def _rounds(records: Iterable[Record]) -> Iterator[Round]:
    """Joins the records of one response; results between them belong to the next request."""
    clock, calls = 0.0, set[str]()
    entered, current = list[Message](), None
    for record in records:
        message = record.message
        if message is None or _is_left_out(record, message):
            continue
        before, clock = clock, max(clock, _seconds(record.timestamp))
        if message.role == "user":  # a result without its call cannot be sent
            blocks = tuple(b for b in message.content if not isinstance(b, ToolResultBlock) or b.tool_use_id in calls)
            entered += [replace(message, content=blocks)] if blocks else []
            continue
        calls |= {call.id for call in message.tool_uses}
        if current is not None and message.id is not None and message.id == current.response.id:
            whole = Message("assistant", current.response.content + message.content, fields=current.response.fields)
            current = Round(current.at, current.entered, whole)
        else:
            if current is not None:
                yield current
            # A request is made when its last message is there, not when its answer is.
            current = Round(before or clock, tuple(entered) or _fill_gap(current), message)
            entered = []
    if current is not None:
        yield current


def _fill_gap(before: Round | None) -> tuple[Message, ...]:
    """The message between two answers if none was recorded, because of a compaction or an interruption."""
    calls = before.response.tool_uses if before is not None else ()
    answers = tuple(ToolResultBlock(call.id, _NO_RESULT, is_error=True) for call in calls)
    return (Message("user", answers or (TextBlock(_GO_ON),)),)


def _is_left_out(record: Record, message: Message) -> bool:
    if record.data.get("isCompactSummary") or record.data.get("isApiErrorMessage"):
        return True
    return message.role == "assistant" and message.fields.get("model") == _SYNTHETIC


def _seconds(timestamp: str | None) -> float:
    """The time of a record; 0 if it has none, so that there is no pause."""
    moment = parse_time(timestamp)
    return moment.timestamp() if moment is not None else 0.0


PREFIX_TOKENS = 8_000
"""The size of system prompt, instruction files and tool definitions of an agent with a dozen tools."""
WINDOW = 200_000
"""The default window for the thresholds."""
FOLDER = Path("/session/tool-results")
"""The folder of the sessions' files; nothing is written there."""
TTL = "5m"
NEVER_FULL = 100_000_000
"""The window for billing: so large that no request is refused, and all policies get the same messages."""

_TOOLS = ("Read", "Bash", "Grep", "Glob", "Edit", "Write", "WebFetch", "WebSearch", "Agent", "SendMessage", "Skill")
_SENTENCE = "Work step by step, look before you change anything, and say what you did. "
_TOOL_TOKENS = 250


@dataclass(frozen=True, slots=True)
class ReplaySetting:
    """The header, model facts and thresholds of a replay."""

    header: SessionHeader
    facts: ModelFacts
    limits: Thresholds

    @staticmethod
    def of(model: str, prefix_tokens: int = PREFIX_TOKENS, window: int = WINDOW) -> ReplaySetting:
        facts = Catalogue.load().facts(model)
        tools = tuple(_tool(name) for name in _TOOLS) if prefix_tokens else ()
        system = _text(4 * (prefix_tokens - _TOOL_TOKENS * len(tools)))
        header = SessionHeader(model=f"anthropic:{model}", system=(system,) if system else (), tools=tools, ttl=TTL)
        return ReplaySetting(header, facts, thresholds(window, facts.max_output))


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
