"""What a question is about: its key terms, and how well a line of text fits them. Pure and deterministic.

A term matches where a word begins with its stem, even inside a name (`max_ports`, `MaxPorts`); `port` does not match
`import`, and `time` does not match `timetable`. Chinese and Japanese, which do not separate words, are split at the
words that only ask.
"""

from __future__ import annotations

import re
from functools import lru_cache

from reverie.parsing import LONGEST_MESSAGE
from reverie.quick import dataclass
from reverie.text.folding import fold, folded_set
from reverie.text.patterns import late
from reverie.text.word_lists import STOP_WORDS
from reverie.text.words import CJK, singular, stem

MOST_TERMS = 6
_LEAST_ROOT = 4

_QUOTED = late(r"(?<!\w)[`\"“„«「『']([^`\"”“»」』'\n]{2,60})[`\"”“»」』'](?!\w)")
_PATH = late(r"(?<![\w/])(?:[\w.~-]{0,255}/){0,40}[\w-]{1,255}\.[A-Za-z]\w{0,7}(?![\w(])")
_WORD = late(r"[^\W_](?:[\w.-]*\w)?|_\w+")
_DEFINES = late(
    r"^\s*(?:(?:export|public|static|async|pub)\s+)*(?:def|class|function|func|fn|const|let|var|struct|enum|type)\b"
    r"|^\s*[\w.\"'-]+\s*[:=]|^#+ "
)
_DEFINITION = late(
    r"^\s*(?:(?:export|public|private|static|async|pub|default|abstract)\s+)*(?:def|class|function|func|fn|struct"
    r"|enum)\s+\w"
)
_STOP_WORDS = frozenset[str]().union(*(STOP_WORDS[tongue] for tongue in ("en", "de", "es"))) | folded_set(
    """after again all also always anything ask asked because before being cannot define defined definition doing done
    each else explain file files find give go goes having hello help here hey hi know like line lines list look make
    many may mean might more most much must need now once one only other over own project code repo repository said
    same say see show something such take tell thank thing things under until use used uses using want whats while
    whom word words work works yours bin gib gibt hat ja man nein über weißt wen wissen zeig zeige heißt algo dime ha
    hace hacemos hacer hay sabes tenemos tiene todo todos usa usamos usar"""
)
_ASKING_IN = late(
    r"而不是|不是|什么|什麼|哪里|哪裡|哪个|哪些|怎么样|怎么|怎麼|为什么|為什麼|为何|谁|多少|几个|几号|几点|是不是"
    r"|有没有|可以|告诉我|请问|请|我们|我們|你们|他们|这个|那个|这里|那里|关于|知道|记得|使用|需要|时候|的|了|吗|嗎|呢"
    r"|吧|是|在|我|你|他|和|与|有|用|ですか|ますか|でしょうか|ください|について|教えて|どこ|いつ|なに|なぜ|どの|どう"
    r"|どれ|だれ|何番|何時|何|誰|この|その|あの|これ|それ|ている|ていますか|ています|します|する|した|です|ます|から"
    r"|まで|より|には|では|とは|[はがをにへとでのもやか]|私|[?？。、！!，,\s]"
)
_RUN_ON = late(r"[\u3040-\u30ff\u3400-\u9fff]+|[^\u3040-\u30ff\u3400-\u9fff]+")
_PARTS = late(r"\b(?:function|class|method|definition|funktion|klasse|función|clase)(?:e?s|en)?\b|函数|関数", re.I)
_ABBREVIATIONS = frozenset({"e.g", "i.e"})
_ABOUT_US = late(
    r"\b(?:i|my|me|we|our|us|ich|mein\w*|mir|mich|wir|uns\w*|yo|mis?|nos\w*|nuestr\w+)\b|我|私|僕", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Question:
    """`terms` from the most to the least telling; `paths` are files that are named directly."""

    terms: tuple[str, ...]
    paths: tuple[str, ...]
    about_us: bool = False
    """It is about the people talking, so the conversation may have the answer."""
    definitions: bool = False
    """It asks what a file defines."""


def read_question(text: str) -> Question:
    """Quoted phrases first, then names from code, then the long words; of a long text, only its beginning."""
    text = text[:LONGEST_MESSAGE]
    paths = tuple(dict.fromkeys(found for found in _PATH.findall(text) if found not in _ABBREVIATIONS))
    quoted = [found.strip() for found in _QUOTED.findall(text)]
    skipped = _STOP_WORDS | _ABBREVIATIONS
    found = (piece for word in _WORD.findall(text) for piece in _pieces(word))
    words = [word for word in found if fold(word) not in skipped and len(word) > (1 if CJK.search(word) else 2)]
    ranked = sorted(enumerate(words), key=lambda each: (-telling(each[1]), each[0]))
    terms: dict[str, str] = {}
    for term in [*quoted, *(word for _, word in ranked)]:
        if plain := _plain(term):
            terms.setdefault(plain.lower(), plain)
    asks_parts = bool(paths) and bool(_PARTS.search(text))
    kept = [term for term in terms.values() if not (asks_parts and _PARTS.fullmatch(term))]
    return Question(tuple(kept[:MOST_TERMS]), paths, bool(_ABOUT_US.search(text)), asks_parts)


def fit(line: str, question: Question) -> float:
    """How many of the terms a line has; a little more if it looks like a definition."""
    held = sum(bool(_met(term).search(line)) for term in question.terms)
    return held + (0.5 if held and _DEFINES.search(line) else 0.0)


def defines(line: str) -> bool:
    """Whether a line begins the definition of a function or a class."""
    return bool(_DEFINITION.match(line))


def coverage(text: str, question: Question) -> float:
    """The share of the question's terms that a text has, the telling ones weighted more: 0 to 1."""
    whole = sum(map(telling, question.terms))
    return sum(telling(term) for term in question.terms if _met(term).search(text)) / whole if whole else 0.0


def pattern(question: Question) -> str:
    """A regular expression for a search tool that finds any of the terms."""
    plain = [_escaped(term) for term in question.terms if not CJK.search(term)]
    others = [re.escape(term) for term in question.terms if CJK.search(term)]
    bounded = [rf"(\b|_)({'|'.join(plain)})"] if plain else []
    return "|".join([*bounded, *others])


@lru_cache(maxsize=512)
def telling(word: str) -> int:
    """How telling a word is by its form: names from code most, then long words."""
    in_code = "_" in word or "." in word or any(char.isdigit() for char in word)
    mixed = word != word.lower() and word[1:] != word[1:].lower()
    return 3 if in_code or mixed or " " in word else 2 if len(word) > 6 or CJK.search(word) else 1


@lru_cache(maxsize=512)
def _met(term: str) -> re.Pattern[str]:
    if CJK.search(term):
        return re.compile(re.escape(term), re.IGNORECASE)
    root = stem(term.lower()) if term.isascii() and term.isalpha() else ""
    found, ending = (root, 6) if len(root) >= _LEAST_ROOT and root != term.lower() else (term, 5)
    body = _escaped(found)
    hump = rf"|(?-i:(?<=[a-z]){re.escape(found[0].upper())}(?i:{_escaped(found[1:])}))" if len(found) > 1 else ""
    # The ending of a word can differ, but a longer word with the same beginning is another word.
    return re.compile(rf"(?:(?<![^\W_\d]){body}{hump})(?-i:(?![a-z]{{{ending}}}))", re.IGNORECASE)


def _escaped(term: str) -> str:
    plain = re.escape(term).replace(r"\ ", r"\s+").replace(r"\-", "-")
    return f"{plain[:-1]}(y|ie)" if len(term) > 3 and term.isalpha() and term[-1] == "y" else plain


def _pieces(word: str) -> list[str]:
    """A run of Chinese or Japanese without the words that only ask; any other word unchanged."""
    if not CJK.search(word):
        return [word]
    found = list[str]()
    for run in _RUN_ON.findall(word):
        found += [piece for piece in _ASKING_IN.split(run) if piece] if CJK.search(run) else [run.strip("-._")]
    return [piece for piece in found if piece]


def _plain(term: str) -> str:
    """Without a plural s, so that `ports` finds `port`; names from code stay as they are."""
    return singular(term) if term.islower() or term.istitle() else term
