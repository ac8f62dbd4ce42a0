"""How well recall finds memories and keeps silent: each tier next to plain searches, in one run."""

from __future__ import annotations

import math
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from bench.recall.data import Collection, Query, read_folder, read_locomo, read_unrelated
from reverie.errors import UserError
from reverie.lab.recordings import mean_or_none
from reverie.memory.recall.ranker import Ranker, Ranking
from reverie.quick import dataclass
from reverie.text.columns import table as columns

K1, B = 1.2, 0.75


class PlainBm25:
    """BM25 over every word of a file and its name; no stemming, no stop words."""

    def __init__(self, memory: Path) -> None:
        texts = _texts(memory)
        self._paths = list(texts)
        self._counts = [Counter(_words(text)) for text in texts.values()]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = sum(self._lengths) / max(1, len(self._lengths))
        self._files: Counter[str] = Counter()
        for counts in self._counts:
            self._files.update(counts.keys())

    def rank(self, query: str) -> list[str]:
        scores = [0.0] * len(self._paths)
        for word in _words(query):
            with_word = self._files.get(word, 0)
            if not with_word:
                continue
            weight = math.log(1 + (len(self._paths) - with_word + 0.5) / (with_word + 0.5))
            for n, counts in enumerate(self._counts):
                if count := counts.get(word, 0):
                    norm = K1 * (1 - B + B * self._lengths[n] / self._mean)
                    scores[n] += weight * count * (K1 + 1) / (count + norm)
        order = sorted(range(len(scores)), key=lambda n: -scores[n])
        return [self._paths[n] for n in order if scores[n] > 0]


class PlainFts5:
    """SQLite's FTS5 with its default tokenizer: the words of the query joined by OR, ranked by bm25()."""

    def __init__(self, memory: Path) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE notes USING fts5(path UNINDEXED, text)")
        self._db.executemany("INSERT INTO notes VALUES (?, ?)", _texts(memory).items())

    def rank(self, query: str) -> list[str]:
        asked = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", query)))
        if not asked:
            return []
        rows = self._db.execute("SELECT path FROM notes WHERE notes MATCH ? ORDER BY bm25(notes)", (asked,))
        return [path for (path,) in rows]


def _texts(memory: Path) -> dict[str, str]:
    return {
        path.relative_to(memory).as_posix(): f"{path.stem.replace('_', ' ')}\n"
        + path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(memory.rglob("*.md"))
        if path.name != "MEMORY.md"
    }


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


