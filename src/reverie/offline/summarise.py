"""A summary in the nine requested parts, filled from the conversation by code; what must be kept is quoted.

The directive says what to summarise and what the user wants from it: lines that fit their words are quoted. What an
earlier summary says about the beginning stays. Always shorter than what it replaces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from reverie.layers.l4_compaction.by_code import PARTS, Limits, write_summary
from reverie.models.base import Request
from reverie.models.tokens import estimate_message
from reverie.offline.place import read_place
from reverie.offline.step import Answer, Step
from reverie.offline.terms import fit, read_question
from reverie.origins import strip_tags
from reverie.storage.transcript.view import Entry
from reverie.types import Message, Origin, TextBlock, ToolResultBlock

_FROM = re.compile(r"<from>\n(.*)\n</from>", re.DOTALL)
_WANTED = re.compile(r"The user wants of this summary:\n(.+)\Z", re.DOTALL)
_QUOTES = 12
_QUOTE = 240
_SHARE = 0.9
"""At most this share of what it replaces."""


def next_step(request: Request) -> Step:
    """The draft and the summary, in the requested form."""
    directive, conversation = _apart(request.messages)
    messages = _scope(conversation, directive)
    room = min(request.max_tokens, int(_SHARE * sum(map(estimate_message, messages))))
    limits = Limits.for_tokens(room)
    said = [Entry(message.id, message) for message in messages]
    text = write_summary(said, limits, cwd=read_place(request).folder, alone=False)
    text = _with_beginning(text, messages)
    wanted = _WANTED.search(directive)
    if wanted:
        text = _with_quotes(text, _quotes(messages, wanted[1]), limits.total)
    calls = sum(len(message.tool_uses) for message in messages)
    draft = f"{len(messages)} messages with {calls} calls, read in order; every line below is taken from them."
    safe = re.sub(r"<(/?(?:summary|analysis)>)", r"<\\\1", text)
    return Answer(f"<analysis>\n{draft}\n</analysis>\n\n<summary>\n{safe}\n</summary>")


def _apart(messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
    """The directive, which is the last thing injected, and the conversation without it."""
    last = messages[-1] if messages else Message("user", ())
    told = [b for b in last.content if isinstance(b, TextBlock) and b.origin is Origin.CODE][-1:]
    kept = tuple(block for block in last.content if block not in told)
    before = messages[:-1] if messages else ()
    return (strip_tags(told[0].text) if told else ""), (*before, *([replace(last, content=kept)] if kept else []))


def _scope(messages: tuple[Message, ...], directive: str) -> Sequence[Message]:
    """What to summarise: everything, or from the quoted beginning on."""
    found = _FROM.search(directive)
    if not found:
        return messages
    beginning = found[1].strip().removesuffix("…")
    starts = [
        at
        for at, message in enumerate(messages)
        if beginning and any(isinstance(b, TextBlock) and b.text.strip().startswith(beginning) for b in message.content)
    ]
    return messages[starts[-1] :] if starts else messages


def _with_beginning(text: str, messages: Sequence[Message]) -> str:
    """Keeps what the earlier summary, if there is one, says about the first wishes."""
    earlier = next(
        (
            line
            for message in messages
            for block in message.content
            if isinstance(block, TextBlock) and block.origin in (Origin.SUMMARY, Origin.NOTES)
            for line in block.text.splitlines()
            if line.startswith("- At first: ")
        ),
        None,
    )
    if earlier is None:
        return text
    now = next((line for line in text.splitlines() if line.startswith("- At first: ")), None)
    return text.replace(now, earlier, 1) if now else text.replace(f"## {PARTS[0]}\n", f"## {PARTS[0]}\n{earlier}\n", 1)


def _with_quotes(text: str, quotes: Sequence[str], room: int) -> str:
    """The summary with lines quoted under its technical part, as far as they fit."""
    left, shown = room - len(text.encode()), list[str]()
    for quote in quotes:
        left -= len(quote.encode()) + 3
        if left < 0:
            break
        shown.append(f"- {quote}")
    if not shown:
        return text
    head = f"## {PARTS[1]}\n"
    return text.replace(head, head + "What you asked to keep:\n" + "\n".join(shown) + "\n", 1)


def _quotes(messages: Sequence[Message], wanted: str) -> list[str]:
    """Lines that fit what the user wants kept, the best ones, in the order they were said."""
    question = read_question(wanted)
    if not question.terms:
        return []
    found = dict[str, float]()
    for message in messages:
        for block in message.content:
            if not isinstance(block, TextBlock | ToolResultBlock) or block.origin is Origin.CODE:
                continue
            for line in block.text.splitlines():
                held = fit(line, question)
                if held >= 1 and len(line) < 4 * _QUOTE:
                    found[" ".join(line.split())[:_QUOTE]] = held
    best = sorted(found, key=lambda line: -found[line])[:_QUOTES]
    return [line for line in found if line in set(best)]
