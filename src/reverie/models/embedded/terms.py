"""What a question is about: its key terms, and how well a line of text fits them. Pure and deterministic."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_TERMS = 6

_QUOTED = re.compile(r"(?<!\w)[`\"“']([^`\"”'\n]{2,60})[`\"”'](?!\w)")
_PATH = re.compile(r"(?<![\w/])(?:[\w.~-]*/)*[\w-]+\.[A-Za-z]\w{0,7}(?![\w(])")
_WORD = re.compile(r"[^\W_](?:[\w.-]*\w)?|_\w+")
_DEFINES = re.compile(
    r"^\s*(?:(?:export|public|static|async|pub)\s+)*(?:def|class|function|func|fn|const|let|var|struct|enum|type)\b"
    r"|^\s*[\w.\"'-]+\s*[:=]|^#+ "
)
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    a about after again all also always an and any anything are as at be because been before being but by can cannot
    could did do does doing done each else explain file files find for from get give go goes had has have having he
    hello help her here hey hi him his how i if in into is it its just know let like line lines list look make many
    me mean more most much must my need no not now of off on once one only or other our out over own please project
    code repo repository said same say see she should show so some something such take tell than thank thanks that
    the their them then there these they thing things this those to too under until up use used uses using very want
    was we were what whats when where which while who whom whose why will with word words work works would yes you
    your yours
""",
    )
)
_RUN = re.compile(r"\b(?:run|execute)\s+`([^`\n]+)`", re.IGNORECASE)
_ABBREVIATIONS = frozenset({"e.g", "i.e"})
_ABOUT_US = re.compile(r"\b(?:i|my|me|we|our|us)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """`terms` from the most to the least telling; `paths` are files named outright."""

    terms: tuple[str, ...]
    paths: tuple[str, ...]
    about_us: bool = False
    """It is about the people talking, so the conversation may hold the answer."""
    command: str = ""
    """A command the person asks to be run, written between backquotes."""


def read_question(text: str) -> Question:
    """Quoted phrases first, then names as they stand in code, then the long words."""
    paths = tuple(dict.fromkeys(found for found in _PATH.findall(text) if found not in _ABBREVIATIONS))
    quoted = [found.strip() for found in _QUOTED.findall(text)]
    skipped = _STOP_WORDS | _ABBREVIATIONS
    words = [word for word in _WORD.findall(text) if word.lower() not in skipped and len(word) > 2]
    ranked = sorted(enumerate(words), key=lambda each: (-_telling(each[1]), each[0]))
    found: dict[str, str] = {}
    for term in [*quoted, *(word for _, word in ranked)]:
        stem = _stem(term)
        if stem:
            found.setdefault(stem.lower(), stem)
    asked = _RUN.search(text)
    about_us = bool(_ABOUT_US.search(text))
    return Question(tuple(list(found.values())[:MOST_TERMS]), paths, about_us, asked[1].strip() if asked else "")


def fit(line: str, question: Question) -> float:
    """How many of the terms a line holds; a little more if it looks like the place where something is defined."""
    low = line.lower()
    held = sum(term.lower() in low for term in question.terms)
    return held + (0.5 if held and _DEFINES.search(line) else 0.0)


def pattern(question: Question) -> str:
    """A regular expression that finds any of the terms."""
    return "|".join(re.escape(term).replace(r"\ ", r"\s+").replace(r"\-", "-") for term in question.terms)


def _telling(word: str) -> int:
    in_code = "_" in word or "." in word or any(char.isdigit() for char in word)
    mixed = word != word.lower() and word[1:] != word[1:].lower()
    return 3 if in_code or mixed else 2 if len(word) > 6 else 1


def _stem(term: str) -> str:
    """Without a plural s, so that `ports` finds `port`; names from code stay as they are."""
    if len(term) > 4 and term.isalpha() and term.islower() and term.endswith("s") and not term.endswith("ss"):
        return term[:-1]
    return term
