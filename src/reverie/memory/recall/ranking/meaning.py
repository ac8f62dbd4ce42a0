"""How close a query is in meaning to each file: the best of the file's passages, by a sentence encoder.

Vectors are kept in the index and made for new or changed files within a time budget, newest first; a file that has none
yet is judged by its words alone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reverie.memory.recall.ranking.manner import example_prompts
from reverie.memory.recall.ranking.passages import passages
from reverie.memory.recall.search_index import SearchIndex

if TYPE_CHECKING:
    from reverie.memory.recall.encoder import Encoder, Floats

PASSAGES_VERSION: Final = 2
"""Part of the key of a vector: raise it when the passages of a file would come out differently."""
NEAREST_EXAMPLES: Final = 3
ENCODE_TOGETHER: Final = 4


@dataclass(frozen=True, slots=True)
class Closeness:
    """A query's closeness to each encoded file, and whether it is nearer to work than to prompts for anybody."""

    files: dict[int, float]
    nearness: float
    """Above 0: nearer to prompts about work at hand."""


class Meaning:
    """An encoder over an index. Holds the vectors in memory and follows the index when it changes."""

    def __init__(self, index: SearchIndex, encoder: Encoder) -> None:
        self._index = index
        self._encoder = encoder
        self._key = f"{encoder.identity}.{PASSAGES_VERSION}"
        self._generation: tuple[int, int, int] | None = None
        self._matrix: Floats | None = None
        self._starts: list[int] = []
        self._files: list[int] = []
        self._examples: tuple[Floats, Floats] | None = None

    def encode_missing(self, seconds: float | None = None) -> int:
        """Encodes files that have no vectors, for about `seconds` (None: all of them); how many are still missing."""
        missing = self._index.without_vectors(self._key)
        until = None if seconds is None else time.monotonic() + seconds
        done = 0
        while done < len(missing) and (until is None or time.monotonic() < until):
            part = missing[done : done + ENCODE_TOGETHER]
            made = self._encoded(part)
            self._index.add_vectors(self._key, made)
            done += len(part)
        if done == len(missing):
            self._example_vectors()
        return len(missing) - done

    def _encoded(self, part: Sequence[tuple[int, bytes]]) -> list[tuple[bytes, bytes]]:
        known = self._index.files([file for file, _ in part])
        texts: list[list[str]] = []
        for file, _ in part:
            topic = self._index.read(known[file])
            texts.append(passages(topic.path, topic.name, topic.description, topic.body))
        vectors = self._encoder.encode([text for of_file in texts for text in of_file])
        made: list[tuple[bytes, bytes]] = []
        start = 0
        for (_, digest), of_file in zip(part, texts, strict=True):
            made.append((digest, _packed(vectors[start : start + len(of_file)])))
            start += len(of_file)
        return made

    def closeness(self, query: str) -> Closeness:
        """To every file that has vectors."""
        import numpy as np

        self._load()
        vector = self._encoder.encode([query])[0]
        found: dict[int, float] = {}
        if self._matrix is not None and len(self._files):
            best = np.maximum.reduceat(self._matrix @ vector, self._starts)
            found = dict(zip(self._files, best.tolist(), strict=True))
        work, general = self._example_vectors()
        return Closeness(found, _nearest(work @ vector) - _nearest(general @ vector))

    def _load(self) -> None:
        import numpy as np

        generation = self._index.generation()
        if generation == self._generation:
            return
        parts: list[Floats] = []
        self._files, self._starts = [], []
        rows = 0
        for file, data in self._index.vectors(self._key):
            part = _unpacked(data)
            self._files.append(file)
            self._starts.append(rows)
            rows += len(part)
            parts.append(part)
        self._matrix = np.concatenate(parts) if parts else None
        self._generation = generation

    def _example_vectors(self) -> tuple[Floats, Floats]:
        """The example prompts' vectors, made once for an encoder and kept in the index."""
        if self._examples is None:
            work, general = example_prompts()
            digest = hashlib.blake2b("\n".join((*work, "", *general)).encode(), digest_size=16).digest()
            data = self._index.vector(self._key, digest)
            if data is None:
                data = _packed(self._encoder.encode([*work, *general]))
                self._index.add_vectors(self._key, [(digest, data)])
                self._generation = None
            vectors = _unpacked(data)
            self._examples = vectors[: len(work)], vectors[len(work) :]
        return self._examples


def _nearest(similarities: Any) -> float:
    import numpy as np

    return float(np.sort(similarities)[-NEAREST_EXAMPLES:].mean())


def _packed(vectors: Floats) -> bytes:
    import numpy as np

    return len(vectors).to_bytes(2, "little") + vectors.astype(np.float16).tobytes()


def _unpacked(data: bytes) -> Floats:
    import numpy as np

    count = int.from_bytes(data[:2], "little")
    return np.frombuffer(data, np.float16, offset=2).reshape(count, -1).astype(np.float32)
