"""What the engine returns: plain dictionaries for the caller's client, with typed figures beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.types import Block, Origin, parse_block


@dataclass(frozen=True, slots=True)
class AnnouncedBreak:
    """Why a request does not continue the last one: a word to count by, and a sentence for people."""

    cause: str
    why: str


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request to send with your own client: `client.messages.create(**request.body)`.

    `breaks` is empty if the request continues the last one byte by byte. `tokens` is the estimated size of the prompt,
    `window` the size of the model's window. `notices` says what the layers did, in sentences. `recalled` names the
    memories that were added for the newest message. For callers who send their own messages and not the body:
    `added` has all texts of memories in it, each with how many of your messages follow the place, and `is_compacted`
    says that the body has a summary instead of your first messages.
    """

    body: dict[str, Any]
    breaks: tuple[AnnouncedBreak, ...] = ()
    tokens: int = 0
    window: int = 0
    notices: tuple[str, ...] = ()
    recalled: tuple[str, ...] = ()
    added: tuple[tuple[int, str], ...] = ()
    is_compacted: bool = False


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A tool result to put into your messages. `path` is where the whole is, if `content` is only its beginning."""

    content: Any
    path: Path | None = None

    @property
    def is_replaced(self) -> bool:
        return self.path is not None


@dataclass(frozen=True, slots=True)
class CompactedMessages:
    """A compaction by hand: the messages that replace the given ones, the sizes in tokens, and what was kept."""

    messages: list[dict[str, Any]]
    tokens_before: int
    tokens_after: int
    summary: str
    report: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What the requests of a conversation cost: tokens, US dollars (0 for models without a price), and what the cache
    saved. `by_purpose` has the dollars of each kind of work (main, compaction, extraction …)."""

    requests: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    dollars: float
    saved_dollars: float
    by_purpose: dict[str, float]


def as_blocks(output: object) -> str | tuple[Block, ...]:
    """A tool's output as the text or the blocks of a result."""
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output and all(isinstance(one, dict) and "type" in one for one in output):  # pyright: ignore
        return tuple(parse_block(one, Origin.TOOL) for one in output)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    try:
        return json.dumps(output, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"the output of the tool is not JSON ({error}): give a text") from None


def check_given(value: object, kind: type, name: str) -> None:
    """Raises `UserError` if a caller, or the model whose arguments it passes on, gives something else."""
    if not isinstance(value, kind):
        raise UserError(f"`{name}` is {type(value).__name__}: give {kind.__name__}")
