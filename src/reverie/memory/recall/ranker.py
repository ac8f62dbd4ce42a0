"""The local ranker: which memories fit a prompt, best first, which of them to show, and why, without asking a model.
Two tiers: built in (words only, no dependencies) and semantic (a sentence encoder as well). It reads the memory
directory and writes only its derived index."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from reverie.errors import UserError
from reverie.memory.recall.encoder import MINILM
from reverie.memory.recall.ranking import mixture
from reverie.memory.recall.ranking.lexical import BEST, Match, WordScore, word_scores
from reverie.memory.recall.ranking.manner import manner
from reverie.memory.recall.ranking.mixture import RankSignals
from reverie.memory.recall.ranking.tools import ToolInUse, about_tool, is_manual, tool_terms
from reverie.memory.recall.ranking.tools import tools_in_use as seen_tools
from reverie.memory.recall.ranking.twins import asks_for_past, is_replaced, older_twins
from reverie.memory.recall.search_index import IndexedFile, IndexFailed, SearchIndex
from reverie.memory.scan import folder_mtimes
from reverie.quick import dataclass

if TYPE_CHECKING:
    from reverie.memory.recall.ranking.meaning import Closeness, Meaning

Tier = Literal["builtin", "semantic", "auto"]

ENCODE_SECONDS: Final = 0.5
"""How long `rank` may encode new files; the rest is done at the next call, or by `prepare`."""
NOT_ENCODED: Final = 0.1
"""With a larger share of files without vectors, meaning is not used."""
RESCAN_SECONDS: Final = 2.0
RESCAN_COST: Final = 25
"""All files are checked again after this many times the duration of the last check, at least `RESCAN_SECONDS`."""
TWINS_AMONG: Final = 16
EVERY_FILE: Final = 2_000
"""Up to this number every encoded file is a candidate; beyond it, the best by words and by meaning."""


@dataclass(frozen=True, slots=True)
class RankedMemory:
    """A memory and how well it fits. `why` names the signals, `matches` the words it shares with the prompt."""

    path: str
    name: str
    description: str
    type: str
    mtime: float
    score: float
    signals: RankSignals
    matches: tuple[Match, ...]

    @property
    def why(self) -> str:
        parts: list[str] = []
        if self.signals.meaning is not None:
            parts.append(f"meaning {self.signals.meaning:.2f}")
        parts.append(f"words {self.signals.words:.2f}")
        if self.matches:
            parts[-1] += f" ({', '.join(map(str, self.matches))})"
        if self.signals.tool:
            parts.append("about a tool in use")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One of the best memories that is not shown, and the reason."""

    candidate: RankedMemory
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """The result for one prompt. `confidence` is the probability that anything should be shown, `grounds` the values
    behind it; `silent` says why nothing is shown; `not_encoded` counts files without vectors."""

    tier: Literal["builtin", "semantic"]
    """Which tier decided: the built-in one even with an encoder, while it encodes a new directory."""
    ranked: tuple[RankedMemory, ...]
    shown: tuple[RankedMemory, ...]
    left_out: tuple[LeftOut, ...]
    confidence: float
    grounds: tuple[tuple[str, float], ...]
    silent: str
    files: int
    not_encoded: int


