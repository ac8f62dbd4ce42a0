"""What is worth keeping of what a person typed and of what a log noted down.

A lesson is a rule, a note that was asked for, or a change of how things are. Questions, tasks for now, suppositions,
jokes, chores and secrets are none. It judges words alone; whether memory knows it already is looked at elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from reverie.memory.daily_log import day_of
from reverie.memory.secrets import find_secrets
from reverie.models.embedded.consolidate.dating import written_out
from reverie.models.embedded.consolidate.gather import Said
from reverie.models.embedded.consolidate.opposites import corrected
from reverie.models.embedded.consolidate.statements import terms_of
from reverie.models.embedded.language.lexicon import Lexicon, lexicon
from reverie.models.embedded.language.sentences import Sentence, read_prose
from reverie.models.embedded.language.tongue import tongue_of


class Kind(StrEnum):
    """What a lesson is."""

    RULE = "rule"
    """How to work."""
    NOTE = "note"
    """A fact that somebody wants to be kept."""
    CHANGE = "change"
    """Something is other than it was: matters where memory says what it was."""


class Source(StrEnum):
    """Where a lesson comes from, as a reason tells it."""

    TYPED = "the user said"
    LOG = "the log noted"
    INDEX = "only the index said"


@dataclass(frozen=True, slots=True)
class Lesson:
    """One thing learnt, in the words it was said in, its dates written out."""

    text: str
    kind: Kind
    day: date
    source: Source


_INJECTED = re.compile(r"<(?P<tag>[a-z][\w-]*)\b[^>]*>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)
_OPENING = re.compile(
    r"^(?:(?:no|nope|nah|yes|yeah|ok(?:ay)?|right|well|so|and|also|but|oh|hm+|actually|sorry|thanks|thank you|hey"
    r"|please"
    r"|two things|one more thing|by the way|btw|fyi|note|nein|und|auch|ach|bitte|no,? pero|y|además|por favor)\b"
    r"[\s,.:;!–—-]*)+",
    re.IGNORECASE,
)
_ASKED_FOR = re.compile(
    r"^(?:(?:just )?(?:for later|for the record|for the future|for next time|as a note|note to self|remember(?: that)?"
    r"|please remember(?: that)?|keep in mind(?: that)?|note that|heads.?up|fyi|merk(?:e)? dir|zur info|para que conste"
    r"|recuerda(?: que)?|请?记住|覚えておいて)\b[\s,:–—-]*)",
    re.IGNORECASE,
)
_ASKED_AFTER = re.compile(
    r"[\s,;–—-]+(?:and )?(?:please )?(?:remember (?:that|this|it)|keep (?:that|this) in mind|note (?:that|this) down"
    r"|make a note(?: of (?:that|it|this))?|merk dir das(?: bitte)?|recuérdalo)[.!]*$",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:no longer|any ?more|isn'?t|aren'?t|dropped|left|abandoned|switched|moved|migrated|replaced|upgraded"
    r"|downgraded"
    r"|renamed|retired|sold|stopped using|got rid of|is gone|are gone|changed|since \w+|as of|is now|are now|it'?s"
    r"|not \S+"
    r"|instead of|nicht mehr|statt|gewechselt|umgestellt|seit|ya no|desde|ahora|cambiamos|已经|改成|换成|不再"
    r"|になりました|ではなく)\b|\bnow\b",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:just this once|this time|for now|for the moment|temporarily|right now|today only|the last (?:commit"
    r"|message|one)"
    r"|in this (?:file|pr|commit|function|branch|case|test)|wonder|weather|lunch|coffee|weekend|haha|lol|kidding"
    r"|joke)\b"
    r"|[:;]-?\)|😂|🤣",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"^(?:always|never|immer|nie|siempre|nunca)\b|\b(?:we|you|i|should|must|please|wir|du|sie|bitte"
    r"|hay que)\s+(?:\w+\s+)?"
    r"(?:always|never|immer|nie|siempre|nunca)\b|总是|永远|不要|常に|必ず",
    re.IGNORECASE,
)
"""Always and never are orders only where somebody is told to; elsewhere they describe."""
_USE = re.compile(r"^(?:so |then |please )?use\b", re.IGNORECASE)
_GENERAL_NOT = re.compile(r"\b(?:this|that|it|these|those|here|yet|above|below)\b", re.IGNORECASE)
_THIS_PLACE = re.compile(
    r"\bth(?:is|at|ese) (?:code ?base|project|repo(?:sitory)?|team|company|house|lab|office|product)\b", re.I
)


def heard(said: Said) -> list[Lesson]:
    """The lessons in a message that a person typed."""
    text = _INJECTED.sub("\n", said.text)
    prose = read_prose(text)
    if prose.is_document or not prose.sentences:
        return []
    words = lexicon(tongue_of(text))
    found: list[Lesson] = []
    for sentence in prose.sentences:
        kind = _kind(sentence, words)
        if kind is None:
            if (
                found
                and found[-1].kind is Kind.CHANGE
                and _USE.match(sentence.text)
                and not _PASSING.search(sentence.text)
            ):
                last = found.pop()  # what follows from the change belongs to it
                found.append(Lesson(f"{_ended(last.text)} {sentence.text}", last.kind, last.day, Source.TYPED))
            continue
        clean = cleaned(sentence.text)
        if len(terms_of(clean)) >= 2 and not holds_secret(clean):
            found.append(Lesson(written_out(clean, said.day), kind, said.day, Source.TYPED))
    return found


def _kind(sentence: Sentence, words: Lexicon) -> Kind | None:
    bare = sentence.bare
    if sentence.is_question or words.supposed.search(bare) or words.mocked.search(bare) or _PASSING.search(bare):
        return None
    if words.quoted.search(bare) or words.once.search(bare) or words.asks.search(bare):
        return None
    if _ASKED_FOR.match(_OPENING.sub("", bare)) or _ASKED_AFTER.search(bare):
        return Kind.NOTE
    opening = _OPENING.sub("", bare)
    if words.standing.search(bare):
        return Kind.RULE
    orders = words.forbids.search(opening) or (words.habit.search(opening) and _ORDERS.search(opening))
    if orders and not _is_about_now(opening):
        return Kind.RULE
    return Kind.CHANGE if _CHANGES.search(bare) or words.changed.search(bare) else None


def _is_about_now(text: str) -> bool:
    """Whether an order points at something at hand, so that it holds for this task and no longer."""
    return bool(_GENERAL_NOT.search(_THIS_PLACE.sub(" ", text)))


def cleaned(text: str) -> str:
    """A sentence without how it was led in."""
    said = _ASKED_AFTER.sub("", text.strip())
    for _ in range(2):
        said = _ASKED_FOR.sub("", _OPENING.sub("", said)).strip()
    return said[:1].upper() + said[1:] if said else text.strip()


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "。")) else f"{text}."


# -- logs ---------------------------------------------------------------------------------------------------------

_ENTRY = re.compile(r"^\s*[-*+]\s+(?:\[?\d{1,2}:\d\d(?::\d\d)?\]?\s*[-–—:]?\s*)?(?P<text>.+)$")
_SPEAKER = re.compile(r"^(?:[A-ZÀ-Ý][\w'’-]+|she|he|they|user)(?: (?:said|says|noted|added|wrote|told me))?: (?=\S)")
_SAID = re.compile(
    r"^(?P<who>[A-ZÀ-Ý][\w'’-]+|[Ss]he|[Hh]e|[Tt]hey|[Tt]he user) (?:corrected (?:me|that|this)|insisted|said|told me"
    r"|reminded me|confirmed)(?: that)?[:,]? (?=\S)"
)
_DECIDED = re.compile(
    r"^(?:decision|decided|agreed|rule|policy|note|reminder|remember|important|todo later)\s?[:–—-]\s*", re.I
)
_LASTING = re.compile(
    r"\b(?:never|always|must(?:n'?t)?|only|cannot|can'?t|may not|not allowed|no longer|prefers?|likes?|wants?|hates?"
    r"|dislikes?|from now on|instead of|rather than|goes? from|(?:is|are|was|were) (?:now|moved|renamed|replaced)"
    r"|moves? to|moved to|switch(?:ed|es)? to|deadline|due|contact|owner|responsible|in charge|lives? (?:at|in|on)"
    r"|stored|kept|arrives?|starts?|begins?|opens?|closes?|ends?|launch(?:es)?|freez(?:e|es)|expires?|because|decid\w+"
    r"|agreed|rule|policy|nie|immer|nur|darf nicht|muss|möchte|bevorzugt|ab sofort|statt|nunca|siempre|solo|debe"
    r"|prefiere|a partir de)\b"
    r"|https?://|\b[\w-]+(?:\.[\w-]+)+/\S|[\w.+-]+@[\w-]+\.\w+|必须|总是|不要|只能|喜欢|必ず|常に|禁止",
    re.IGNORECASE,
)
_CHORE = re.compile(
    r"^(?:re-?)?(?:ran|run|fixed|fix|renamed|restarted|started|stopped|printed|deployed|merged|committed|pushed|pulled"
    r"|updated|upgraded|cleaned|tested|debugged|installed|reviewed|answered|sent|wrote|read|looked|checked|added"
    r"|removed"
    r"|deleted|made|built|created|opened|closed|asked|tried|typo|tests? (?:took|green|red|pass)|lunch|coffee|break"
    r"|meeting|call|stand-?up|\w+ (?:asked for|was (?:down|slow|late|up)|is (?:down|broken)))\b",
    re.IGNORECASE,
)
_SECRET_WORD = re.compile(
    r"\b(?:password|passwort|passphrase|passwd|pwd|contraseña|secret|api[ _-]?key|private key|token|credentials?|pin)\b"
    r".{0,40}(?:\bis\b|:|=|\bist\b|\bes\b)|密码|暗証|パスワード",
    re.IGNORECASE,
)


def noted(name: str, text: str) -> Iterator[Lesson]:
    """The lessons in a daily log, each told from its day."""
    day = day_of(name)
    if day is None:
        return
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is None or holds_secret(entry["text"]):
            continue
        said = entry["text"].strip()
        plain = _SPEAKER.sub("", said)
        told = _SAID.sub("", plain)
        asked, plain = plain != said or told != plain, told
        plain = corrected(_DECIDED.sub("", plain))
        decided = bool(_DECIDED.match(_SPEAKER.sub("", said)))
        lasting = bool(_LASTING.search(plain)) or decided
        if not lasting or (_CHORE.match(plain) and not decided and not asked):
            continue
        is_rule = bool(_RULE.search(plain))
        clean = written_out(plain[:1].upper() + plain[1:], day)
        yield Lesson(clean, Kind.RULE if is_rule else Kind.NOTE, day, Source.LOG)


_RULE = re.compile(
    r"\b(?:never|always|must(?:n'?t)?|not allowed|from now on|prefers?|likes?|wants?|hates?|dislikes?|nie|immer|muss"
    r"|möchte|bevorzugt|nunca|siempre|debe|prefiere)\b|必须|总是|不要|必ず|禁止",
    re.IGNORECASE,
)


def holds_secret(text: str) -> bool:
    """Whether a text holds a password, key or token, or says that it does."""
    return bool(_SECRET_WORD.search(text) or find_secrets(text))
