"""Whether values of a statement can be put in place of others without a doubt, and the statement with them put.

A value that is swapped while another one that hangs on it changed too makes a sentence that nobody said: in doubt it
is not sound, and only the whole statement can give way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from reverie.text.folding import word_set
from reverie.text.values import values_of
from reverie.text.words import content_terms

NAME_LIKE = re.compile(r"`[^`]+`|[A-ZÀ-ÝŠŽ][\w.+/-]*|\w*\d[\w.-]*")
LIGHT: Final = word_set("run make go need use take send keep move start get come give work done")
"""Verbs that say nothing of what a sentence is about."""
CLAUSE = re.compile(r"[,;!?()]|[:.](?!\d)|\s(?:and|but|because|so|while|which|und|aber|weil|pero|porque)\s")


@dataclass(frozen=True, slots=True)
class Swap:
    """A value that gives way, as memory spells it, and what takes its place."""

    old: str
    new: str


def is_sound(statement: str, said: str, changes: Sequence[Swap]) -> bool:
    """Whether values can be put in place of others without a doubt; if not, only the whole statement can give way.

    Each old value stands there once, each new one comes from what was said and is not there yet, and nothing hangs on
    the old one (`at A in B`) that would be left to the new one.
    """
    news = [one.new.lower() for one in changes]
    if len(set(news)) != len(news) or _keeps_its_own(statement, said, changes):
        return False
    if any(_changes_with_it(statement, said, one) for one in changes):
        return False
    put = applied(statement, changes)
    stays = any(one not in news and spelled_in(said, one) for one in values_of(put).of("name"))
    if _TWICE.search(put) or (stays and values_of(said).of("name") - values_of(f"{put} {statement}").of("name")):
        return False  # another name came in, beside one that is named and would stay
    return all(
        len(re.findall(rf"(?<![\w]){re.escape(one.old)}(?![\w])", statement, re.IGNORECASE)) == 1
        and spelled_in(statement, one.new) is None
        and spelled_in(said, f"{one.new}s" if spelled_in(said, one.new) is None else one.new) is not None
        for one in changes
    )


def is_named(said: str, changes: Sequence[Swap]) -> bool:
    """Whether what was said names a value that gives way."""
    return any(spelled_in(said, one.old) for one in changes)


def names_it(said: str, statement: str, changes: Sequence[Swap]) -> bool:
    """Whether what was said is about a statement: it names what gives way, and what both speak of besides."""
    values = content_terms(" ".join(f"{one.old} {one.new}" for one in changes))
    shared = (content_terms(statement) & content_terms(said)) - values - LIGHT
    return is_named(said, changes) and any(not any(char.isdigit() for char in term) for term in shared)


def besides(statement: str, changes: Sequence[Swap]) -> list[str]:
    """The clauses of a statement that hold none of the values that give way."""
    return [part for part in CLAUSE.split(statement) if not any(spelled_in(part, one.old) for one in changes)]


def _keeps_its_own(statement: str, said: str, changes: Sequence[Swap]) -> bool:
    """Whether something hangs on a name that gives way (a place, a surname, a contract) and would be left behind."""
    for one in changes:
        place = re.search(rf"(?<![\w]){re.escape(one.old)}(?![\w])", statement, re.IGNORECASE)
        if place is None or not NAME_LIKE.fullmatch(one.old) or one.old[:1].isdigit():
            continue
        tail = statement[place.end() :]
        hangs = _HANGS.match(tail)
        if (
            hangs
            and spelled_in(said, hangs["what"]) is None
            and not any(spelled_in(hangs[0], other.old) for other in changes)
        ):
            return True
        if any(spelled_in(said, key) is None for key in _KEY.findall(tail)):
            return True
    return False


def _changes_with_it(statement: str, said: str, one: Swap) -> bool:
    """Whether what stands behind the value is another there than here: `44.1 kHz mono`, `96 kHz stereo`."""
    there, here = _behind(statement, one.old), _behind(said, one.new)
    same = next((at for at, (mine, its) in enumerate(zip(there, here, strict=False)) if mine != its), 0)
    if same == 0 or not one.new[:1].isdigit():
        return False
    return all(
        content_terms(words_[same]) and spelled_in(other, words_[same]) is None
        for words_, other in ((there, said), (here, statement))
    )


def _behind(text: str, value: str) -> list[str]:
    """The words behind a value, in its clause."""
    found = re.search(rf"(?<![\w]){re.escape(value)}(?![\w])", text, re.IGNORECASE)
    return re.findall(r"[^\s]+", CLAUSE.split(text[found.end() :].lower(), maxsplit=1)[0]) if found else []


_HANGS = re.compile(r"\s(?:(?:in|near|bei|en)\s(?:the\s|der\s|la\s)?|\(|(?=[A-ZÀ-Ý]))(?P<what>\w[\w-]*(?:\s\d+)?)")
_TWICE = re.compile(r"\b([^\W\d_]{2,})\.?\s\1\b", re.IGNORECASE)
_KEY = re.compile(r"[\w.+-]+@[\w.-]+\w|https?://\S+|(?<![\w-])(?:[A-Za-z]+-\d[\w-]*|\d[\d-]{5,})")


def applied(text: str, changes: Sequence[Swap]) -> str:
    """The text with each old value replaced, wherever it stands as a whole word."""

    def put(new: str) -> Callable[[re.Match[str]], str]:
        return lambda match: new[:1].upper() + new[1:] if match[0][:1].isupper() and match.start() == 0 else new

    for one in changes:
        text = re.sub(rf"(?<![\w]){re.escape(one.old)}(?![\w])", put(one.new), text, flags=re.IGNORECASE)
    return text


def spelled_in(statement: str, phrase: str) -> str | None:
    """The phrase as the statement spells it."""
    bare = phrase.strip("`'’\"")
    if not bare:
        return None
    found = re.search(rf"(?<![\w]){re.escape(bare)}(?![\w])", statement, re.IGNORECASE)
    return found[0] if found else None
