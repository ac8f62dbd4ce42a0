"""Describes in three to five words what a running agent does: a question for a small model, and a check of its answer.

An answer is dropped if it is vague, about the past, or names nothing that the agent touched. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from reverie.prompts import render
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.types import Json, JsonObject, Message, Origin, TextBlock

MAX_TOKENS = 60
LEAST, MOST = 3, 5
_MESSAGES = 8
_CHARACTERS = 300
_SHOWN = 4_000
_TOKEN = late(r"[\w][\w./:-]*\w|\w")
_SAYS_NOTHING = (
    "a an and at by for from in into its of on or some the their this to up via with all more new next code codebase "
    "file files folder task tasks work working thing things stuff project repository repo problem issue issues change "
    "changes something data information details context request result results current various several tests test "
    "function functions agent tool tools step steps command output content contents"
)
_VAGUE = frozenset(_SAYS_NOTHING.split())
_PRESENT = late(r"(?!having|being|nothing|something)[a-z]{2,}ing", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Steps:
    """The last steps of an agent. `named` holds the words of its calls."""

    text: str
    named: frozenset[str]


def steps_of(messages: Sequence[Message]) -> Steps:
    """Returns the last words and calls of an agent as text, without the results."""
    lines, named = list[str](), set[str]()
    for message in messages[-_MESSAGES:]:
        if message.role != "assistant":
            continue
        if message.text.strip():
            lines.append(f"It said: {_short(message.text)}")
        for call in message.tool_uses:
            values = _values(call.input)
            named |= {token.lower() for value in values for token in _tokens(value)}
            lines.append(f"It called {call.name}: {_short('; '.join(values))}")
    return Steps("\n".join(lines)[-_SHOWN:], frozenset(named))


def question(steps: Steps) -> Message:
    """Returns the question for the small model."""
    return Message("user", (TextBlock(render("reverie.agents", "progress.md", {"steps": steps.text}), Origin.CODE),))


def check_answer(answer: str, steps: Steps) -> str | None:
    """Returns the answer if it has three to five words, is in the present and names something from the steps."""
    line = " ".join(answer.split()).strip("\"'`“”.*… ")
    words = line.split(" ")
    if "\n" in answer.strip() or not LEAST <= len(words) <= MOST:
        return None
    if not _PRESENT.fullmatch(words[0]):
        return None
    tokens = [token.lower() for word in words[1:] for token in _tokens(word)]
    return line if any(token in steps.named and token not in _VAGUE and len(token) > 1 for token in tokens) else None


def _tokens(text: str) -> set[str]:
    """Returns the names in a text, whole and in parts: `src/app.py` gives `app.py` and `app` too."""
    found = set[str]()
    for name in _TOKEN.findall(text):
        found |= {name, *re.split(r"[/:]", name), name.rpartition("/")[2].partition(".")[0]}
    return found - {""}


def _values(given: Json) -> list[str]:
    values = list(cast(JsonObject, given).values()) if isinstance(given, dict) else []
    return [value for value in values if isinstance(value, str)]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CHARACTERS else line[: _CHARACTERS - 1] + "…"
