"""Patterns that are compiled when they are first used.

A command imports far more patterns than it uses, and to compile them was a third of its start. It never changes what a
pattern finds: after the first use, each method is the one of the compiled pattern.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "flags")


class _LatePattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:  # only for what is not set yet
        compiled = re.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, but at the first use. A mistake in the pattern is also found only then."""
    return cast("re.Pattern[str]", _LatePattern(pattern, flags))
