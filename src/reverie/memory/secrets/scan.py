"""Finds secrets in a text: keys, tokens, passwords and private keys, visible or lightly hidden.

Every write to memory is checked here, so in doubt a value counts as a secret. But a placeholder, a hash or a reference
to the place of a secret must pass. The result has kinds and places; the value itself is never returned or logged.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from reverie.memory.secrets import forms, pieces
from reverie.memory.secrets.carriers import HASH_WORDS
from reverie.memory.secrets.grammar import Hit, find_announced
from reverie.memory.secrets.rules import MAKER_KINDS, MASKED, PUBLIC, PUBLIC_BLOCK, UNKNOWN_MAKER, compile_makers
from reverie.memory.secrets.shapes import (
    count_classes,
    is_hex,
    is_password,
    is_placeholder,
    is_random,
    is_wordlike,
    measure_entropy,
)
from reverie.memory.secrets.views import View, decode_base64, decode_parts, join_pieces, read_plain
from reverie.quick import dataclass
from reverie.text.patterns import late

MASK: Final = "[secret]"
_DEPTH: Final = (
    2  # base64 of base64; deeper nesting is on purpose, and this check cannot stop somebody who hides a secret
)
_STRETCH: Final = 2_000
_OVERLAP: Final = 400
_RUN = late(r"[^\s\"'`<>|,;(){}\[\]]{16,}")
_LONG = late(r"[A-Za-z0-9+/=_:-]{28,}")
_UNANNOUNCED = late(r"(?<![\w/+.%=-])[A-Za-z0-9+/_=-]{32,}(?![\w/+%-])")
_ENCODED_LOGIN = late(r"[\w.@+-]+:([^\s:]{6,})")
_MARK = late(r"^(?:[A-Za-z]{2,8}[-_.:]){1,3}|^[A-Za-z]{2,4}(?=[A-Z0-9])")


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """Something that looks like a secret, at `text[start:end]`."""

    start: int
    end: int
    kind: str
    """What it is, with its article, ready for a sentence."""


def find_secrets(text: str) -> list[Found]:
    """Finds everything in `text` that looks like a secret, in order, without overlaps."""
    found = sorted(set(_scan(read_plain(text), _DEPTH)))
    kept: list[Found] = []
    for one in found:
        if kept and one.start < kept[-1].end:
            last = kept.pop()
            one = Found(last.start, max(last.end, one.end), last.kind)
        kept.append(one)
    return kept


def redact(text: str) -> str:
    """Masks everything in the text that looks like a secret."""
    for one in reversed(find_secrets(text)):
        text = text[: one.start] + MASK + text[one.end :]
    return text


def _scan(view: View, depth: int) -> Iterator[Found]:
    text = view.text
    public = _find_public(text)
    for kind, start, end in _find_hits(text, public):
        yield Found(*view.locate(start, end), kind)
    shown = [view.locate(*span) for span in public]
    together = join_pieces(view)
    if together is not None:
        for run in _RUN.finditer(together.text):
            for kind, start, end in _find_by_maker(run[0]):
                at = together.locate(run.start() + start, run.start() + end)
                if not _overlaps(at, shown):
                    yield Found(*at, kind)
    if depth:
        for other in decode_parts(view):
            login = _ENCODED_LOGIN.fullmatch(other.text)
            if (
                login
                and other.span
                and is_password(login[1], least=6)
                and (count_classes(login[1]) >= 3 or not is_wordlike(login[1]))
            ):
                yield Found(*other.span, "an encoded login")
            if other.span is None or not _overlaps(other.span, shown):
                yield from _scan(other, depth - 1)


def _find_public(text: str) -> list[tuple[int, int]]:
    """Finds spans that are public by nature, however random they look; in order, and they never touch."""
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


def _find_hits(text: str, public: list[tuple[int, int]]) -> Iterator[Hit]:
    for form in (find_announced, forms.find_columns, forms.find_carried, forms.find_pairs, pieces.find_split_literals):
        for kind, start, end in form(text):
            if not _overlaps((start, end), public):
                yield kind, start, end
    yield from _find_tokens(text, public)
    yield from pieces.find_in_pieces(text)


def _find_tokens(text: str, public: list[tuple[int, int]]) -> Iterator[Hit]:
    """Finds tokens in long runs without a space: by the mark of their maker, or because they look random."""
    for run in _RUN.finditer(text):
        for kind, start, end in (*_find_by_maker(run[0]), *_find_unannounced(text, run)):
            if not _overlaps((run.start() + start, run.start() + end), public):
                yield kind, run.start() + start, run.start() + end


def _find_by_maker(run: str) -> Iterator[Hit]:
    """Finds tokens by the marks of their makers. A very long run is read in parts, so that no text takes long."""
    for at in range(0, max(1, len(run) - _OVERLAP), _STRETCH - _OVERLAP):
        value = run[at : at + _STRETCH]
        for match in compile_makers().finditer(value):
            if _is_generated(match[0]):
                yield MAKER_KINDS[(match.lastindex or 1) - 1], at + match.start(), at + match.end()
        for match in UNKNOWN_MAKER.finditer(value):
            tail = match["tail"]
            if not is_hex(tail) and count_classes(tail) == 3 and is_random(tail, 24):
                yield "a token", at + match.start(), at + match.end()


def _find_unannounced(text: str, run: re.Match[str]) -> Iterator[Hit]:
    for match in _UNANNOUNCED.finditer(run[0]):
        at = run.start() + match.start()
        is_hash = HASH_WORDS.search(text[max(0, at - 40) : at])
        if "://" not in run[0][: match.start()] and not is_hash and _is_random_key(match[0]):
            yield "a key or token", match.start(), match.end()


def _is_generated(value: str) -> bool:
    """Whether the text after a maker's mark is a generated value, not `xxxx`, `...`, or words of a name."""
    if MASKED.search(value):
        return False
    if re.match(r"[a-z.]+\.com/", value):  # such a long address is a secret even if its characters repeat
        return True
    tail = _MARK.sub("", value) or value
    named = re.fullmatch(r"[a-z]+(?:[-_.][a-z0-9]+)*", tail) or not any(c.isdigit() for c in tail)
    if len(value) >= 36 and len(set(tail.lower())) >= 8 and (tail.isalnum() or not is_wordlike(tail)):
        return True  # as long as real tokens, whatever the characters are
    if is_placeholder(value) or is_placeholder(tail) or len(set(tail)) < 6:
        return False
    return measure_entropy(tail) >= 3 and not is_wordlike(tail) if named else measure_entropy(tail) >= 2.6


def _is_random_key(value: str) -> bool:
    """Whether it is a long random string of both cases and digits. Hexadecimal strings are mostly hashes."""
    if is_hex(value) or ("/" in value and len(value.split("/")) > 4 and is_wordlike(value)):
        return False
    core = value.rstrip("=")
    return (
        count_classes(re.sub(r"[^A-Za-z0-9]", "", core)) == 3
        and is_random(core, 32)
        and measure_entropy(core) >= 4.1
        and decode_base64(value) is None
    )