SHOWN = 5


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The files a search found for a query, in order, and those it would show."""

    query: Query
    ranked: Sequence[str]
    shown: Sequence[str]


@dataclass(slots=True)
class SearchFigures:
    """The answers of all searches, by name of the search."""

    answers: dict[str, list[SearchAnswer]] = field(default_factory=dict[str, list[SearchAnswer]])
    notes: list[str] = field(default_factory=list[str])

    def summary(self) -> dict[str, Any]:
        """The figures for programs."""
        found: dict[str, Any] = {}
        for name, answers in self.answers.items():
            kinds = dict.fromkeys(answer.query.kind for answer in answers)
            by_kind = {kind: figures([a for a in answers if a.query.kind == kind]) for kind in kinds}
            found[name] = {**figures(answers), "by_kind": by_kind}
        found["queries"] = len(next(iter(self.answers.values()), ()))
        found["notes"] = self.notes
        return found

    def table(self) -> str:
        """The figures for people."""
        rows = [("", *_SHOWN)]
        whole = self.summary()
        for search in self.answers:
            rows += [_row(search, whole[search]), *(_row(f"  {k}", f) for k, f in whole[search]["by_kind"].items())]
        return "\n".join([*columns(rows, right=range(1, 8)), *self.notes])


_SHOWN = ("r@5", "mrr", "shown_r@5", "precision", "silence", "tool_docs", "forbidden")


def _row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    return (name, *("-" if found[key] is None else f"{found[key]:.3f}" for key in _SHOWN))


def figures(answers: Sequence[SearchAnswer]) -> dict[str, Any]:
    """Shares from 0 to 1; None if no query can show it.

    `r@5`: the share of relevant files among the best five, on average over queries that have some; `precision`: the
    share of relevant files among those shown, without acceptable ones; `silence`: silent queries for which nothing is
    shown; `tool_docs` and `forbidden`: queries that show the manual of a tool in use, or another forbidden file.
    """
    wanted = [answer for answer in answers if answer.query.relevant]
    silent = [answer for answer in answers if not answer.query.relevant]
    judged = [(path, a.query) for a in answers for path in a.shown if path not in a.query.acceptable]
    wrong = [answer for answer in answers if answer.query.forbidden & set(answer.shown)]
    with_tools = [answer for answer in wrong if answer.query.tools]
    return {
        "queries": len(answers),
        "r@5": mean_or_none(_recall(a.ranked[:SHOWN], a.query) for a in wanted),
        "mrr": mean_or_none(_reciprocal(a) for a in wanted),
        "shown_r@5": mean_or_none(_recall(a.shown, a.query) for a in wanted),
        "precision": mean_or_none(path in query.relevant for path, query in judged),
        "silence": mean_or_none(not a.shown for a in silent),
        "tool_docs": round(len(with_tools) / len(answers), 4) if answers else 0.0,
        "forbidden": round((len(wrong) - len(with_tools)) / len(answers), 4) if answers else 0.0,
    }


def _recall(paths: Sequence[str], query: Query) -> float:
    return len(query.relevant & set(paths)) / len(query.relevant)


def _reciprocal(answer: SearchAnswer) -> float:
    places = (n for n, path in enumerate(answer.ranked, 1) if path in answer.query.relevant)
    return 1 / next(places, float("inf"))


def measure(
    folder: Path | None,
    locomo: Path | None,
    models: Path | None,
    *,
    silent: Sequence[Path] = (),
    index: Path | None = None,
) -> SearchFigures:
    """Measures every search on a folder, or on a LoCoMo file. `models`: the folder of encoders.

    `index`: a folder for the indexes, so that a second run does not encode again.
    """
    with tempfile.TemporaryDirectory(prefix="reverie-recall-") as name:
        scratch = Path(name)
        if folder is not None:
            collections = [read_folder(folder, scratch, silent)]
        elif locomo is not None:
            collections = read_locomo(locomo, scratch)
        else:
            raise UserError("Nothing to measure: name a folder with memory/ and queries.jsonl, or --locomo FILE.")
        measured = SearchFigures()
        for collection in collections:
            measure_collection(collection, index or scratch, models, measured)
        return measured


@dataclass(frozen=True, slots=True)
class Unrelated:
    """Prompts that have nothing to do with the memories: those for which something is shown, by directory and tier."""

    asked: dict[str, int]
    shown: dict[str, dict[str, list[tuple[str, list[str]]]]]
    notes: list[str]

    def summary(self) -> dict[str, Any]:
        """The figures for programs."""
        return {
            "directories": {
                name: {"prompts": asked, **{tier: len(found) for tier, found in self.shown[name].items()}}
                for name, asked in self.asked.items()
            },
            "shown": {
                name: {tier: [{"prompt": p, "files": files} for p, files in found] for tier, found in tiers.items()}
                for name, tiers in self.shown.items()
            },
            "notes": self.notes,
        }

    def table(self) -> str:
        """The figures for people."""
        lines = list[str]()
        for name, asked in self.asked.items():
            for tier, found in self.shown[name].items():
                lines.append(f"{name:>6}  {tier:<9} shows something for {len(found)} of {asked} prompts")
                lines += [f"          {prompt.splitlines()[0][:70]}: {', '.join(files)}" for prompt, files in found]
        return "\n".join([*lines, *self.notes])


def measure_unrelated(path: Path, models: Path | None) -> Unrelated:
    """Asks each tier every prompt of the file, in the prompt's directory."""
    found = Unrelated({}, {}, [])
    with tempfile.TemporaryDirectory(prefix="reverie-recall-") as name:
        for collection in read_unrelated(path, Path(name)):
            measured = measure_collection(collection, Path(name), models)
            found.asked[collection.name] = len(collection.queries)
            found.shown[collection.name] = {
                tier: [(one.query.text, list(one.shown)) for one in measured.answers[tier] if one.shown]
                for tier in ("ranker", "semantic")
                if tier in measured.answers
            }
            found.notes.extend(note for note in measured.notes if note not in found.notes)
    return found


def measure_collection(
    collection: Collection, indexes: Path, models: Path | None, measured: SearchFigures | None = None
) -> SearchFigures:
    """Measures every search on one directory and adds the answers to `measured`; `indexes`: the folder of the index."""
    measured = measured or SearchFigures()

    def keep(search: str, answers: Iterable[SearchAnswer]) -> None:
        measured.answers.setdefault(search, []).extend(answers)

    path = indexes / f"{collection.name.replace(' ', '-')}.sqlite"
    with Ranker.open(collection.memory, path, tier="builtin") as ranker:
        keep("ranker", (_answer(query, _ask(ranker, query)) for query in collection.queries))
    semantic = Ranker.open(collection.memory, path, tier="auto", models_dir=models)
    with semantic:
        if semantic.tier == "semantic":
            semantic.prepare()
            rankings = [(query, _ask(semantic, query)) for query in collection.queries]
            keep("semantic", (_answer(query, ranking) for query, ranking in rankings))
            keep("encoder", (_encoder_alone(query, ranking) for query, ranking in rankings))
        elif semantic.note not in measured.notes:
            measured.notes.append(semantic.note)
    for search, plain in (("bm25", PlainBm25(collection.memory)), ("fts5", PlainFts5(collection.memory))):
        keep(search, (_plain(query, plain.rank(query.text)) for query in collection.queries))
    return measured


def _ask(ranker: Ranker, query: Query) -> Ranking:
    return ranker.rank(query.text, tools_in_use=query.tools, limit=SHOWN)


def _answer(query: Query, ranking: Ranking) -> SearchAnswer:
    return SearchAnswer(query, [one.path for one in ranking.ranked], [one.path for one in ranking.shown])


def _encoder_alone(query: Query, ranking: Ranking) -> SearchAnswer:
    every = {one.path: one for one in (*ranking.ranked, *(left.candidate for left in ranking.left_out))}
    return _plain(query, sorted(every, key=lambda path: -(every[path].signals.meaning or -1.0)))


def _plain(query: Query, ranked: Sequence[str]) -> SearchAnswer:
    return SearchAnswer(query, ranked, ranked[:SHOWN])
