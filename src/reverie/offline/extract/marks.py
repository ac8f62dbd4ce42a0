"""What kind of speech act each sentence is: every sentence with its marks, and the message it stands in.

Pure and small: a mark is one pattern of the language's lexicon that was found. What the marks mean together is decided
elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from reverie.memory.taxonomy import MemoryType
from reverie.offline.extract.reading import Said
from reverie.offline.extract.systems import SYSTEM
from reverie.offline.language.lexicon import Lexicon, lexicon
from reverie.offline.language.prose import Prose, Sentence, read_prose
from reverie.text.dates.phrases import FoundDay, find_days
from reverie.text.tongue import Tongue, tongue_of

_PRONOUN = re.compile(
    r"^(?:\W|and |but |so |ok |no |yes |well |yesterday |today |tomorrow |also |because |on [\d-]+ )*"
    r"(?:it|its|it's|he|she|they|those|these|both|that|this|thats|that's|them|er|sie|es|das|sie|ella|él|eso|esto"
    r"|lo)\b(?! (?:is|was) a )",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"^(?:you are (?:an?|the) |act as |your (?:task|job|role) is |du bist ein|eres un|你是一|あなたは)", re.IGNORECASE
)
"""How a prompt begins that is made for any model."""
_PRONOUN_END = re.compile(r"\b(?:these|those|them|that|this|it)[.!]?$", re.IGNORECASE)
_SHORT = 50  # characters
_ELSEWHERE = re.compile(
    r", (?:and )?(?P<where>(?!which|that|it|they)[\w' -]{4,50} (?:is|are|live|lives) (?:in|on|at|under) .+)$"
)
_THEN_ASKS = re.compile(
    r"(?P<told>(?!if\b|when\b|once\b|assuming\b|what|how|why|who|where|which|can\b|could\b|would\b|do\b|does\b|is\b"
    r"|are\b|should\b"
    r"|ok\b|hey\b|hi\b|so\b|say\b|suppose|imagine)[^?]{25,}), so,? (?P<asks>(?:can|could|would|will|should|shall|do"
    r"|does|is|are|how|what"
    r"|which|where) (?:you|we|i|it|the|that|this|do|does|far|much|many)\b[^?]*\?)$",
    re.IGNORECASE,
)
"""Something is told, and a question follows from it: only the question is one."""
_ASIDE = re.compile(r"(?P<told>\([^()?]{15,}\)) (?P<asks>[^()]+\?)$")
"""A question with something told in brackets before it."""
_CLAUSES = re.compile(r"(?:[,;:()—–，；：（）、]|\s-\s|\b(?:and|but|so|und|aber|y|pero)\b)\s*", re.IGNORECASE)


class Marked:
    """A sentence and what it shows. Marks are looked up when they are first asked for."""

    def __init__(self, sentence: Sentence, message: Message) -> None:
        self.sentence = sentence
        self.message = message
        self.points: dict[MemoryType, float] | None = None
        """What it was judged to be, once it was."""
        self._found: dict[str, re.Match[str] | None] = {}

    @property
    def text(self) -> str:
        return self.sentence.text

    @property
    def bare(self) -> str:
        return self.sentence.text

    def has(self, mark: str) -> bool:
        """Whether the lexicon's pattern of that name is in the sentence."""
        return bool(self.find(mark))

    def find(self, mark: str) -> re.Match[str] | None:
        if mark not in self._found:
            pattern: re.Pattern[str] = getattr(self.message.words, mark)
            self._found[mark] = pattern.search(self.bare)
        return self._found[mark]

    @cached_property
    def is_asked(self) -> bool:
        """A question."""
        if self.sentence.is_question and self.has("manner") and not self.message.words.asks.search(self.bare):
            return False  # “can you keep the names long?” asks for a way to do things
        return self.sentence.is_question or self.has("asks")

    @cached_property
    def is_request(self) -> bool:
        """A task for now, as a whole."""
        return self.has("requests")

    @cached_property
    def is_filler(self) -> bool:
        return self.has("filler")

    @cached_property
    def days(self) -> list[FoundDay]:
        """The days it speaks of."""
        return find_days(self.bare, self.message.said.day, self.message.tongue)

    @cached_property
    def binds(self) -> bool:
        """It names a day by, until or from which something holds."""
        limit = self.message.words.limit
        for day in self.days:
            before, after = self.bare[max(0, day.start - 16) : day.start], self.bare[day.end : day.end + 4]
            words = [found.end() for found in limit.finditer(before)]
            if (words and not before[words[-1] :].strip(" the")) or limit.match(day.words):
                return True
            if self.message.tongue in ("zh", "ja") and limit.match(after.strip()):
                return True
        return False

    @cached_property
    def is_ahead(self) -> bool:
        """It speaks of a day that is still to come."""
        return any(day.moment.day > self.message.said.day for day in self.days)

    @cached_property
    def leans(self) -> bool:
        """Its subject is a word like “it” or “she”: it cannot be understood without the sentence before."""
        return bool(_PRONOUN.search(self.bare)) or (len(self.bare) < _SHORT and bool(_PRONOUN_END.search(self.bare)))

    @cached_property
    def told(self) -> str:
        """What it tells, without the clauses that only ask for something to be done now."""
        kept: list[str] = []
        for clause in _CLAUSES.split(self.bare):
            if clause and not self.message.words.requests.search(clause):
                kept.append(clause)
        return ", ".join(kept)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What holds for a message as a whole."""

    is_task: bool
    """It begins by asking for something to be done."""
    is_reply: bool
    """It answers something the agent did or said."""
    is_displeased: bool
    is_pleased: bool
    is_void: bool
    """Supposed, mocked, or a pasted text: nothing in it is meant."""


def _apart(sentence: Sentence) -> list[Sentence]:
    """A sentence that tells something and, behind a comma, where something else is or what is wanted: two sentences."""
    asked = _THEN_ASKS.match(sentence.text)
    if asked is None:
        asked = _ASIDE.match(sentence.text)
    if asked is not None:
        return [Sentence(asked["told"]), Sentence(asked["asks"])]
    found = _ELSEWHERE.search(sentence.text)
    if found is None or not SYSTEM.search(found["where"]) or SYSTEM.search(sentence.text[: found.start()]):
        return [sentence]
    return [Sentence(sentence.text[: found.start()]), Sentence(found["where"])]


class Message:
    """One message of the person's, in sentences."""

    def __init__(self, said: Said) -> None:
        self.said = said
        prose = read_prose(said.text)
        if prose.is_document:
            prose = Prose((), is_document=True)  # nobody is talking: nothing in it is looked at
        joined = " ".join(sentence.text for sentence in prose.sentences)
        self.tongue: Tongue = tongue_of(joined)
        self.words: Lexicon = lexicon(self.tongue)
        self.marked = [Marked(each, self) for sentence in prose.sentences for each in _apart(sentence)]
        self.text = joined
        self.shape = self._shape(prose.is_document)

    def _shape(self, is_document: bool) -> Shape:
        marked, words = self.marked, self.words
        spoken = [one for one in marked if not one.is_filler]
        return Shape(
            is_task=bool(spoken) and (spoken[0].is_request or spoken[0].is_asked),
            is_reply=bool(self.said.answer) or self.said.acted,
            is_displeased=any(one.has("displeased") for one in marked) and bool(self.said.answer),
            is_pleased=any(one.has("approves") for one in marked[:3]) and bool(self.said.answer),
            is_void=is_document
            or bool(_PROMPT.search(self.text))
            or any(one.has("supposed") for one in marked)
            or bool(words.mocked.search(self.text))
            or not marked,
        )

    def is_after_request(self, one: Marked) -> bool:
        """Whether a task was given in this message before that sentence: then it may be a part of it."""
        return any(each.is_request or each.is_asked for each in self.marked[: self.marked.index(one)])

    @property
    def first(self) -> Marked | None:
        """The first sentence that says something."""
        return next((one for one in self.marked if not one.is_filler), None)

    def after(self, one: Marked, count: int = 1) -> list[Marked]:
        at = self.marked.index(one)
        return self.marked[at + 1 : at + 1 + count]

    def before(self, one: Marked) -> Marked | None:
        at = self.marked.index(one)
        return self.marked[at - 1] if at else None
