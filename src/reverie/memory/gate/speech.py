"""Who said what in a conversation: the user's messages one by one, and all text of others. Answers "did the user say
this?" and "do these words come from somebody else?" for words, names, numbers, dates and addresses. It judges texts
only; the rule that uses it is in `rule`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import Final

from reverie.memory.changes import Evidence
from reverie.memory.gate.requests import (
    OWN_RULES,
    asks_to_forget,
    is_assent,
    is_for_once,
    is_lasting,
    is_question,
    last_question,
    points_at_text,
    single_question,
)
from reverie.memory.gate.statement import DATE, PREFIX, EvidenceText, Features, features, runs_of
from reverie.moments import local_day
from reverie.text.dates.phrases import find_days
from reverie.text.folding import visible
from reverie.text.patterns import late
from reverie.text.sentences import sentences
from reverie.text.tongue import language_of
from reverie.text.word_lists import STOP_WORDS
from reverie.text.words import CJK, content_terms, is_negated, words
from reverie.types import Origin

_RARE: Final = 8
_FREQUENT: Final = 60
"""Passages of others that have a word: up to so many it counts whole, and half."""
_LEAST_WORDS: Final = 5
_SURE_WORDS: Final = 9
"""Words that are enough to recognise a language, and to see that it is none of those we know."""
_LITTLE_SHARE: Final = 0.15
"""The share of little words that a text has in its own language."""

_NEAR_PASTE: Final = 14
"""Content words that a request to keep the paste beside it may have."""

_SHORT_LINES: Final = 240
"""Characters of a few lines that count as one passage."""
_LOOK_ALIKES: Final = str.maketrans(
    "аеорсухіјѕԁһӏкмтвнгзАВЕКМНОРСТУХІЈЅοαενρτυκχ",
    "aeopcyxijsdhlkmtbhrzABEKMHOPCTYXIJSoaevptukx",
)
_MIXED = late(r"[A-Za-z][\u0370-\u03ff\u0400-\u04ff]|[\u0370-\u03ff\u0400-\u04ff][A-Za-z]")

_INJECTED = late(
    r"<(system-reminder|persisted-output|command-[\w-]++|local-command-[\w-]++|bash-[\w-]++|task-notification|memory"
    r"|recalled[\w-]*+)(?!\w)[^<>]*+>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_DAY = late(r"(?<!\d)(\d{4}-\d\d(?:-\d\d)?)(?!\d)(?:\s?[(（][^\s()（）]{1,4}[)）])?")
"""A date, perhaps with its weekday: `2026-05-06 (Wed)`."""
_LATIN = late(r"[A-Za-z][A-Za-z0-9_.+-]+")


class UserMessage(EvidenceText):
    """One message of the user, or a question of the model that the user said yes to (`how` is `yes`)."""

    def __init__(self, block: Evidence, text: str, *, how: str = "", can_confirm: bool | None = None) -> None:
        super().__init__([text])
        self.block = block
        self.how = how or block.origin.value
        self.can_confirm = block.origin is Origin.TYPED if can_confirm is None else can_confirm

    @cached_property
    def day(self) -> date | None:
        return local_day(self.block.at) if self.block.at else None

    @cached_property
    def dates(self) -> frozenset[str]:
        """The days that it means, and its own, in ISO form."""
        written = set(DATE.findall(self.text))
        if self.day is not None:
            written |= {self.day.isoformat(), *(one.moment.iso for one in find_days(self.text[:4_000], self.day))}
        return frozenset(written)

    @cached_property
    def stated(self) -> str:
        """What it says, without its questions."""
        return self.text if self.how == "yes" else _without_questions(self.text)

    def denies(self, wanted: frozenset[str]) -> bool | None:
        """Whether its sentences about these words deny something; None if they say both or nothing."""
        said = {
            is_negated(part)
            for part in re.split(r"[.!?;,:。！？，、；\n]+|\s[–—-]\s", self.text)
            if (found := content_terms(part)) and 2 * len(found & wanted) >= min(len(found), len(wanted))
        }
        return said.pop() if len(said) == 1 else None


class Speech:
    """What was said, by origin. `said` are the user's messages that may anchor a statement."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.said: list[UserMessage] = []
        self.blocks: list[Evidence] = []
        """All texts of others, oldest first."""
        own: list[str] = []
        asked: list[str] = []
        refused: list[str] = []
        answers: list[str] = []
        answered: list[tuple[Evidence, Evidence]] = []
        last: Evidence | None = None
        adopted = _adopted_pastes(evidence)
        since: list[Evidence] = []
        self._before: dict[int, list[Evidence]] = {}
        for at, block in enumerate(evidence):
            text = visible(block.text)
            if at in adopted:
                own.append(text)
                self.said.append(UserMessage(block, text, how="adopted", can_confirm=False))
            elif block.origin.is_users:
                own_words = _INJECTED.sub(" ", text)
                self.blocks += [Evidence(Origin.CODE, found[0]) for found in _INJECTED.finditer(text)]
                own.append(own_words)
                self._before[id(block)], since = since, []
                if block.is_new:
                    self.said.append(UserMessage(block, own_words))
                    question = last_question(visible(last.text)) if last is not None else ""
                    if question and not is_for_once(question):
                        (refused if is_negated(own_words) else asked).append(question)
                    if last is not None and is_assent(own_words):
                        answered.append((last, block))
                last = None
            elif block.origin is Origin.MODEL:
                last = block if text.strip() else last
                answers.append(text)
            else:
                shown = text + _hidden(block.text)
                self.blocks.append(Evidence(block.origin, shown, block.message, block.at, block.is_new))
                since.append(self.blocks[-1])
        self.foreign = EvidenceText(block.text for block in self.blocks)
        self.own, self.claimed = EvidenceText(own), EvidenceText(map(_without_questions, own))
        self.said += [yes for asks, answer in answered if (yes := self._yes(asks, answer)) is not None]
        agreed = [one.text for one in self.said if one.how == "yes"]
        self.own = EvidenceText([*own, *agreed])
        """Everything the user wrote, also before the new part."""
        self.claimed = EvidenceText([self.claimed.text, *agreed])
        """The same without questions: asking about a text does not make it theirs."""
        self.asked = EvidenceText(asked)
        """What the model asked and the user answered: these words are nobody's."""
        self.refused = EvidenceText([*asked, *refused])
        """The same with what the user said no to: for a statement that says no too."""
        self.stated = EvidenceText([message.stated for message in self.said])
        self.new = EvidenceText(message.text for message in self.said)
        self._answers = answers

    def _yes(self, asked: Evidence, answer: Evidence) -> UserMessage | None:
        """A yes makes one question of the model the user's own, unless it asks for something of somebody else."""
        question = single_question(visible(asked.text))
        if question is None or is_for_once(question) or self._is_risky(one := features(question)):
            return None
        named = foreign_names(one, self.own, self.foreign)
        confirms = answer.origin is Origin.TYPED and is_lasting(question) and not named
        return UserMessage(answer, question, how="yes", can_confirm=confirms)

    def _is_risky(self, one: Features) -> bool:
        """Whether it names an address that the user did not write, or repeats a command or a run of words of others."""
        nothing = EvidenceText(())
        return bool(self.foreign_addresses(one, nothing)) or self.is_quoted(one, nothing)

    def before(self, message: UserMessage) -> list[Evidence]:
        """The texts of others between a message and the user's message before it."""
        return self._before.get(id(message.block), [])

    def anchor(self, one: Features, wanted: frozenset[str]) -> UserMessage | None:
        """The message that a statement rests on: it has a third of the wanted words, and two of them. Between languages
        it has two names, numbers, dates or Latin words of the statement."""
        best: tuple[int, UserMessage] | None = None
        for message in self.said:
            found = message.count(wanted)
            least = 1 if len(wanted) <= 2 else max(2, -(-len(wanted) // 3))
            if found < least and not self.anchors_across(one, message):
                continue
            if best is None or found > best[0]:
                best = found, message
        return best[1] if best else None

    def anchors_across(self, one: Features, message: UserMessage) -> bool:
        if not is_other_language(one.text, message.text):
            return False
        latin = {word.lower() for word in _LATIN.findall(message.text)} if CJK.search(message.text) else set[str]()
        mine = {word.lower() for word in _LATIN.findall(one.text)} if CJK.search(one.text) else set[str]()
        checked = one.names | one.numbers | one.dates | mine | {term for term in one.terms if term in latin}
        shared = {
            value
            for value in checked
            if value in message.lower or value in message.dates or value in message.numbers or message.has(value)
        }
        if len(shared) >= 2:
            return True
        return len(shared) == 1 and len(checked) == 1 and not self._is_risky(one)

    def features(self, statement: str) -> Features:
        """Takes a statement apart. A day or time that the user said in other words counts as said: its digits are not
        among the words to look for."""
        one = features(statement)
        parts = [found[0] for found in _DAY.finditer(statement) if any(found[1] in each.dates for each in self.said)]
        parts += [number for number in one.numbers if any(each.has_time(number) for each in self.said)]
        return replace(one, terms=one.terms - content_terms(" ".join(parts))) if parts else one

    def is_quoted(self, one: Features, known: EvidenceText) -> bool:
        """Whether four content words in a row are in the text of others, and neither did the user state all of them
        nor does the memory have them."""
        return any(
            run in self.foreign.runs
            and run not in known.runs
            and not all(term not in one.terms or self.claimed.has(term) for term in run)
            for run in runs_of(one.text)
        )

    def foreign_addresses(self, one: Features, known: EvidenceText) -> list[str]:
        """Addresses that the user did not write, and commands that somebody else did."""
        found = [
            text for text in one.addresses if text.lower() not in self.own.lower and text.lower() not in known.lower
        ]
        for command in one.commands:
            bare = " ".join(command.split()).lower()
            if bare not in self.own.lower and bare not in known.lower and bare in self._foreign_line:
                found.append(command)
        return found

    def foreign_share(self, one: Features) -> tuple[float, int]:
        """How many of its words a sentence of somebody else, or a few lines, have that the user never used, and how
        many in all. A word that is all over their texts says little: of the first, it counts half or nothing."""
        counts: dict[int, float] = {}
        all_of: dict[int, int] = {}
        answered = self.refused if is_negated(one.text) else self.asked
        for term in one.terms:
            places = self._sentences.get(term[:PREFIX] if len(term) >= PREFIX and term.isalpha() else term, ())
            for at in places:
                all_of[at] = all_of.get(at, 0) + 1
            if self.claimed.has(term) or answered.has(term):
                continue
            weight = 1.0 if len(places) <= _RARE else 0.5 if len(places) <= _FREQUENT else 0.0
            for at in places if weight else ():
                counts[at] = counts.get(at, 0) + weight
        return max(((counts[at], all_of[at]) for at in counts), default=(0.0, 0))

    def model_share(self, one: Features) -> int:
        """How many of its words one answer of the model has that the user never used."""
        wanted = [term for term in one.terms if not self.own.has(term) and not self.asked.has(term)]
        return max((EvidenceText([text]).count(wanted) for text in self._answers), default=0)

    @cached_property
    def _sentences(self) -> dict[str, set[int]]:
        """Where each word of others is, by sentence; long words by their first letters."""
        found: dict[str, set[int]] = {}
        number = 0
        for block in self.blocks:
            for part in _passages(block.text):
                number += 1
                for term in content_terms(part):
                    key = term[:PREFIX] if len(term) >= PREFIX and term.isalpha() else term
                    found.setdefault(key, set()).add(number)
        return found

    def foreign_numbers(self, one: Features, known: EvidenceText) -> list[str]:
        """Numbers of two digits and more that others wrote and the user did not."""
        return [
            number
            for number in sorted(one.numbers)
            if len(number) > 1
            and self.foreign.has_number(number)
            and not any(text.has_number(number) or text.has_time(number) for text in (self.own, self.asked, known))
            and not any(message.day is not None and str(message.day.year) == number for message in self.said)
        ]

    @cached_property
    def others_ask_to_forget(self) -> bool:
        """Whether a text of others asks to forget something."""
        return any(asks_to_forget(block.text) for block in self.blocks)

    @cached_property
    def _foreign_line(self) -> str:
        return " ".join(self.foreign.lower.split())


def _adopted_pastes(evidence: Sequence[Evidence]) -> set[int]:
    """The pastes that the user asked to keep in the same breath: these are the user's words too."""
    found: set[int] = set()
    for at, block in enumerate(evidence):
        is_wanted = points_at_text(block.text, _NEAR_PASTE) or OWN_RULES.search(block.text)
        if not (block.is_new and block.origin.is_users and is_wanted):
            continue
        for step in (-1, 1):
            near = at + step
            while 0 <= near < len(evidence) and evidence[near].origin.is_given:
                if evidence[near].origin is Origin.PASTED:
                    found.add(near)
                near += step
    return found


def _without_questions(text: str) -> str:
    return "\n".join(part for part in sentences(text, is_chat=True) if not is_question(part))


def _passages(text: str) -> Iterator[str]:
    """The sentences of a text, and short lines in a row together: a paragraph may be broken anywhere."""
    yield from (part for part in re.split(r"(?<=[.!?;。！？])\s|\n+", text) if part.strip())
    lines = [line for line in text.splitlines() if line.strip()]
    for at in range(0, len(lines) - 1, 2):
        joined = " ".join(lines[at : at + 4])
        if len(joined) <= _SHORT_LINES:
            yield joined


def _hidden(text: str) -> str:
    """What a text says in characters that nobody sees or that look like others: tags, look-alikes, entities."""
    found = ""
    if not text.isascii():
        tags = "".join(chr(ord(char) - 0xE0000) for char in text if 0xE0020 <= ord(char) <= 0xE007E)
        plain = visible(text).translate(_LOOK_ALIKES)
        found = f"\n{tags}" if tags else ""
        found += f"\n{plain}" if _MIXED.search(visible(text)) else ""
    return found + (f"\n{html.unescape(text)}" if "&" in text and ";" in text else "")


def has_mixed_word(text: str) -> bool:
    """Whether a word mixes letters that look alike: Latin with Cyrillic or Greek."""
    return _MIXED.search(text) is not None


def foreign_names(one: Features, own: EvidenceText, foreign: EvidenceText) -> list[str]:
    """Names, and numbers of two digits and more, that only others used."""
    found = [name for name in one.names if name in foreign.lower and name not in own.lower]
    return found + [
        number
        for number in one.numbers
        if len(number) > 1 and foreign.has_number(number) and not own.has_number(number) and number not in one.dates
    ]


def is_other_language(one: str, other: str) -> bool:
    """Whether two texts are in different languages, so that shared words cannot be expected."""
    if min(len(words(one)), len(words(other))) < _LEAST_WORDS and bool(CJK.search(one)) == bool(CJK.search(other)):
        return False
    if _script(one) != _script(other):
        return True
    here, there = language_of(one), language_of(other)
    if here and there:
        return here != there
    unknown = words(other if here else one)
    little = sum(word in STOP_WORDS.get(here or there, ()) for word in unknown)
    return bool(here or there) and len(unknown) >= _SURE_WORDS and little < _LITTLE_SHARE * len(unknown)


def _script(text: str) -> str:
    if CJK.search(text):
        return "cjk"
    latin = len(re.findall(r"[A-Za-zÀ-ɏ]", text))
    return "latin" if 2 * latin >= len(re.findall(r"[^\W\d_]", text)) else "other"
