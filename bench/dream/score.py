"""Scores a memory directory after a dream by the checks of its scenario (`check.json`), one point per check.

The checks: what must survive, what must be gone, files to merge, dates, the index and its limits, files that must not
change, and how much can be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from reverie.layers.l6_dreaming.loss import loss
from reverie.memory.index import linked_files
from reverie.memory.taxonomy import INDEX, TEAM, index_of, is_log, is_topic, pointer_of
from reverie.memory.topic_file import decode
from reverie.quick import dataclass
from reverie.types import JsonObject

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check and its result."""

    what: str
    passed: bool


def score(check: JsonObject, before: Files, after: Files) -> list[CheckResult]:
    """The results of all checks of a scenario."""
    return list(_Scoring(before, after).all(check))


class _Scoring:
    def __init__(self, before: Files, after: Files) -> None:
        self._before = before
        self._after = after
        self._topics = {name: _flat(data) for name, data in after.items() if is_topic(name) and data.strip()}
        self._looked_at = {name: _flat(data) for name, data in after.items() if not is_log(name)}

    def all(self, check: JsonObject) -> Iterator[CheckResult]:
        for terms in lists_of(check, "must_survive"):
            yield CheckResult(f"must_survive: {' + '.join(terms)}", survives(terms, self._topics.values()))
        for text in texts_of(check, "must_be_gone"):
            yield CheckResult(f"must_be_gone: {text}", not any(holds(held, text) for held in self._looked_at.values()))
        for names in lists_of(check, "merged"):
            left = sum(name in self._topics for name in names)
            yield CheckResult(f"merged: {', '.join(names)}" + (f" ({left} left)" if left > 1 else ""), left <= 1)
        for date in texts_of(check, "dates"):
            yield CheckResult(f"dates: {date}", any(holds(text, date) for text in self._topics.values()))
        yield from self._index(check)
        for name in texts_of(check, "untouched"):
            yield CheckResult(f"untouched: {name}", self._before.get(name) == self._after.get(name))
        if "max_loss" in check:
            lost, share = self._find_lost(texts_of(check, "must_be_gone"))
            shown = f" ({share:.0%} lost: {'; '.join(lost[:3])})" if lost else ""
            yield CheckResult(f"max_loss: {check['max_loss']}{shown}", share <= float(check["max_loss"]) + 1e-9)
        for folder, texts in cast("dict[str, list[str]]", check.get("not_under") or {}).items():
            for text in texts:
                under = (held for name, held in self._looked_at.items() if name.startswith(folder))
                yield CheckResult(f"not_under {folder}: {text}", not any(holds(held, text) for held in under))
        if check.get("no_new_files"):
            new = sorted(name for name in self._after if name not in self._before)
            yield CheckResult(f"no_new_files{': ' + ', '.join(new) if new else ''}", not new)

    def _index(self, check: JsonObject) -> Iterator[CheckResult]:
        index = self._after.get(INDEX, b"")
        for key, size in (("index_max_lines", len(decode(index).splitlines())), ("index_max_bytes", len(index))):
            if key in check:
                yield CheckResult(f"{key}: {check[key]} (has {size})", size <= check[key])
        if check.get("index_must_link"):
            wrong = self._find_bad_links()
            yield CheckResult(f"index_must_link{': ' + ', '.join(wrong) if wrong else ''}", not wrong)

    def _find_bad_links(self) -> list[str]:
        """Files that are not in their index, and links to files that do not exist."""
        indexes = {name: linked_files(decode(self._after.get(name, b""))) for name in (INDEX, f"{TEAM}/{INDEX}")}
        missing = [name for name in sorted(self._topics) if pointer_of(name) not in indexes[index_of(name)]]
        dead = [
            f"{file} (dead)"
            for index, files in indexes.items()
            for file in sorted(files)
            if not self._after.get(f"{index.removesuffix(INDEX)}{file}", b"").strip()
        ]
        return [*missing, *dead]

    def _find_lost(self, gone: Sequence[str]) -> tuple[list[str], float]:
        """Lost statements and their share, without those that had to go."""
        before = {name: decode(data) for name, data in self._before.items() if is_topic(name)}
        after = {name: decode(data) for name, data in self._after.items() if is_topic(name)}
        found = loss(before, after)
        named = [one for one in found.lost if any(holds(_plain(one.text), text) for text in gone)]
        lost = [f"{one.file}: {one.text}" for one in found.lost if one not in named]
        count = found.statements - len(named)
        return lost, len(lost) / count if count else 0.0


def survives(terms: Sequence[str], texts: Iterable[str]) -> bool:
    """Whether one of the texts has all terms; `a|b` are alternatives."""
    return any(all(any(holds(text, one) for one in term.split("|")) for term in terms) for text in texts)


def holds(text: str, term: str) -> bool:
    """Whether a text has a term, regardless of case and line breaks."""
    return _plain(term) in _plain(text)


def _flat(data: bytes) -> str:
    return _plain(decode(data))


@lru_cache(maxsize=2_000)
def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def texts_of(check: JsonObject, key: str) -> list[str]:
    """A check that is a list of texts."""
    return [str(one) for one in cast("list[Any]", check.get(key) or [])]


def lists_of(check: JsonObject, key: str) -> list[list[str]]:
    """A check that is a list of lists."""
    return [[str(term) for term in one] for one in cast("list[list[Any]]", check.get(key) or [])]
