"""A message of the user in sentences, each with the marks of its language's lexicon that were found in it."""

from __future__ import annotations

import re
from datetime import date
from functools import cached_property
from itertools import pairwise

from reverie.offline.language.lexicon import Lexicon, lexicon
from reverie.offline.language.prose import Prose, Sentence, read_prose
from reverie.text.dates.phrases import FoundDay, find_days
from reverie.text.tongue import Tongue, tongue_of
from reverie.text.words import content_terms

_PRONOUN = re.compile(
    r"^(?:\W|and |but |so |ok |no |yes |well |also |because |please |always |never |remember that )*(?:it|its|it's|he"
    r"|she|they|those|these|both|that|this|thats|that's|them|er|sie|es|das|ella|él|eso|esto|lo)\b(?! (?:repo|project"
    r"|team|company|codebase|lab)\b)|\b(?:do|make|keep|use|like|write|put) (?:it|that|this|them)\b|\b(?:so machen"
    r"|mach das so|hazlo así)\b|(?:这|那)样|(?:そう|こう)し",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"^(?:you are (?:an?|the) |act as |your (?:task|job|role) is |du bist ein|eres un|你是一|あなたは)", re.IGNORECASE
)
"""How a prompt begins that was written for any model."""
_POLITE = re.compile(
    r"\b(?:(?:can|could|would|will) you|(?:kannst|könntest) du|puedes|podrías)\b|能|もらえ", re.IGNORECASE
)
"""An order in the form of a question."""
_OPENING = 9  # characters: then a sentence is a question or a task as a whole
_TENS = ("一", "二", "三", "十", "年")


class Marked:
    """A sentence and its marks. Marks are looked up when they are first needed."""

    def __init__(self, sentence: Sentence, message: MarkedMessage) -> None:
        self.text = sentence.text
        self.paragraph = sentence.paragraph
        self.message = message
        self._is_question = sentence.is_question
        self._found: dict[str, bool] = {}

    def has(self, mark: str) -> bool:
        """Whether the lexicon's pattern of that name is in the sentence."""
        if mark not in self._found:
            pattern: re.Pattern[str] = getattr(self.message.words, mark)
            self._found[mark] = bool(pattern.search(self.text))
        return self._found[mark]

    @property
    def is_asked(self) -> bool:
        """A question."""
        return self._is_question or self.has("asks")

    @property
    def is_plain(self) -> bool:
        """It states something, in the user's own name, and not only for this one time."""
        return not (self.is_asked or self.has("filler") or self.has("unmeant") or "“…”" in self.text)

    @property
    def is_in_doubt(self) -> bool:
        """It is not serious or not clear: then the sentences beside it are not clear either."""
        gaps = (self.text[one.end : two.start].strip(" ,") for one, two in pairwise(self.days))
        if any(gap in ("", "the", "of") for gap in gaps) or any(
            self.text[: day.start].endswith(_TENS) for day in self.days
        ):
            return True  # two days that are one, such as Friday next week, or half of a number
        if self.is_plain or self.has("filler"):
            return False
        own = (self.message.words.asks.search(self.text), self.message.words.requests.search(self.text))
        latest = _OPENING if self.message.tongue in ("en", "de", "es") else len(self.text)  # others ask at the end
        return not any(found and found.start() < latest for found in own)

    @property
    def is_only_asking(self) -> bool:
        """It asks to keep something that other sentences say."""
        return self.has("remember") and len(content_terms(self.message.words.remember.sub(" ", self.text))) < 1

    @property
    def asks_to_forget(self) -> bool:
        """It asks to remove something that is known, or not to keep what was said."""
        if (self._is_question and not _POLITE.search(self.text)) or self.has("not_forget"):
            return False
        return self.has("forget") or (self.has("deletes") and self.message.is_about_memory)

    @property
    def leans(self) -> bool:
        """Its subject is a word like “it”: it cannot be understood without the sentence before."""
        return bool(_PRONOUN.search(self.text))

    @cached_property
    def days(self) -> list[FoundDay]:
        """The days it mentions."""
        return find_days(self.text, self.message.day, self.message.tongue)

    @property
    def is_ahead(self) -> bool:
        """It mentions a day in the future."""
        return any(day.moment.day > self.message.day for day in self.days)

    @property
    def is_after_request(self) -> bool:
        """A task was given in this message before this sentence: it may be part of that task."""
        own = self.message.marked
        return any(one.has("requests") or one.is_asked for one in own[: own.index(self)])


class MarkedMessage:
    """One message of the user. `answer`: what the agent said before it; `before`: what the user typed before that."""

    def __init__(self, text: str, day: date, answer: str = "", before: str = "") -> None:
        self.text = text
        self.day = day
        self.answer = answer
        self.before = before
        prose = read_prose(text)
        if prose.is_document:
            prose = Prose((), is_document=True)  # nobody is talking: it is not examined
        self.said = " ".join(sentence.text for sentence in prose.sentences)
        self.tongue: Tongue = tongue_of(self.said)
        self.words: Lexicon = lexicon(self.tongue)
        self.marked = [Marked(sentence, self) for sentence in prose.sentences]
        self.is_play = any(one.has("void") for one in self.marked)
        """A supposition, a role play or a joke."""
        self.is_void = not self.marked or bool(_PROMPT.search(self.said)) or self.is_play
        """A supposition, a joke, or a pasted text: nothing in it is serious."""

    @cached_property
    def is_about_memory(self) -> bool:
        """It is about what is remembered, or answers such a question."""
        return bool(self.words.kept.search(f"{self.said} {self.answer} {self.before}"))

    @property
    def forgets(self) -> list[Marked]:
        """The sentences that ask to forget something."""
        return [one for one in self.marked if one.asks_to_forget]
