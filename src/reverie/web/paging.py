"""Pages of long lists: by position, so that nothing is cut off and every page has an address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from reverie.web.visit import Data, Visit

T = TypeVar("T")

SIZE = 50
_MOST = 500


class Pager:
    """Which part of a list a visit asks for: `?start=` (from 0) and `?size=`."""

    def __init__(self, visit: Visit, *, size: int = SIZE) -> None:
        self.start = visit.number("start", 0)
        self.size = visit.number("size", size, least=1, most=_MOST)
        self._query = {key: value for key, value in visit.query.items() if key not in ("start", "size", "part")}
        self._own_size = "size" in visit.query

    def of(self, items: Sequence[T]) -> Sequence[T]:
        """The part of the list."""
        return items[self.start : self.start + self.size]

    def here(self) -> str:
        """The address of this part."""
        return self._address(self.start)

    def describe(self, total: int) -> Data:
        """For the template `pager` in `parts.html`, and for programs."""
        last = max(0, (total - 1) // self.size * self.size)
        before = max(0, self.start - self.size) if self.start else None
        after = self.start + self.size if self.start + self.size < total else None
        return {
            "start": self.start,
            "size": self.size,
            "total": total,
            "first": self._address(0) if self.start else None,
            "previous": None if before is None else self._address(before),
            "next": None if after is None else self._address(after),
            "last": None if after is None else self._address(last),
        }

    def _address(self, start: int) -> str:
        more: dict[str, Any] = {"start": start} | ({"size": self.size} if self._own_size else {})
        return "?" + urlencode({**self._query, **more})
