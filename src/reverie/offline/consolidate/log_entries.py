"""What to keep of a daily log: rules, decisions and dates, where an entry says that it is one.

An entry is a line, with or without a bullet and a time, and the indented lines below it. An entry with a secret is left
out completely. Relative dates are counted from the day of the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.memory.daily_log import day_of
from reverie.offline.consolidate.lessons import Kind, Lesson, Source, holds_secret
from reverie.offline.consolidate.relative_dates import write_out_dates
from reverie.text.words import content_terms

_ENTRY = re.compile(
    r"^(?P<mark>[-*+•]\s+)?(?P<time>\[?\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?\]?\s*[-–—:]?\s*)?(?P<text>\S.*)$",
    re.IGNORECASE,
)
_SPOKEN = re.compile(
    r"^(?:[A-ZÀ-Ý][\w'’-]+|[Ss]he|[Hh]e|[Tt]hey|[Tt]he user|user)(?: (?:corrected (?:me|that|this)|insisted|said|says"
    r"|told me|reminded me|confirmed|asked (?:me )?to remember))?(?: that|[:,]) (?=\S)"
)
_DECIDED = re.compile(
    r"^(?:decision|decided|agreed|rule|policy|note|reminder|remember|important|entscheidung|beschluss|regel"
    r"|decisión)\s?[:–—-]\s*",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:never|always|must(?:n'?t)?|may not|not allowed|no longer|prefers?|wants?|from now on|deadline|decided"
    r"|agreed|nie|immer|muss|müssen|ab sofort|künftig|beschlossen|nunca|siempre|debe|deben|prefiere|a partir de)\b"
    r"|https?://|必须|总是|不要|决定|必ず|常に|禁止",
    re.IGNORECASE,
)
_CHORE = re.compile(
    r"^(?:re-?)?(?:\w+ed|ran|run|fix|sent|wrote|read|made|built|lunch|coffee|meeting|call|typo)\b", re.I
)
_UNSURE = re.compile(
    r"\b(?:took (?:it|that|this) back|changed (?:his|her|their) minds?|on second thoughts?|corrected (?:him|her"
    r"|them)sel|no,? wait|scratch that|or rather|maybe|perhaps|probably)",
    re.IGNORECASE,
)
"""Somebody changed their mind or was not sure: it is not clear what is true."""
_RULE = re.compile(
    r"\b(?:never|always|must(?:n'?t)?|not allowed|from now on|prefers?|wants?|nie|immer|muss|nunca|siempre|debe"
    r"|prefiere)\b|必须|总是|不要|必ず|禁止",
    re.IGNORECASE,
)


def find_log_lessons(name: str, text: str) -> Iterator[Lesson]:
    """Finds the lessons in a daily log, each with its day."""
    day = day_of(name)
    if day is None:
        return
    for entry in _entries(text):
        spoken = _SPOKEN.sub("", entry)
        plain = _DECIDED.sub("", spoken)
        is_told = plain != entry
        if holds_secret(entry) or _UNSURE.search(entry) or (not is_told and _CHORE.match(plain)):
            continue
        if (plain != spoken or _LASTING.search(plain)) and len(content_terms(plain)) >= 2:
            clean = write_out_dates(plain[:1].upper() + plain[1:], day)
            yield Lesson(clean, Kind.RULE if _RULE.search(plain) else Kind.NOTE, day, Source.LOG)


def _entries(text: str) -> list[str]:
    """The entries of a log, without bullets and times; indented lines belong to the one above."""
    found: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        entry = _ENTRY.match(bare)
        if line[:1].isspace() and found and not (entry and entry["mark"]):
            found[-1] = f"{found[-1]} {bare}"
        elif entry is not None:
            found.append(entry["text"].strip())
    return found
