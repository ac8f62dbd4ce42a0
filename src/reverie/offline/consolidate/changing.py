"""What a change that somebody told of does to a statement in memory: which value gives way to which.

`We dropped A, it's B now` makes B of A wherever memory says A; `it's 42 cows` makes 42 of the cows that memory counts.
Values of one kind replace each other and nothing else does, so that what is not understood is not touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from itertools import pairwise
from typing import Final

from reverie.offline.consolidate.swapping import CLAUSE, LIGHT, NAME_LIKE, Swap, spelled_in
from reverie.text.folding import word_set
from reverie.text.sameness import overlap
from reverie.text.values import subject_of, values_of
from reverie.text.word_lists import NUMBER_WORDS
from reverie.text.words import content_terms

_TOKEN = r"(?:`[^`\n]+`|[^\s,;:()“”\"]+)"
_FROM_TO = re.compile(
    rf"\b(?:from|von|de)\s+(?:the\s+)?(?P<old>{_TOKEN}(?:\s{_TOKEN}){{0,2}}?)\s+(?:over )?(?:to|auf|zu|a)\s+(?:the\s+)?"
    rf"(?P<new>{_TOKEN})(?P<unit>\s{_TOKEN})?",
    re.IGNORECASE,
)
_GIVEN_UP = re.compile(
    r"\b(?:dropped|left|abandoned|removed|retired|ditched|replaced|stopped (?:using|with)|done with|finished with"
    r"|got rid of|moved (?:off"
    r"|away from)"
    r"|no longer(?: \w+){0,2}(?: (?:to|with|on|at|by|from))?|not|instead of|rather than|nicht mehr|statt|ya no \w+"
    r"|en vez de|不再\w?|不是|ではなく)\s+(?:the |a |an |our |die |der |das |el |la )?",
    re.IGNORECASE,
)
_WEAK = re.compile(r"(?:not|instead of|rather than|不是|ではなく)\s+(?:the |a |an |our )?$", re.IGNORECASE)
_IS_GONE = re.compile(
    r"(?P<old>[^\s,;:]+(?:\s[^\s,;:]+)?)\s+(?:is|are|was|were|has been|have been|ist|sind)\s+"
    r"(?:gone|dead|replaced|retired|history|deprecated|discontinued|closed|sold|weg|abgeschafft)\b",
    re.IGNORECASE,
)
_NO_MORE = re.compile(r"\b(?:any ?more|no longer|nicht mehr|ya no)\b", re.IGNORECASE)
_WENT = re.compile(
    r"(?P<old>[A-ZÀ-Ý][\w'’-]+)\s+(?:has |is |hat |ist )?(?:left|quit|retired|leaving|moved (?:on|to)|resigned"
    r"|gekündigt|weg)\b"
)
_PERSON_BEFORE = re.compile(r"(?:\b(?!We\b|They\b|I\b)[A-ZÀ-Ý][\w'’-]+|\b(?:he|she))\s(?:has\s|had\s)?$")
_TAKES_OVER = re.compile(
    r"(?:^|[,;.:]\s*|\band\s+|\bnow\s+)(?P<new>[A-ZÀ-Ý][\w'’-]+)\s+(?:does|is|handles|takes|took|succeeded|succeeds|owns|runs|leads|has|manages"
    r"|covers|approves|macht|übernimmt|leitet|lleva|dirige)\b"
)
_RENAMED = re.compile(
    r"\b(?:renamed|is called|are called|heißt jetzt|se llama ahora)\s+(?:to\s+)?(?P<new>[\w.-]+\w)", re.IGNORECASE
)
_CALLED = re.compile(r"\b(?:called|named|heißt|se llama)\s+(?P<old>`?[\w.-]*\w`?)", re.IGNORECASE)
_NOT_THIS = re.compile(r"\b(?:not|instead of|rather than|no longer|statt|nicht|no)\s+(?:[^\W\d_]+\s+)?$", re.IGNORECASE)
_CODE = re.compile(r"`[^`\n]+`")
_USED = re.compile(r"\b(?:use|it'?s|switched to|moved to)\s+(?P<new>[a-z][\w.-]*\w)\b", re.IGNORECASE)
_ARRIVES = re.compile(
    r"\b(?i:it'?s|its|it is|they'?re|we'?re on|is|are|now|use|using|uses|to|with|on|at|by|in|via|through|over|be|as"
    r"|into|from|jetzt|nutzen|mit"
    r"|auf|es"
    r"|ahora|usamos|con)\s+(?:now\s+)?(?:the |a |an |our )?(?P<new>`[^`\n]+`|(?:(?:Frau|Herr|Mrs?|Ms|Dr"
    r"|Prof)\.?\s)?[A-ZÀ-ÝŠŽ][\w.+/-]*\w|[A-Za-z]*\d[\w.-]*\b(?!:\d))"
)
_MOVES = re.compile(
    r"\b(?:mov(?:es?|ed)|postponed?|push(?:es|ed)?|shift(?:s|ed)|delay(?:s|ed)|reschedul\w+|brought forward|slips?"
    r"|slipped"
    r"|is now|now|not|verschoben|aplazad\w)\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"\b(?:from|as of|starting|beginning|effective|ab|a partir de|desde)\b.{0,60}?(?P<day>\d{4}-\d\d-\d\d)",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:now|since|not|no longer|any ?more|it'?s|its|is|are|actually|moved?|changed|grew|raised|increased|reduced|cut"
    r"|lowered|expanded|shrank|extended|shortened|bumped|upgraded|downgraded|switched|goes|from now on|keep|jetzt|seit"
    r"|nicht|ahora|desde|moves|postponed|rescheduled|verschoben|until|new)\b|现在|改|已经|今|変更",
    re.IGNORECASE,
)
"""A number said in passing changes nothing; it must be said of something that it is so."""
_LIES = re.compile(
    r"\b(?:mov(?:es?|ed)|relocated|migrated|(?:is|are|lives?) now|now (?:at|in|on|under)|liegt jetzt|umgezogen"
    r"|ahora está)\b",
    re.IGNORECASE,
)
_HAS_MOVED = re.compile(
    r"(?P<what>[^,;:.]{3,40}?)\s(?:has |have )?(?:moved|migrated|went over|relocated)\s(?:over )?to\b", re.IGNORECASE
)
_IS_WHERE = re.compile(
    r"\s(?:is|are|lives?|served|stored|hosted|kept|found|located)\b(?:\s\w+)?\s(?:at|in|on|from|under)\s", re.IGNORECASE
)
_STOP: Final = word_set(
    """the a an our this that it in of to for and or is are we you all any i he she they who everyone everybody someone
    nobody these those there here which what wir ich du er sie es man alle der die das ein eine el la los las nosotros
    yo él ella ellos ellas ustedes todos by with from on at dr mr mrs ms prof frau herr señor señora"""
)
_CHANGED_THERE = re.compile(
    r"\b(?:moves? from|moved from|replaces|replaced|used to|formerly|instead of|no longer|not)\b", re.I
)


def swaps(
    statement: str, said: str, about: frozenset[str], is_only: Callable[[str], bool] = lambda _kind: True
) -> list[Swap]:
    """What `said` changes in a statement of memory. `about`: the words of that memory's name and description.

    `is_only` says whether a kind of value stands in one statement of the whole memory: then it need not be named.
    """
    tells_of_change = bool(_CHANGED_THERE.search(statement))  # both names stand there, each in its place
    found = [] if tells_of_change else [*_from_to(statement, said), *_given_up(statement, said)]
    if not found and _shares(statement, said, about):
        found += _renamed(statement, said)
    if (not found or _shares(statement, said, about)) and _TELLS.search(said):
        found += [one for one in _counted(statement, said, is_only) if all(one.old != other.old for other in found)]
    return list(dict.fromkeys(found))


def takes_the_place(said: str, statement: str) -> bool:
    """Whether what was said replaces a statement as a whole: where something is now, or what is not done any more."""
    if _NO_MORE.search(said):
        pairs = (" ".join(two) for two in pairwise(re.findall(r"[^\W_]+", said.lower())))
        return any(len(content_terms(pair)) == 2 and pair in statement.lower() for pair in pairs)
    moved = _HAS_MOVED.search(said)
    if moved is None or not _IS_WHERE.search(statement):
        return False
    return bool(content_terms(moved["what"]) & content_terms(_IS_WHERE.split(statement, maxsplit=1)[0]))


def is_for_later(said: str, day: date) -> bool:
    """Whether a change holds only from a later day on, so that what memory says is still true."""
    found = _LATER.search(said)
    return found is not None and found["day"] > day.isoformat()


def _from_to(statement: str, said: str) -> list[Swap]:
    found: list[Swap] = []
    for match in _FROM_TO.finditer(said):
        old, new = match["old"].strip("."), match["new"].strip(".!")
        if old.isdigit() and match["unit"] and not spelled_in(statement, f"{old}{match['unit'].rstrip('.!')}"):
            continue
        if spelled := spelled_in(statement, old):
            found.append(Swap(spelled, new))
    return found


def _given_up(statement: str, said: str) -> list[Swap]:
    """Names and nouns that were given up, each with the name that comes in its place."""
    found: list[Swap] = []
    places = [
        (match.end(), bool(_WEAK.search(match[0])))
        for match in _GIVEN_UP.finditer(said)
        if not (match[0].lower().startswith("left") and _PERSON_BEFORE.search(said[: match.start()]))
    ]
    olds: list[tuple[str, bool, int]] = []
    for at, is_weak in places:
        tokens = re.findall(r"[^\s,;:()“”\".]+(?:\.\d+)*", said[at : at + 60])[:3]
        for size in range(len(tokens), 0, -1):
            if (old := spelled_in(statement, " ".join(tokens[:size]))) and not set(old.lower().split()) <= _STOP:
                olds.append((old, is_weak, at))
                break
    for match in _IS_GONE.finditer(said):
        words = match["old"].split()
        old = next(
            (
                spelled
                for word in reversed(words)
                if word.lower() not in _STOP and (spelled := spelled_in(statement, word))
            ),
            None,
        )
        if old:
            olds.append((old, False, match.start()))
    for match in _NO_MORE.finditer(said):
        before = re.findall(r"[^\s,;:()“”\".]+", said[max(0, match.start() - 50) : match.start()])[-5:]
        olds += [
            (old, False, 0)
            for word in before
            if NAME_LIKE.fullmatch(word)
            and (old := spelled_in(statement, word))
            and not _opens_both(statement, said, word)
        ]
    olds += [(old, False, 0) for match in _WENT.finditer(said) if (old := spelled_in(statement, match["old"]))]
    negated = [match.end() for match in _GIVEN_UP.finditer(said)]
    for old, is_weak, _ in olds:
        if set(old.lower().split()) <= _STOP:
            continue
        is_code = any(old in span for span in _CODE.findall(statement))
        is_name = bool(NAME_LIKE.fullmatch(old)) or is_code
        new = _arriving(statement, said, old, negated) if is_name else None
        if new is None and is_code and (plain := _USED.search(said)) and plain["new"].lower() != old.lower():
            new = plain["new"]
        if new is not None and (not is_weak or is_name):
            found.append(Swap(old, _whole_name(said, new)))
    return found


def _whole_name(said: str, new: str) -> str:
    """A name with the names right behind it: `Ada` of `it's Ada Byron now`."""
    found = re.search(rf"(?<![\w]){re.escape(new)}(?:\s[A-ZÀ-ÝŠŽ][\w+-]*\w)+", said) if new[:1].isupper() else None
    return found[0] if found else new


def _opens_both(statement: str, said: str, word: str) -> bool:
    """Whether a word is written large only because sentences begin with it: then it is what both speak of."""
    return all(re.search(rf"(?:^|[.!?]\s+|^\w+,?\s){re.escape(word)}\b", text) for text in (statement, said))


def _arriving(statement: str, said: str, old: str, negated: list[int]) -> str | None:
    """The first name that comes in, of the kind of the one that goes, and that the statement does not have yet."""
    wants_digits = any(char.isdigit() for char in old)
    options = [
        match["new"].rstrip(".")
        for match in _ARRIVES.finditer(said)
        if match.start("new") not in negated and not spelled_in(statement, match["new"]) and not _is_time(match["new"])
    ]
    if not options:
        options = [match["new"] for match in _TAKES_OVER.finditer(said) if not spelled_in(statement, match["new"])]
    options = [one for one in options if one.lower() not in content_terms(old) and one.lower() != old.lower()]
    same = [one for one in options if any(char.isdigit() for char in one) == wants_digits]
    return next(iter(same), None)


def _renamed(statement: str, said: str) -> list[Swap]:
    new, old = _RENAMED.search(said), _CALLED.search(statement)
    return [Swap(old["old"].strip("`"), new["new"])] if new and old else []


def _counted(statement: str, said: str, is_only: Callable[[str], bool]) -> list[Swap]:
    """Numbers, days and times of one kind that differ."""
    there, here = values_of(statement), values_of(said)
    found: list[Swap] = []
    for kind in sorted(there.kinds & here.kinds, key=lambda one: (one == "number", one)):
        if (
            kind == "name"
            or (kind == "date" and not _MOVES.search(said))
            or (kind == "place" and not _LIES.search(said))
        ):
            continue
        if kind == "number" and (found or len(there.of(kind)) > 1 or len(_shared(statement, said, frozenset())) < 2):
            continue
        meant = {value for value in here.of(kind) if not _is_denied(said, value)}
        old, new = there.of(kind) - meant, meant - there.of(kind)
        spelled, wanted = (
            _spelled(text, next(iter(one))) if len(one) == 1 else None for text, one in ((statement, old), (said, new))
        )
        if kind == "weekday" and spelled and wanted:
            wanted = wanted.rstrip("s") + ("s" if spelled.endswith("s") else "")
        if spelled and wanted and _agree(_clause(statement, spelled), _clause(said, wanted), kind, is_only):
            found.append(Swap(spelled, wanted))
    return found


def _clause(text: str, value: str) -> str:
    """The part of a sentence that a value stands in."""
    return next((part for part in CLAUSE.split(text) if value in part), text)


def _agree(statement: str, said: str, kind: str, is_only: Callable[[str], bool]) -> bool:
    """Whether two clauses speak of the same thing: half of what the shorter one speaks of is in both.

    Whoever names nothing but what is counted (`it's 42 cows`) means the one place where memory counts it.
    """
    unit = kind.removeprefix("number ")
    counted = content_terms(unit) if kind.startswith("number ") else frozenset[str]()
    subject, its = ((subject_of(text) - LIGHT) | counted for text in (statement, said))
    if not its - counted:
        return kind.startswith("number ") and unit not in _UNITS and is_only(kind)
    shared = subject & its
    is_common = unit in _UNITS or not counted
    return bool(shared - counted if is_common else shared) and overlap(subject, its) >= _AGREED


_AGREED: Final = 0.5
_UNITS: Final = word_set(
    """second minute hour day week month year euro dollar percent eur usd gb mb kb tb ms s h m cm mm km kg g % line
    character time file page word"""
)


def _shares(statement: str, said: str, about: frozenset[str], without: str = "") -> bool:
    """Whether the two speak of the same thing: a word that is no value stands in both."""
    return bool(_shared(statement, said, about) - content_terms(without))


def _shared(statement: str, said: str, about: frozenset[str]) -> frozenset[str]:
    return (subject_of(said) & (subject_of(statement) | about)) - LIGHT


def _is_denied(said: str, value: str) -> bool:
    """Whether a value is named only to say that it is no more."""
    spelled = _spelled(said, value)
    places = [match.start() for match in re.finditer(re.escape(spelled), said)] if spelled else []
    return bool(places) and all(_NOT_THIS.search(said[:at]) for at in places)


def _spelled(text: str, value: str) -> str | None:
    """A value as the text writes it: `42`, `1,200`, `eight`, `Tuesday`."""
    if found := spelled_in(text, value):
        return found
    for match in re.finditer(r"\d+(?:,\d{3})+|[^\W\d_]+", text):
        if match[0].replace(",", "") == value or NUMBER_WORDS.get(match[0].lower()) == value:
            return match[0]
        if match[0].lower().rstrip("s") == value:
            return match[0]
    return None


def _is_time(text: str) -> bool:
    return bool(
        re.fullmatch(
            r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*|\w+day|(?:19|20)\d\d(?:-\d\d){0,2}|spring|summer"
            r"|autumn|winter",
            text,
            re.IGNORECASE,
        )
    )
