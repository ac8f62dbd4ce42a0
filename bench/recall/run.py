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

import click

from bench.recall.data import Collection, Query, read_folder, read_locomo, read_unrelated
from bench.recall.fit import fit as fit_gate
from bench.recall.scale import measure_scale
from bench.scratch import FILE, FOLDER
from reverie.cli.options import places_of
from reverie.errors import UserError
from reverie.lab.measurement import Result, Row, Table, measurement, named, plain, ratio
from reverie.lab.recordings import mean_or_none
from reverie.memory.recall.ranker import Ranker, Ranking
from reverie.quick import dataclass

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

    def report(self) -> Result:
        """The shares of each search, for all queries and for each kind."""
        found: dict[str, Any] = {}
        rows = list[Row]()
        for name, answers in self.answers.items():
            kinds = dict.fromkeys(answer.query.kind for answer in answers)
            by_kind = {kind: figures([a for a in answers if a.query.kind == kind]) for kind in kinds}
            found[name] = {**figures(answers), "by_kind": by_kind}
            rows += named({name: found[name], **{f"  {kind}": one for kind, one in by_kind.items()}}, "search")
        found["queries"] = len(next(iter(self.answers.values()), ()))
        found["notes"] = self.notes
        return Result(found, (Table(rows, ("search", *map(ratio, _SHARES))), *self.notes))


_SHARES = ("r@5", "mrr", "shown_r@5", "precision", "silence", "tool_docs", "forbidden")


@measurement(
    "reverie lab recall my-queries --json",
    "reverie lab recall --locomo locomo10.json",
    "reverie lab recall --scale 200,10000 --json",
    "reverie lab recall --unrelated evals/recall-unrelated.jsonl",
)
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER)
@click.option(
    "--locomo",
    type=FILE,
    help="Use the LoCoMo benchmark in FILE: how often is a session found that has the answer? Only questions of the "
    "categories 1 to 4.",
)
@click.option("--scale", metavar="N,N", help="Measure time and RAM on generated memory directories with N files.")
@click.option(
    "--unrelated",
    type=FILE,
    help="Measure how often recall shows something for prompts that have nothing to do with the memories: FILE has "
    "directories of memories and prompts, as evals/recall-unrelated.jsonl.",
)
@click.option(
    "--silent",
    multiple=True,
    type=FILE,
    help="A file with more queries, in the format of queries.jsonl, for which no memory should be shown. Repeatable.",
)
@click.option(
    "--fit",
    is_flag=True,
    help="Use DIR to fit the rule of the semantic tier for showing nothing, and print its cross-validated results.",
)
@click.option("--models", type=FOLDER, help="Folder of the sentence encoders.  [default: ~/.reverie/models]")
@click.option("--keep", type=FOLDER, help="Keep the search indexes here, for a faster second run.")
def recall(
    folder: Path | None,
    locomo: Path | None,
    scale: str | None,
    unrelated: Path | None,
    silent: tuple[Path, ...],
    fit: bool,
    models: Path | None,
    keep: Path | None,
) -> Result:
    """Measure memory recall: each tier, plain BM25, plain FTS5, and the encoder alone.

    A tier is a way to rank: builtin (words) or semantic (also meaning). DIR has memory/, queries.jsonl and optionally
    mtimes.json. The command works on a copy. The semantic tier needs a sentence encoder (`reverie models add minilm`).
    """
    if sum(given is not None for given in (folder, locomo, scale, unrelated)) != 1:
        raise UserError("Give one thing to measure: a folder, --locomo FILE, --scale N,N or --unrelated FILE.")
    if scale is not None:
        by_size = measure_scale(_sizes(scale))
        return Result(by_size, [Table(named(by_size, "files"), ("files", *next(iter(by_size.values()))))])
    models = models or places_of(Path.cwd()).models
    if fit and folder is not None:
        fitted = plain(fit_gate(folder, models, silent))
        return Result({"semantic": fitted}, [Table([fitted], tuple(fitted))])
    if unrelated is not None:
        return measure_unrelated(unrelated, models)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    return measure(folder, locomo, models, silent=silent, index=keep).report()


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserError(f"--scale {text} is not a list of numbers of files; write for example 200,10000.")
    return sizes


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
        "tool_docs": len(with_tools) / len(answers) if answers else 0.0,
        "forbidden": (len(wrong) - len(with_tools)) / len(answers) if answers else 0.0,
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


def measure_unrelated(path: Path, models: Path | None) -> Result:
    """Asks each tier every prompt of the file, in the prompt's directory: how often is something shown?"""
    directories, shown, notes = dict[str, dict[str, int]](), dict[str, dict[str, list[dict[str, Any]]]](), list[str]()
    lines = list[str]()
    with tempfile.TemporaryDirectory(prefix="reverie-recall-") as name:
        for collection in read_unrelated(path, Path(name)):
            measured = measure_collection(collection, Path(name), models)
            found: dict[str, list[dict[str, Any]]] = {
                tier: [{"prompt": one.query.text, "files": list(one.shown)} for one in answers if one.shown]
                for tier, answers in measured.answers.items()
                if tier in ("ranker", "semantic")
            }
            asked = len(collection.queries)
            shown[collection.name] = found
            directories[collection.name] = {"prompts": asked, **{tier: len(those) for tier, those in found.items()}}
            notes += [note for note in measured.notes if note not in notes]
            for tier, those in found.items():
                lines.append(f"{collection.name:>6}  {tier:<9} shows something for {len(those)} of {asked} prompts")
                lines += [f"          {one['prompt'].splitlines()[0][:70]}: {', '.join(one['files'])}" for one in those]
    return Result({"directories": directories, "shown": shown, "notes": notes}, [*lines, *notes])


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
    for search, rival in (("bm25", PlainBm25(collection.memory)), ("fts5", PlainFts5(collection.memory))):
        keep(search, (_plain(query, rival.rank(query.text)) for query in collection.queries))
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
