"""Finds secrets in a text: keys, tokens, passwords, private keys, in the open or lightly hidden.

Every write to memory passes through here, so it errs on the side of finding, and yet a placeholder, a hash or a pointer
to where a secret is kept must pass. It answers with kinds and places; the value itself is never returned or logged.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reverie.memory.secrets import forms, pieces
from reverie.memory.secrets.carriers import HASH_WORDS
from reverie.memory.secrets.grammar import Hit, announced
from reverie.memory.secrets.rules import MAKER_KINDS, MASKED, PUBLIC, PUBLIC_BLOCK, UNKNOWN_MAKER, makers
from reverie.memory.secrets.shapes import classes, entropy, is_hex, is_password, is_placeholder, is_random, wordlike
from reverie.memory.secrets.views import View, decoded, from_base64, joined, plain

MASK: Final = "[secret]"
_DEPTH: Final = 2  # base64 of base64; deeper is no accident, and this is no match for somebody who hides on purpose
_STRETCH: Final = 2_000
_OVERLAP: Final = 400
_RUN = re.compile(r"[^\s\"'`<>|,;(){}\[\]]{16,}")
_LONG = re.compile(r"[A-Za-z0-9+/=_:-]{28,}")
_STANDING = re.compile(r"(?<![\w/+.%=-])[A-Za-z0-9+/_=-]{32,}(?![\w/+%-])")
_ENCODED_LOGIN = re.compile(r"[\w.@+-]+:([^\s:]{6,})")
_MARK = re.compile(r"^(?:[A-Za-z]{2,8}[-_.:]){1,3}|^[A-Za-z]{2,4}(?=[A-Z0-9])")


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """Something that looks like a secret, at `text[start:end]`."""

    start: int
    end: int
    kind: str
    """What it is, with its article, fit for a sentence."""


def find_secrets(text: str) -> list[Found]:
    """Everything in `text` that looks like a secret, in order, without overlaps. Empty: nothing does."""
    found = sorted(set(_scan(plain(text), _DEPTH)))
    kept: list[Found] = []
    for one in found:
        if kept and one.start < kept[-1].end:
            last = kept.pop()
            one = Found(last.start, max(last.end, one.end), last.kind)
        kept.append(one)
    return kept


def redacted(text: str) -> str:
    """The text with everything that looks like a secret masked."""
    for one in reversed(find_secrets(text)):
        text = text[: one.start] + MASK + text[one.end :]
    return text


def _scan(view: View, depth: int) -> Iterator[Found]:
    text = view.text
    public = _public(text)
    for kind, start, end in _hits(text, public):
        yield Found(*view.place(start, end), kind)
    shown = [view.place(*span) for span in public]
    together = joined(view)
    if together is not None:
        for run in _RUN.finditer(together.text):
            for kind, start, end in _made(run[0]):
                at = together.place(run.start() + start, run.start() + end)
                if not _overlaps(at, shown):
                    yield Found(*at, kind)
    if depth:
        for other in decoded(view):
            login = _ENCODED_LOGIN.fullmatch(other.text)
            if (
                login
                and other.span
                and is_password(login[1], least=6)
                and (classes(login[1]) >= 3 or not wordlike(login[1]))
            ):
                yield Found(*other.span, "an encoded login")
            if other.span is None or not _overlaps(other.span, shown):
                yield from _scan(other, depth - 1)


def _public(text: str) -> list[tuple[int, int]]:
    """Stretches that are public by their nature, however random they look; in order, none touches another."""
    found = [match.span() for match in PUBLIC_BLOCK.finditer(text)] if "-----BEGIN" in text else []
    end = 0
    for run in _LONG.finditer(text):
        if run.start() < end:
            continue
        start = text.rfind("\n", 0, run.start()) + 1
        end = text.find("\n", run.end())
        end = len(text) if end < 0 else end
        found += [match.span() for match in PUBLIC.finditer(text, start, end)]
    apart: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if apart and start <= apart[-1][1]:
            start, before = apart.pop()
            end = max(before, end)
        apart.append((start, end))
    return apart


def _overlaps(span: tuple[int, int], others: list[tuple[int, int]]) -> bool:
    number = bisect_left(others, span[1], key=lambda other: other[0])
    return number > 0 and others[number - 1][1] > span[0]


def _hits(text: str, public: list[tuple[int, int]]) -> Iterator[Hit]:
    for form in (announced, forms.columns, forms.carried, forms.pairs, pieces.split_literals):
        for kind, start, end in form(text):
            if not _overlaps((start, end), public):
                yield kind, start, end
    yield from _tokens(text, public)
    yield from pieces.in_pieces(text)


def _tokens(text: str, public: list[tuple[int, int]]) -> Iterator[Hit]:
    """Long runs without a gap: tokens by their makers' marks, and what looks drawn though nobody announces it."""
    for run in _RUN.finditer(text):
        for kind, start, end in (*_made(run[0]), *_standing(text, run)):
            if not _overlaps((run.start() + start, run.start() + end), public):
                yield kind, run.start() + start, run.start() + end


def _made(run: str) -> Iterator[Hit]:
    """Tokens by their makers' marks; a very long run is looked at in stretches, so that no text takes long."""
    for at in range(0, max(1, len(run) - _OVERLAP), _STRETCH - _OVERLAP):
        value = run[at : at + _STRETCH]
        for match in makers().finditer(value):
            if _is_drawn(match[0]):
                yield MAKER_KINDS[(match.lastindex or 1) - 1], at + match.start(), at + match.end()
        for match in UNKNOWN_MAKER.finditer(value):
            tail = match["tail"]
            if not is_hex(tail) and classes(tail) == 3 and is_random(tail, 24):
                yield "a token", at + match.start(), at + match.end()


def _standing(text: str, run: re.Match[str]) -> Iterator[Hit]:
    for match in _STANDING.finditer(run[0]):
        at = run.start() + match.start()
        is_hash = HASH_WORDS.search(text[max(0, at - 40) : at])
        if "://" not in run[0][: match.start()] and not is_hash and _stands_out(match[0]):
            yield "a key or token", match.start(), match.end()


def _is_drawn(value: str) -> bool:
    """Whether what follows a maker's mark is a value, not `xxxx`, `...`, or words of a name."""
    if MASKED.search(value):
        return False
    if re.match(r"[a-z.]+\.com/", value):  # an address that long is a secret even if it repeats itself
        return True
    tail = _MARK.sub("", value) or value
    named = re.fullmatch(r"[a-z]+(?:[-_.][a-z0-9]+)*", tail) or not any(c.isdigit() for c in tail)
    if len(value) >= 36 and len(set(tail.lower())) >= 8 and (tail.isalnum() or not wordlike(tail)):
        return True  # as long as the makers draw them, whatever the characters are
    if is_placeholder(value) or is_placeholder(tail) or len(set(tail)) < 6:
        return False
    return entropy(tail) >= 3 and not wordlike(tail) if named else entropy(tail) >= 2.6


def _stands_out(value: str) -> bool:
    """A long random string in both cases with digits; hexadecimal ones are mostly hashes and need a word beside."""
    if is_hex(value) or ("/" in value and len(value.split("/")) > 4 and wordlike(value)):
        return False
    core = value.rstrip("=")
    return (
        classes(re.sub(r"[^A-Za-z0-9]", "", core)) == 3
        and is_random(core, 32)
        and entropy(core) >= 4.1
        and from_base64(value) is None
    )
