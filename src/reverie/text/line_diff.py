"""Which lines two texts share, in bounded time: for texts of a model, whose lines may repeat without end.

Lines that are in both texts exactly once divide the rest into gaps, and `difflib` compares small gaps. Of a gap that
would take long, only the first and last lines are compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher

_MOST_STEPS = 5_000_000  # a second or two


class LineMatcher(SequenceMatcher[str]):
    """Compares lines as its parent does, but never for long."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self._old, self._new = old, new
        self._steps = 0

    def get_matching_blocks(self) -> list[Match]:
        joined = list[Match]()
        for i, j, size in self._find_blocks():
            last = joined[-1] if joined else Match(0, 0, 0)
            if joined and (last.a + last.size, last.b + last.size) == (i, j):
                joined[-1] = last._replace(size=last.size + size)
            elif size:
                joined.append(Match(i, j, size))
        return [*joined, Match(len(self._old), len(self._new), 0)]

    def _find_blocks(self) -> Iterator[tuple[int, int, int]]:
        i = j = 0
        for i2, j2 in [*self._find_anchors(), (len(self._old), len(self._new))]:
            yield from self._compare(i, i2, j, j2)
            if i2 < len(self._old):
                yield i2, j2, 1
            i, j = i2 + 1, j2 + 1

    def _find_anchors(self) -> list[tuple[int, int]]:
        """The longest row of lines that are once in both texts, and in the same order there."""
        once_old, once_new = ({line for line, n in Counter(text).items() if n == 1} for text in (self._old, self._new))
        places = {line: j for j, line in enumerate(self._new) if line in once_new}
        pairs = [(i, places[line]) for i, line in enumerate(self._old) if line in once_old and line in places]
        ends, rows, before = list[int](), list[int](), list[int]()  # of the best row of each length
        for at, (_, j) in enumerate(pairs):
            length = bisect_left(ends, j)
            before.append(rows[length - 1] if length else -1)
            ends[length : length + 1], rows[length : length + 1] = [j], [at]
        found, at = list[tuple[int, int]](), rows[-1] if rows else -1
        while at >= 0:
            found.append(pairs[at])
            at = before[at]
        return found[::-1]

    def _compare(self, i: int, i2: int, j: int, j2: int) -> Iterator[tuple[int, int, int]]:
        """What old[i:i2] and new[j:j2] share."""
        old, new = self._old, self._new
        first = i
        while i < i2 and j < j2 and old[i] == new[j]:
            i, j = i + 1, j + 1
        yield first, j - (i - first), i - first
        last = i2
        while i < i2 and j < j2 and old[i2 - 1] == new[j2 - 1]:
            i2, j2 = i2 - 1, j2 - 1
        if i < i2 and j < j2 and self._may_search(old[i:i2], new[j:j2]):
            inner = SequenceMatcher(None, old[i:i2], new[j:j2], autojunk=False)
            yield from ((i + one.a, j + one.b, one.size) for one in inner.get_matching_blocks())
        yield i2, j2, last - i2

    def _may_search(self, old: Sequence[str], new: Sequence[str]) -> bool:
        """Whether there is time left for `difflib`, which looks at all pairs of equal lines again and again."""
        of_new = Counter(new)
        pairs = sum(of_new[line] for line in old)
        steps = (len(old) + pairs) * min(len(old), len(new), pairs)
        if not pairs or self._steps + steps > _MOST_STEPS:
            return False
        self._steps += steps
        return True
