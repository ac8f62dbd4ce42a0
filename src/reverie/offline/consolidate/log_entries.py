"""What is worth keeping of a daily log: rules, decisions, dates, places and contacts; chores and small talk are not.

An entry is a line, with or without a bullet and a time, and the indented lines below it. One that holds a secret is
left out whole. Dates are told from the log's own day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from reverie.memory.daily_log import day_of
from reverie.offline.consolidate.dating import written_out
from reverie.offline.consolidate.lessons import Kind, Lesson, Source, holds_secret
from reverie.offline.consolidate.opposites import corrected
from reverie.text.words import content_terms

_ENTRY = re.compile(
    r"^(?P<mark>[-*+•]\s+)?(?P<time>\[?\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?\]?\s*[-–—:]?\s*)?(?P<text>\S.*)$",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"^(?:[A-ZÀ-Ý][\w'’-]+|she|he|they|user)(?: (?:said|says|noted|added|wrote|told me))?: (?=\S)")
_SAID = re.compile(
    r"^(?:[A-ZÀ-Ý][\w'’-]+|[Ss]he|[Hh]e|[Tt]hey|[Tt]he user) (?:corrected (?:me|that|this)|insisted|said|told me"
    r"|reminded me|confirmed|mentioned|explained|announced|let (?:me|us) know"
    r"|asked (?:me )?to remember)(?: that)?[:,]? (?=\S)"
)
_TOOK_BACK = re.compile(
    r"\b(?:(?:took|takes) (?:it|that|this) back|(?:changed|changes) (?:his|her|their) minds?|on second thoughts?"
    r"|thought better of it|(?:nahm|nimmt) (?:das|es) zurück|überlegte es sich anders|cambió de (?:idea|opinión))\b",
    re.IGNORECASE,
)
"""Somebody wanted one thing and then another: kept in their words, for what is left out may be what it is about."""
_ROUTED = re.compile(
    r"^(?:the |all |any |every )?(?:[^\W\d_]+ ){1,6}(?:goes?|belongs?|is sent|are sent|is reported|are reported) "
    r"(?:to|through|via) \S"
    r"|^(?:for|about|with) [^,]{3,50},? (?:ask|call|write to|contact|mail) \S"
    r"|,? not (?:to|via|through) (?:the |a )?\w+[.!]?$"
    r"|^(?:fragen|anfragen|rechnungen)\b.{0,40}\bgehen an\b|\b(?:va|van) a(?:l)? \S+, no a\b",
    re.IGNORECASE,
)
"""Says whom or what something goes to."""
_INSISTED = re.compile(
    r"^\S+(?: user)? (?:corrected (?:me|that|this)|insisted|told me|reminded me|confirmed|asked me to)\b"
)
_DECIDED = re.compile(
    r"^(?:decision|decided|agreed|rule|policy|note|reminder|remember|important|entscheidung|beschluss|regel|decisión)"
    r"\s?[:–—-]\s*",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:never|always|must(?:n'?t)?|cannot|can'?t|may not|not allowed|no longer|prefers?|likes?|wants?|hates?"
    r"|dislikes?"
    r"|from now on|instead of|rather than|goes? from|(?:is|are) now|moves? to|moved (?:to|from)|switch(?:ed|es)? to"
    r"|renamed to|deadline|contact|owner|responsible|in charge|lives? (?:at|in|on)|(?:is|are) (?:kept|stored|with|at)"
    r"|only (?:on|in|by|from|via|with|for|after|before|if|when|the)|decid(?:ed|es)|agreed|rule|policy"
    r"|nie|immer|darf nicht|dürfen nicht|muss|müssen|möchte|bevorzugt|ab sofort|künftig|zuständig|beschlossen"
    r"|nunca|siempre|debe|deben|prefiere|a partir de|responsable)\b|\bonly[,.;]|\bonly$"
    r"|https?://|\b[\w-]+(?:\.[\w-]+)+/\S|[\w.+-]+@[\w-]+\.\w+"
    r"|必须|总是|不要|只能|喜欢|负责|决定|必ず|常に|禁止|担当",
    re.IGNORECASE,
)
_HAPPENS = re.compile(
    r"\b(?:arrives?|starts?|begins?|opens?|closes?|ends?|launch(?:es)?|freez(?:e|es)|expires?|due|happens?|takes place"
    r"|visits?|comes?|leaves?|goes live|moves?|beginnt|endet|kommt|startet|fällig|empieza"
    r"|termina|llega|开始|到期|始まる)",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(?:when(?:ever)?|if|unless|above|below|at (?:most|least)|more than|less than|fewer than|every|each|wenn|über"
    r"|unter|höchstens|mindestens|cuando|si|más de|menos de)\b",
    re.IGNORECASE,
)
_RECENT: Final = timedelta(days=30)
"""So long after a day it still matters what was to happen on it."""
_DATED = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_CHORE = re.compile(
    r"^(?:re-?)?(?:ran|run|fixed|fix|renamed|restarted|started|stopped|printed|deployed|merged|committed|pushed|pulled"
    r"|updated|upgraded|cleaned|tested|debugged|installed|reviewed|answered|sent|wrote|read|looked|checked|added"
    r"|removed"
    r"|deleted|made|built|created|opened|closed|asked|tried|typo|tests? (?:took|green|red|pass)|lunch|coffee|break"
    r"|meeting|call|stand-?up|\w+ (?:asked for|was (?:down|slow|late|up)|is (?:down|broken)))\b",
    re.IGNORECASE,
)
_CORRECTED = re.compile(r"\b(?:corrected me|insisted|told me|reminded me|asked me to)\b")
_RULE = re.compile(
    r"\b(?:never|always|must(?:n'?t)?|not allowed|from now on|prefers?|likes?|wants?|hates?|dislikes?|nie|immer|muss"
    r"|möchte|bevorzugt|nunca|siempre|debe|prefiere)\b|必须|总是|不要|必ず|禁止",
    re.IGNORECASE,
)


def noted(name: str, text: str, today: date | None = None) -> Iterator[Lesson]:
    """The lessons in a daily log, each told from its day. What was to happen long before `today` is of no use."""
    day = day_of(name)
    if day is None:
        return
    for entry in _entries(text):
        if holds_secret(entry):
            continue
        spoken = _SAID.sub("", _SPEAKER.sub("", entry))
        is_decided = bool(_DECIDED.match(spoken) or _INSISTED.match(_SPEAKER.sub("", entry)))
        bare = _DECIDED.sub("", spoken)
        plain = corrected(bare)
        clean = written_out(plain[:1].upper() + plain[1:], day)
        is_told = spoken != entry
        days = _DATED.findall(clean) if is_told or _HAPPENS.search(plain) else []
        is_ahead = bool(days) and (today is None or max(days) >= (today - _RECENT).isoformat()[: len(max(days))])
        is_lasting = is_decided or is_ahead or bool(_LASTING.search(plain) or _ROUTED.search(plain))
        # Whoever takes care to correct a limit or a condition means it to be kept.
        is_meant = bool(_TOOK_BACK.search(plain)) or (is_told and plain != bare and bool(_LIMIT.search(plain)))
        is_lasting = is_lasting or is_meant
        is_chore = bool(_CHORE.match(plain)) and not is_decided and not is_told
        if is_lasting and not is_chore and len(content_terms(clean)) >= 2:
            is_rule = bool(_RULE.search(plain) or _CORRECTED.search(entry) or is_meant)
            yield Lesson(clean, Kind.RULE if is_rule else Kind.NOTE, day, Source.LOG)


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