class Ranker:
    """Ranks the files of one memory directory. Open it with `Ranker.open`, keep it for a session, close it. Calls block
    (some milliseconds; up to half a second more while new files are encoded): run them in a thread, one at a time."""

    def __init__(self, index: SearchIndex, meaning: Meaning | None, note: str) -> None:
        self._index = index
        self._meaning = meaning
        self.note = note
        """Why the tier is not the requested one, or why the index is not stored. May be empty."""
        self._folders: tuple[str, ...] = ("",)
        self._marks: tuple[int, ...] = ()
        self._checked = -1e9
        self._check_cost = 0.0

    @classmethod
    def open(
        cls,
        memory_dir: Path,
        index_path: Path | None,
        *,
        tier: Tier = "auto",
        models_dir: Path | None = None,
        encoder: Path | str = MINILM,
    ) -> Ranker:
        """`index_path` is the file of the derived index, outside the memory directory (None: not stored). `encoder` is
        a folder, or the name of one in `models_dir` or of a package. `semantic` raises `UserError` if there is none;
        `auto` then uses words only and explains it in `note`."""
        if index_path is not None and index_path.resolve().is_relative_to(memory_dir.resolve()):
            raise UserError(f"{index_path}: the index must lie outside the memory directory; name another place.")
        index = SearchIndex(memory_dir, index_path)
        note = _index_note(index)
        meaning: Meaning | None = None
        if tier != "builtin":
            try:
                meaning = _meaning(index, models_dir, encoder)
            except UserError as error:
                if tier == "semantic":
                    index.close()
                    raise
                note = note or str(error)
        return cls(index, meaning, note)

    def close(self) -> None:
        self._index.close()

    def __enter__(self) -> Ranker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def tier(self) -> Literal["builtin", "semantic"]:
        return "semantic" if self._meaning else "builtin"

    def prepare(self, seconds: float | None = None) -> int:
        """Updates index and vectors (None: without a time limit); returns how many files are still not encoded."""
        try:
            self._refresh_index(force=True)
        except IndexFailed as error:
            self._recover(error)
            self._refresh_index(force=True)
        return self._meaning.encode_missing(seconds) if self._meaning else 0

    def rank(
        self,
        query: str,
        *,
        tools_in_use: Sequence[str] = (),
        exclude: Collection[str] = (),
        now: float | None = None,
        limit: int = 5,
        refresh: bool = True,
    ) -> Ranking:
        """Ranks the memories for `query`. `exclude` are relative paths that are shown already. `now` is in seconds
        since 1970; files from the future count as from now. Without `refresh`, somebody else updates the index."""
        now = time.time() if now is None else now
        try:
            if not refresh:
                return self._rank_once(query, tools_in_use, frozenset(exclude), now, limit)
            return self._rank(query, tools_in_use, frozenset(exclude), now, limit)
        except IndexFailed as error:
            # The index is derived: build it again and ask once more.
            self._recover(error)
            return self._rank(query, tools_in_use, frozenset(exclude), now, limit)

    def _rank(self, query: str, tools: Sequence[str], exclude: frozenset[str], now: float, limit: int) -> Ranking:
        self._refresh_index()
        ranking = self._rank_once(query, tools, exclude, now, limit)
        # A file that was edited in place since the last check is noticed before the decision about it counts.
        if self._index.refresh_paths(one.path for one in ranking.ranked[:limit]).anything:
            ranking = self._rank_once(query, tools, exclude, now, limit)
        return ranking

    def _rank_once(self, query: str, tools: Sequence[str], exclude: frozenset[str], now: float, limit: int) -> Ranking:
        not_encoded = self._meaning.encode_missing(ENCODE_SECONDS) if self._meaning else 0
        files = self._index.totals()[0]
        words = word_scores(self._index, query, foreign=bool(mixture.foreign_signal(query)))
        # While many files have no vectors, the others would always win: then words alone are fairer.
        enough = not_encoded <= NOT_ENCODED * files
        close = self._meaning.closeness(query) if self._meaning and enough else None
        usual = mixture.usual_share((one.share + one.related for one in words.values()), files) if close else 0.0
        used = seen_tools(tools)
        candidates = self._index.files(self._candidates(words, close, used))
        found: list[tuple[RankedMemory, IndexedFile]] = []
        for number, file in candidates.items():
            if file.path in exclude:
                continue
            of_words = words.get(number)
            signals = RankSignals(
                words=of_words.share if of_words else 0.0,
                meaning=close.files.get(number) if close else None,
                tool=about_tool(used, file),
                usual=usual,
                related=of_words.related if of_words else 0.0,
                evidence=of_words.evidence if of_words else 0.0,
            )
            score = mixture.score(signals, close is not None)
            matches = tuple(of_words.matches) if of_words else ()
            mtime = min(file.mtime, now)
            one = RankedMemory(file.path, file.name, file.description, file.type, mtime, score, signals, matches)
            found.append((one, file))
        found.sort(key=lambda pair: (-pair[0].score, -pair[0].mtime, pair[0].path))
        ranked, left_out = self._split_left_out(query, found, used)
        nearness = close.nearness if close else None
        decision = mixture.decide(query, ranked, files=files, manner=manner(query), nearness=nearness, limit=limit)
        left_out += [LeftOut(one, decision.reason) for one in ranked[decision.show : max(limit, decision.show + 1)]]
        return Ranking(
            tier="semantic" if close else "builtin",
            ranked=tuple(ranked),
            shown=tuple(ranked[: decision.show]),
            left_out=tuple(left_out),
            confidence=decision.confidence,
            grounds=decision.grounds,
            silent=decision.silent,
            files=files,
            not_encoded=not_encoded,
        )

    def _candidates(self, words: dict[int, WordScore], close: Closeness | None, used: Sequence[ToolInUse]) -> set[int]:
        found = set(sorted(words, key=lambda file: -words[file].share - words[file].related)[:BEST])
        if close:
            if len(close.files) <= EVERY_FILE:
                found |= close.files.keys()
            else:
                found |= set(sorted(close.files, key=lambda file: -close.files[file])[:BEST])
        if used:
            by_tool = word_scores(self._index, tool_terms(used))
            found |= set(sorted(by_tool, key=lambda file: -by_tool[file].share)[:BEST])
        return found

    def _split_left_out(
        self, query: str, found: Sequence[tuple[RankedMemory, IndexedFile]], used: Sequence[ToolInUse]
    ) -> tuple[list[RankedMemory], list[LeftOut]]:
        """Leaves out manuals of tools in use, and memories that something newer replaced, whatever their score."""
        past = asks_for_past(query)
        twins = {} if past else older_twins([file for _, file in found[:TWINS_AMONG]], query)
        ranked: list[RankedMemory] = []
        left_out: list[LeftOut] = []
        for one, file in found[:BEST]:
            if is_manual(used, file, self._index):
                left_out.append(LeftOut(one, "explains how to use a tool that is in use already"))
            elif not past and is_replaced(file):
                left_out.append(LeftOut(one, "says that it has been replaced"))
            elif file.path in twins:
                left_out.append(LeftOut(one, f"{twins[file.path]} says nearly the same and is newer"))
            else:
                ranked.append(one)
        return ranked + [one for one, _ in found[BEST:]], left_out

    def _refresh_index(self, *, force: bool = False) -> None:
        """Updates the index: at once when a file was added, removed or replaced, soon when one was edited in place."""
        began = time.monotonic()
        marks = folder_mtimes(self._index.memory_dir, self._folders)
        due = began - self._checked > max(RESCAN_SECONDS, RESCAN_COST * self._check_cost)
        if not (force or due or marks != self._marks):
            return
        folders = self._index.refresh().folders
        self._marks = marks if folders == self._folders else folder_mtimes(self._index.memory_dir, folders)
        self._folders = folders
        self._checked = time.monotonic()
        self._check_cost = self._checked - began

    def _recover(self, error: IndexFailed) -> None:
        self._index.recover(error)
        self.note = _index_note(self._index) or self.note
        self._checked = -1e9


def _index_note(index: SearchIndex) -> str:
    return f"The search index is kept in memory only: {index.problem}." if index.problem else ""


def _meaning(index: SearchIndex, models_dir: Path | None, encoder: Path | str) -> Meaning:
    from reverie.memory.recall.encoder import open_encoder
    from reverie.memory.recall.ranking.meaning import Meaning

    return Meaning(index, open_encoder(models_dir, encoder))
