"""How close a query is in meaning to each file: the best of the file's passages, by a sentence encoder. Vectors are
stored in the index and made for new or changed files within a time budget, newest first."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from reverie.memory.recall.ranking.manner import example_prompts
from reverie.memory.recall.search_index import SearchIndex
from reverie.quick import dataclass
from reverie.text.sentences import sentences

if TYPE_CHECKING:
    from reverie.memory.recall.encoder import Floats, SentenceEncoder

PASSAGES_VERSION: Final = 2
"""Part of the key of a vector: raise it when the passages of a file would change."""
WHOLE_WORDS: Final = 170
"""A file up to this length is one passage: its title gives the body its meaning."""
WINDOW_WORDS: Final = 70
MAX_PASSAGES: Final = 32
NEAREST_EXAMPLES: Final = 3
ENCODE_TOGETHER: Final = 4


@dataclass(frozen=True, slots=True)
class Closeness:
    """A query's closeness to each encoded file. `nearness` above 0: nearer to prompts about current work than to
    general prompts."""

    files: dict[int, float]
    nearness: float


class Meaning:
    """An encoder over an index. Keeps the vectors in memory and follows changes of the index."""

    def __init__(self, index: SearchIndex, encoder: SentenceEncoder) -> None:
        self._index = index
        self._encoder = encoder
        self._key = f"{encoder.identity}.{PASSAGES_VERSION}"
        self._generation: tuple[int, int, int] | None = None
        self._matrix: Floats | None = None
        self._starts: list[int] = []
        self._files: list[int] = []
        self._examples: tuple[Floats, Floats] | None = None

    def encode_missing(self, seconds: float | None = None) -> int:
        """Encodes files without vectors for about `seconds` (None: all of them); returns how many are left."""
        missing = self._index.without_vectors(self._key)
        until = None if seconds is None else time.monotonic() + seconds
        done = 0
        while done < len(missing) and (until is None or time.monotonic() < until):
            part = missing[done : done + ENCODE_TOGETHER]
            made = self._encode(part)
            self._index.add_vectors(self._key, made)
            done += len(part)
        if done == len(missing):
            self._example_vectors()
        return len(missing) - done

    def _encode(self, part: Sequence[tuple[int, bytes]]) -> list[tuple[bytes, bytes]]:
        known = self._index.files([file for file, _ in part])
        texts = [
            passages(one.path, one.name, one.description, self._index.body(one).strip())
            for one in (known[file] for file, _ in part)
        ]
        vectors = self._encoder.encode([text for of_file in texts for text in of_file])
        made: list[tuple[bytes, bytes]] = []
        start = 0
        for (_, digest), of_file in zip(part, texts, strict=True):
            made.append((digest, _pack(vectors[start : start + len(of_file)])))
            start += len(of_file)
        return made

    def closeness(self, query: str) -> Closeness:
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
            part = _unpack(data)
            self._files.append(file)
            self._starts.append(rows)
            rows += len(part)
            parts.append(part)
        self._matrix = np.concatenate(parts) if parts else None
        self._generation = generation

    def _example_vectors(self) -> tuple[Floats, Floats]:
        """The vectors of the example prompts, made once per encoder and stored in the index."""
        if self._examples is None:
            work, general = example_prompts()
            digest = hashlib.blake2b("\n".join((*work, "", *general)).encode(), digest_size=16).digest()
            data = self._index.vector(self._key, digest)
            if data is None:
                data = _pack(self._encoder.encode([*work, *general]))
                self._index.add_vectors(self._key, [(digest, data)])
                self._generation = None
            vectors = _unpack(data)
            self._examples = vectors[: len(work)], vectors[len(work) :]
        return self._examples


def _nearest(similarities: Any) -> float:
    import numpy as np

    return float(np.sort(similarities)[-NEAREST_EXAMPLES:].mean())


def _pack(vectors: Floats) -> bytes:
    import numpy as np

    return len(vectors).to_bytes(2, "little") + vectors.astype(np.float16).tobytes()


def _unpack(data: bytes) -> Floats:
    import numpy as np

    count = int.from_bytes(data[:2], "little")
    return np.frombuffer(data, np.float16, offset=2).reshape(count, -1).astype(np.float32)


def passages(path: str, name: str, description: str, body: str) -> list[str]:
    """The texts to encode for a topic file: its header, and its body whole or in overlapping windows of whole lines."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".md").replace("_", " ").replace("-", " ")
    title = name or stem
    header = f"{title}. {description}" if description else title
    if not body:
        return [header]
    if len(body.split()) <= WHOLE_WORDS:
        return [header, f"{stem}. {header}\n{body}"]
    return [header, *(f"{title}\n{window}" for window in _windows(body))][:MAX_PASSAGES]


def _windows(body: str) -> list[str]:
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    lines = [part for line in lines for part in ([line] if len(line.split()) <= WINDOW_WORDS else sentences(line))]
    windows: list[str] = []
    start = 0
    while start < len(lines):
        end, count = start, 0
        while end < len(lines) and (end == start or count + len(lines[end].split()) <= WINDOW_WORDS):
            count += len(lines[end].split())
            end += 1
        windows.append("\n".join(lines[start:end]))
        if end >= len(lines):
            break
        start = max(start + 1, end - 1)
    return windows
