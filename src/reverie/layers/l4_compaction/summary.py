"""Asking a model for a summary, and judging what comes back: nine parts, the draft thrown away, nothing half accepted.

Pure. Rejected: nothing, an answer without a summary, one that was cut off, one that is larger than what it replaces,
and one that called tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from reverie.layers.base import EffectResult
from reverie.layers.l4_compaction.by_code.written import PARTS
from reverie.prompts import render

PACKAGE = "reverie.layers.l4_compaction"
_ANALYSIS = re.compile(r"<analysis>.*?(</analysis>|(?=<summary>))", re.DOTALL | re.IGNORECASE)
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL | re.IGNORECASE)
_ENOUGH_PARTS = 3
_COMPACT_HEADING = re.compile(r"^(#{1,6})\s*compact(?:ion)? instructions\s*:?\s*$", re.IGNORECASE | re.MULTILINE)


def directive(scope: Literal["whole", "from", "up_to"], instructions: str, *, beginning: str = "") -> str:
    """What the summariser is asked. `beginning` is where a partial summary starts, quoted."""
    match scope:
        case "whole":
            where = render(PACKAGE, "scope_whole.md")
        case "from":
            where = render(PACKAGE, "scope_from.md", {"beginning": beginning})
        case "up_to":
            where = render(PACKAGE, "scope_up_to.md")
    wanted = f"\nThe user wants of this summary:\n{instructions.strip()}" if instructions.strip() else ""
    parts = "\n".join(f"## {title}" for title in PARTS)
    return render(PACKAGE, "summarise.md", {"scope": where, "parts": parts, "instructions": wanted})


def plain_system() -> str:
    """The small system prompt of a plain request."""
    return render(PACKAGE, "plain_system.md")


def judged(result: EffectResult, replaced: int, weigh: Callable[[str], int]) -> tuple[str, str]:
    """The summary in an answer, or an empty one and why it is not taken. `replaced`: tokens of what it stands for."""
    if not result.ok:
        return "", result.text or "the model did not answer"
    found = _SUMMARY.search(result.text)
    text = (found[1] if found else _ANALYSIS.sub("", result.text)).strip()
    if not found and sum(f"## {title}" in text for title in PARTS) < _ENOUGH_PARTS:
        return "", "the answer held no summary" if result.text.strip() else "the answer was empty"
    if not text:
        return "", "the summary was empty"
    if weigh(text) >= replaced:
        return "", f"the summary was larger than what it replaces ({weigh(text):,} of {replaced:,} tokens)"
    return text, ""


def compact_instructions(text: str) -> str:
    """The section "Compact instructions" of instruction files; of several, all. Empty if there is none."""
    found = list[str]()
    for match in _COMPACT_HEADING.finditer(text):
        rest = text[match.end() :]
        following = re.search(rf"^#{{1,{len(match[1])}}}\s|^</", rest, re.MULTILINE)
        found.append((rest[: following.start()] if following else rest).strip())
    return "\n\n".join(part for part in found if part)
