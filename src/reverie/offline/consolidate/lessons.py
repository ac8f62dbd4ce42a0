"""What is worth keeping of what a person typed.

A lesson is a rule, a note that was asked for, or a change of how things are. Questions, tasks for now, suppositions,
jokes and secrets are none. It judges words alone; whether memory knows it already is looked at elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from reverie.memory.secrets.scan import find_secrets
from reverie.offline.consolidate.dating import written_out
from reverie.offline.consolidate.gather import Said
from reverie.offline.language.lexicon import Lexicon, lexicon
from reverie.offline.language.prose import Sentence, read_prose
from reverie.text.sentences import end_sentence
from reverie.text.tongue import tongue_of
from reverie.text.words import content_terms


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


_INJECTED = re.compile(r"<(?P<tag>[a-z][\w-]*+)[^<>]*+>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)
_OPENING = re.compile(
    r"^(?:(?:no|nope|nah|yes|yeah|ok(?:ay)?|right|well|so|and|also|but|oh|hm+|actually|sorry|thanks|thank you|hey"
    r"|please"
    r"|two things|one more thing|by the way|btw|fyi|note|nein|und|auch|ach|bitte|no,? pero|y|además|por favor)\b"
    r"[\s,.:;!–—-]*)+",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"^(?:(?:that|this|it)(?:'s| is|s) (?:outdated|wrong|old|stale|not (?:right|true|so)(?: any ?more)?)|wrong"
    r"|stop)\s*[,:;.–—-]\s*",
    re.IGNORECASE,
)
_ASKED_FOR = re.compile(
    r"^(?:(?:just |(?:and )?(?:one|another|something|a note)(?: more)?(?: thing)? )?"
    r"(?:for later|for the record|for the future|for next time|as a note|note to self"
    r"|remember(?: that)?|(?:one|another) (?:more )?thing to (?:remember|note|keep in mind)"
    r"|please remember(?: that)?|keep in mind(?: that)?|note that|heads.?up|fyi|merk(?:e)? dir|zur info|para que conste"
    r"|recuerda(?: que)?|请?记住|覚えておいて)\b[\s,:–—-]*)",
    re.IGNORECASE,
)
_NOTE_THAT = re.compile(
    r"^(?:please )?(?:also )?(?:note|remember|mind|bear in mind|keep in mind)(?:,? (?:also|too|as well),?)? that\s+",
    re.IGNORECASE,
)
_BY_THE_WAY = re.compile(r"(?<![\s,;–—-])[\s,;–—-]+(?:by the way|btw|übrigens|por cierto)[.!]*$", re.IGNORECASE)
_ASKED_AFTER = re.compile(
    r"(?<![\s,;–—-])[\s,;–—-]+(?:and )?(?:please )?(?:remember (?:that|this|it)"
    r"|keep (?:that|this) in mind|note (?:that|this) down"
    r"|make a note(?: of (?:that|it|this))?|merk dir das(?: bitte)?|recuérdalo)[.!]*$",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:no longer|any ?more|isn'?t|aren'?t|dropped|left|abandoned|switched|moved|migrated|replaced|upgraded"
    r"|downgraded"
    r"|renamed|retired|sold|stopped using|got rid of|is gone|are gone|changed|grew|raised|increased|reduced|cut to"
    r"|lowered|expanded|shrank|extended|shortened|bumped|since \w+|as of|is now|are now|it'?s"
    r"|not \S+"
    r"|instead of|nicht mehr|statt|gewechselt|umgestellt|seit|ya no|desde|ahora|cambiamos|已经|改成|换成|不再"
    r"|になりました|ではなく)\b|\bnow\b",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:just this once|this time|for now|for the moment|temporarily|right now|today only|the last (?:commit"
    r"|message|one)"
    r"|in this (?:file|pr|commit|function|branch|case|test)|wonder|weather|lunch|coffee|weekend|haha|lol|kidding"
    r"|never mind"
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
_NO_MORE = re.compile(r"\b(?:no longer|any ?more|nicht mehr|ya no)\b|不再", re.IGNORECASE)
_FIRST_PERSON = re.compile(
    r"^I (?P<really>generally |usually |really |much )?(?P<verb>prefer|like|hate|dislike|want)\b"
)
_DISPLEASED = re.compile(r"^(?:no|nope|nah|wrong|stop|nein|falsch)\b", re.IGNORECASE)
_USE_NOT = re.compile(r"^(?:please )?use\b.+\b(?:not|instead of|rather than|never)\b", re.IGNORECASE)
_PREFERS = re.compile(
    r"^i (?:generally |usually |really |much )?(?:prefer|like|hate|dislike|don'?t like|can'?t stand)\b"
    r"|^ich (?:bevorzuge|mag)\b"
    r"|^prefiero\b",
    re.IGNORECASE,
)
_ONLY_GONE = re.compile(
    r"^(?:(?:the |our |das |die |der |el |la )?\S+(?: \S+)? (?:is|are|was|were|has been|have been|ist|sind|wurde|está) "
    r"(?:gone|dead|history|retired|discontinued|switched off|shut down|no more|weg|abgeschafft|abgeschaltet|muerto)"
    r"|(?:we|they|wir) (?:have |haben )?(?:dropped|left|abandoned|retired|ditched|got rid of|stopped using"
    r"|(?:no longer|don'?t) (?:use|have)) [^,;]{2,40}?(?: any ?more)?"
    r"|[^,;]{2,40} (?:doesn'?t|don'?t|isn'?t|aren'?t)[^,;]{0,30} any ?more|(?:ya no|no longer)[^,;]{2,40})"
    r"(?: (?:in|since|last|seit|desde) [^,;]{2,30})?[.!]*$",
    re.IGNORECASE,
)
"""Says only what is no more: what is there instead may be said in the next sentence."""
_FEWEST_WORDS = 3
_MAIN_CLAUSE = re.compile(r"[,;:(–—]|\s(?:because|since|so|as|weil|porque)\s")
_GENERAL_NOT = re.compile(r"\b(?:this|that|it|these|those|here|yet|above|below)\b", re.IGNORECASE)
_NO_SUBJECT = re.compile(r"^(?:should|must|needs? to|has to|ought to) (?:not )?\w+", re.IGNORECASE)
"""What it is that should be so lies before both: it is at hand."""
_HAPPENED = re.compile(
    r"\bno [\w' -]{1,40}?\b(?:was|were|has|have|had|got|came|comes|happens?|happened|appears?|shows?)\b"
)
"""Tells what did not happen, and forbids nothing."""
_NAMES = re.compile(r"(?:https?://|[@~./])\S+|\S+/\S+|\b\S+\.[a-z]{1,5}\b")
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
    gone, was_asked = "", False
    for sentence in prose.sentences:
        kind = _kind(sentence, words)
        if kind is Kind.RULE and was_asked and not _stands(sentence.text, words):
            kind = None  # how to do what was asked just before
        was_asked = was_asked or sentence.is_question
        if kind is None:
            if (
                found
                and found[-1].kind is Kind.CHANGE
                and _USE.match(sentence.text)
                and not _PASSING.search(sentence.text)
            ):
                last = found.pop()  # what follows from the change belongs to it
                found.append(Lesson(f"{end_sentence(last.text)} {sentence.text}", last.kind, last.day, Source.TYPED))
            continue
        clean = cleaned(sentence.text)
        if gone and kind is Kind.CHANGE and not _ONLY_GONE.match(clean):
            clean = f"{end_sentence(gone)} {clean}"  # what came in the place of what is gone
            if found and found[-1].text == written_out(gone, said.day):
                found.pop()
        gone = clean if kind is Kind.CHANGE and _ONLY_GONE.match(clean) else ""
        if kind is Kind.NOTE and len(_NAMES.sub(" ", clean).split()) < _FEWEST_WORDS:
            continue  # it names something and says nothing of it
        if len(content_terms(clean)) >= 2 and not holds_secret(clean):
            found.append(Lesson(written_out(clean, said.day), kind, said.day, Source.TYPED))
    return found


def _kind(sentence: Sentence, words: Lexicon) -> Kind | None:
    bare = sentence.text
    if sentence.is_question or words.supposed.search(bare) or words.mocked.search(bare) or _PASSING.search(bare):
        return None
    if words.quoted.search(bare) or words.once.search(bare) or words.asks.search(bare):
        return None
    if _ASKED_FOR.match(_OPENING.sub("", bare)) or _ASKED_AFTER.search(bare):
        return Kind.NOTE
    opening = _OPENING.sub("", bare)
    if words.standing.search(bare):
        return Kind.RULE
    if _NO_MORE.search(bare):
        return Kind.CHANGE
    forbids = words.forbids.search(opening) and not _HAPPENED.search(opening)
    orders = forbids or (words.habit.search(opening) and _ORDERS.search(opening))
    use_not = _USE_NOT.match(opening) and (_DISPLEASED.match(bare) or _THIS_PLACE.search(bare))
    orders = orders or _PREFERS.search(opening) or use_not
    if orders and not _is_about_now(opening):
        return Kind.RULE
    return Kind.CHANGE if _CHANGES.search(bare) or words.changed.search(bare) else None


def _is_about_now(text: str) -> bool:
    """Whether an order points at something at hand, so that it holds for this task and no longer."""
    return bool(_NO_SUBJECT.match(text)) or bool(
        _GENERAL_NOT.search(_MAIN_CLAUSE.split(_THIS_PLACE.sub(" ", text), maxsplit=1)[0])
    )


def _stands(text: str, words: Lexicon) -> bool:
    """Whether an order says itself that it holds for more than the task at hand."""
    return bool(words.standing.search(text) or words.habit.search(text) or _THIS_PLACE.search(text))


def cleaned(text: str) -> str:
    """A sentence without how it was led in."""
    said = _NOTE_THAT.sub("", _BY_THE_WAY.sub("", _ASKED_AFTER.sub("", text.strip())))
    for _ in range(2):
        said = _ASKED_FOR.sub("", _WRONG.sub("", _OPENING.sub("", said))).strip()
    said = _FIRST_PERSON.sub(r"The user \g<really>\g<verb>s", said[:1].upper() + said[1:])
    return said or text.strip()


_SECRET = re.compile(
    r"\b(?:password|passwort|passphrase|passwd|pwd|contraseña|secret|api[ _-]?key|private key|token|credentials?|pin)\b"
    r".{0,40}?(?:\bis\b|:|=|\bist\b|\bes\b)\s*(?!in\b|stored|kept|at\b|on\b|with\b|not\b|no\b|required|managed|rotated"
    r"|under|the\b|a\b|an\b|from\b|changed|gone|wrong|im\b|bei\b|en\b)\S|(?:密码|暗証番号|パスワード)[是はが:：]",
    re.IGNORECASE,
)


def holds_secret(text: str) -> bool:
    """Whether a text holds a password, key or token, or says that it does."""
    return bool(_SECRET.search(text) or find_secrets(text))
