"""What a running agent is at, in three to five words: what a small model is asked, and what counts as an answer.

An answer that is vague, tells of the past, or names nothing that the agent touched is dropped: the last call says more.
Pure; whoever watches the agent asks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from reverie.prompts import render
from reverie.types import Json, JsonObject, Message, Origin, TextBlock

MAX_TOKENS = 60
LEAST, MOST = 3, 5
_MESSAGES = 8
_CHARACTERS = 300
_SHOWN = 4_000
_TOKEN = re.compile(r"[\w][\w./:-]*\w|\w")
_SAYS_NOTHING = (
    "a an and at by for from in into its of on or some the their this to up via with all more new next code codebase "
    "file files folder task tasks work working thing things stuff project repository repo problem issue issues change "
    "changes something data information details context request result results current various several tests test "
    "function functions agent tool tools step steps command output content contents"
)
_VAGUE = frozenset(_SAYS_NOTHING.split())
_PRESENT = re.compile(r"(?!having|being|nothing|something)[a-z]{2,}ing", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Steps:
    """The last steps of an agent. `named`: the words that its calls were made of."""

    text: str
    named: frozenset[str]


def steps_of(messages: Sequence[Message]) -> Steps:
    """What an agent did last, as text a small model can read: its words and calls, never the results."""
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
    """What the small model is asked."""
    return Message("user", (TextBlock(render("reverie.agents", "progress.md", {"steps": steps.text}), Origin.CODE),))


def check_answer(answer: str, steps: Steps) -> str | None:
    """The answer if it is one: three to five words, in the present, that name what is at hand; else None."""
    line = " ".join(answer.split()).strip("\"'`“”.*… ")
    words = line.split(" ")
    if "\n" in answer.strip() or not LEAST <= len(words) <= MOST:
        return None
    if not _PRESENT.fullmatch(words[0]):
        return None
    told = [token.lower() for word in words[1:] for token in _tokens(word)]
    return line if any(token in steps.named and token not in _VAGUE and len(token) > 1 for token in told) else None


def _tokens(text: str) -> set[str]:
    """The names in a text, whole and in their parts: `src/app.py` is also `app.py` and `app`."""
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
