"""The tokens of content before anything is learnt, by content class.

Byte-pair tokenizers cut where the kind of character changes. So a few counts per text (letters, digits, runs of
punctuation, breaks, bytes beyond ASCII) are better than its length. `calibration.py` corrects each class for a model.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import assert_never

from reverie.models.tokens import encoded, json_text, without_sealed
from reverie.quick import dataclass
from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)


class Feature(IntEnum):
    """The classes of content: a calibrator has one weight for each. All except the last two count tokens."""

    PROSE = 0
    THINKING = 1
    SEALED_THINKING = 2
    TOOL_INPUT = 3
    TOOL_OUTPUT = 4
    NUMBERED_OUTPUT = 5
    JSON_OUTPUT = 6
    NON_ASCII = 7
    MEDIA = 8
    FRAMING = 9
    ROUNDS = 10
    TURNS = 11


SIZE = len(Feature)

LETTER = 0.224
DIGIT = 0.84
PUNCTUATION_RUN = 1.1
BREAK = 1.28
NON_ASCII_BYTE = 0.33
"""Tokens of each, fitted to recorded sessions (docs/decisions/0004-token-estimate.md)."""

SEALED_BYTE = 0.3
"""Tokens of a byte of hidden thinking, as the size of its signature shows it."""

IMAGE = 1_500
"""An image of the largest size that a model reads without shrinking it."""

CALL_FRAME = 50
RESULT_FRAME = 33
TEXT_FRAME = 16
"""What a block has besides its text: ids, names, role markers."""

_SIGNATURE_FRAME = 232
_SEALED_MINIMUM = 64
_NUMBERED = re.compile(r"\s*\d+(?:→|\t)")


@dataclass(frozen=True, slots=True)
class Features:
    """Amounts by class, in the order of `Feature`. The features of parts add up to those of the whole."""

    values: tuple[float, ...] = (0.0,) * SIZE

    @staticmethod
    def of(amounts: dict[Feature, float]) -> Features:
        return Features(tuple(amounts.get(feature, 0.0) for feature in Feature))

    def __add__(self, other: Features) -> Features:
        return Features(tuple(map(operator.add, self.values, other.values)))

    def __sub__(self, other: Features) -> Features:
        return Features(tuple(map(operator.sub, self.values, other.values)))

    def __getitem__(self, feature: Feature) -> float:
        return self.values[feature]


ROUND = Features.of({Feature.ROUNDS: 1.0})
"""One request: what the client adds to it unseen."""

TURN = Features.of({Feature.TURNS: 1.0})
"""The start of a user turn."""


def measure_message(message: Message) -> Features:
    """Features of a message. A user message that answers no tool call begins a turn."""
    found = measure_blocks(message.content)
    return found + TURN if begins_turn(message) else found


def begins_turn(message: Message) -> bool:
    """Whether the message is from the user and has no tool results."""
    return message.role == "user" and not message.tool_results


def measure_blocks(blocks: Iterable[Block]) -> Features:
    """Features of blocks, regardless of their messages."""
    amounts = dict.fromkeys(Feature, 0.0)
    for block in blocks:
        _add_block(amounts, block)
    return Features(tuple(amounts.values()))


def _add_block(amounts: dict[Feature, float], block: Block) -> None:
    match block:
        case TextBlock():
            _add_text(amounts, Feature.PROSE, block.text)
            amounts[Feature.FRAMING] += TEXT_FRAME
        case ThinkingBlock():
            _add_text(amounts, Feature.THINKING, block.thinking)
            amounts[Feature.FRAMING] += TEXT_FRAME
            amounts[Feature.SEALED_THINKING] += _hidden_tokens(block.thinking, block.signature)
        case ToolUseBlock():
            _add_text(amounts, Feature.TOOL_INPUT, json_text(block.input))
            amounts[Feature.FRAMING] += CALL_FRAME
        case ToolResultBlock():
            amounts[Feature.FRAMING] += RESULT_FRAME
            content = block.content or ()
            for part in (TextBlock(content),) if isinstance(content, str) else content:
                if isinstance(part, TextBlock):
                    _add_text(amounts, _output_class(part.text), part.text)
                else:
                    _add_block(amounts, part)
        case DocumentBlock(source={"type": "text", "data": str(text)}):
            _add_text(amounts, Feature.TOOL_OUTPUT, text)
        case ImageBlock() | DocumentBlock():
            amounts[Feature.MEDIA] += IMAGE
        case OtherBlock(raw={"type": "redacted_thinking", "data": str(data)}):
            amounts[Feature.SEALED_THINKING] += _hidden_tokens("", data)
        case OtherBlock(raw={"type": "reverie_item"} as item):
            plain, sealed = without_sealed(item)
            _add_text(amounts, Feature.JSON_OUTPUT, json_text(plain))
            amounts[Feature.MEDIA] += sealed * IMAGE
        case OtherBlock():
            _add_text(amounts, Feature.JSON_OUTPUT, json_text(block.raw))
        case _:
            assert_never(block)


def _output_class(text: str) -> Feature:
    """The class of a tool's output, from its first characters, because tools and their names differ."""
    if _NUMBERED.match(text):
        return Feature.NUMBERED_OUTPUT
    return Feature.JSON_OUTPUT if text[:1] in ("{", "[") else Feature.TOOL_OUTPUT


def _hidden_tokens(thinking: str, signature: str | None) -> float:
    """Tokens of thinking that is not shown: it is in the signature (encrypted, base64), sent back and billed."""
    if not signature:
        return 0.0
    hidden = (len(signature) - _SIGNATURE_FRAME) * 3 / 4 - len(encoded(thinking))
    return hidden * SEALED_BYTE if hidden > _SEALED_MINIMUM else 0.0


def _all_but(keep: Callable[[str], bool]) -> bytes:
    return bytes(code for code in range(256) if not (code < 128 and keep(chr(code))))


def _classes(classify: Callable[[str], str]) -> bytes:
    return bytes(ord(classify(chr(code)) if code < 128 else "a") for code in range(256))


_NOT_LETTERS = _all_but(str.isalpha)
_NOT_DIGITS = _all_but(str.isdigit)
_ASCII = bytes(range(128))
_PUNCTUATION = _classes(lambda c: "." if c.isprintable() and not c.isalnum() and c != " " else "a")
_SPACES = _classes(lambda c: "s" if c == " " else "n" if c.isspace() else "a")


def _add_text(amounts: dict[Feature, float], feature: Feature, text: str) -> None:
    data = encoded(text)
    # A run starts where its kind follows another one.
    punctuation = (b"a" + data.translate(_PUNCTUATION)).count(b"a.")
    spaces = b"a" + data.translate(_SPACES)
    breaks = spaces.count(b"an") + spaces.count(b"ass") + spaces.count(b"asn")
    amounts[feature] += (
        LETTER * len(data.translate(None, _NOT_LETTERS))
        + DIGIT * len(data.translate(None, _NOT_DIGITS))
        + PUNCTUATION_RUN * punctuation
        + BREAK * breaks
    )
    if not text.isascii():
        amounts[Feature.NON_ASCII] += NON_ASCII_BYTE * len(data.translate(None, _ASCII))
