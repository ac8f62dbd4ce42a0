"""Asks a model for a summary and checks the answer: nine parts, without the draft.

Pure. Rejects empty answers, answers without a summary, cut ones, and summaries larger than what they replace.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from reverie.layers.base import EffectResult
from reverie.layers.l4_compaction.by_code.written import PARTS
from reverie.prompts import render

PACKAGE = "reverie.layers.l4_compaction"
_ENOUGH_PARTS = 3
_SCOPES = {"whole": "scope_whole.md", "from": "scope_from.md", "up_to": "scope_up_to.md"}
_COMPACT_HEADING = re.compile(
    r"^(#{1,6})[ \t]*+compact(?:ion)? instructions[ \t]*+:?[ \t\r]*+$", re.IGNORECASE | re.MULTILINE
)


def directive(scope: Literal["whole", "from", "up_to"], instructions: str, *, beginning: str = "") -> str:
    """Returns the directive of the summariser. `beginning` quotes where a partial summary starts."""
    where = render(PACKAGE, _SCOPES[scope], {"beginning": beginning} if scope == "from" else None)
    wanted = f"\nThe user wants of this summary:\n{instructions.strip()}" if instructions.strip() else ""
    return render(PACKAGE, "summarise.md", {"scope": where, "instructions": wanted})


def plain_system() -> str:
    """Returns the small system prompt of a plain request."""
    return render(PACKAGE, "plain_system.md")


def check_summary(result: EffectResult, replaced: int, weigh: Callable[[str], int]) -> tuple[str, str]:
    """Returns the summary of an answer, or an empty one and why it is rejected. `replaced`: tokens that it replaces."""
    if not result.ok:
        return "", result.text or "the model did not answer"
    summary = _between(result.text, "<summary>", "</summary>")
    found = summary is not None
    text = (summary if summary is not None else _without_analysis(result.text)).strip()
    if not found and sum(f"## {title}" in text for title in PARTS) < _ENOUGH_PARTS:
        return "", "the answer held no summary" if result.text.strip() else "the answer was empty"
    if not text:
        return "", "the summary was empty"
    if weigh(text) >= replaced:
        return "", f"the summary was larger than what it replaces ({weigh(text):,} of {replaced:,} tokens)"
    return text, ""


def compact_instructions(text: str) -> str:
    """Returns all sections "Compact instructions" of the instruction files."""
    found = list[str]()
    for match in _COMPACT_HEADING.finditer(text):
        rest = text[match.end() :]
        following = re.search(rf"^#{{1,{len(match[1])}}}\s|^</", rest, re.MULTILINE)
        found.append((rest[: following.start()] if following else rest).strip())
    return "\n\n".join(part for part in found if part)


def _between(text: str, opening: str, closing: str) -> str | None:
    lower = text.lower() if len(text.lower()) == len(text) else text
    start = lower.find(opening)
    end = lower.find(closing, start + len(opening)) if start >= 0 else -1
    return text[start + len(opening) : end] if end >= 0 else None


def _without_analysis(text: str) -> str:
    """Returns the text without its draft, which ends with its tag or where the summary begins."""
    lower = text.lower() if len(text.lower()) == len(text) else text
    start = lower.find("<analysis>")
    if start < 0:
        return text
    closing, summary = lower.find("</analysis>", start), lower.find("<summary>", start)
    if closing >= 0 and (summary < 0 or closing < summary):
        return text[:start] + text[closing + len("</analysis>") :]
    return text[:start] + text[summary:] if summary >= 0 else text
