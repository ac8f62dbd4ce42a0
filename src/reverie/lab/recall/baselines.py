"""Plain searches to compare the ranker with: BM25 over lower-cased words, and SQLite FTS5 as it comes.

They show their five best, whatever the query: they have no notion of silence.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from pathlib import Path

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

    def ranked(self, query: str) -> list[str]:
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
    """SQLite's FTS5 with its default tokenizer; the query's words joined by OR, ranked by its bm25()."""

    def __init__(self, memory: Path) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE notes USING fts5(path UNINDEXED, text)")
        self._db.executemany("INSERT INTO notes VALUES (?, ?)", _texts(memory).items())

    def ranked(self, query: str) -> list[str]:
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
