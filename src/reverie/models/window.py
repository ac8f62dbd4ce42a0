"""The window of a model and the thresholds inside it: when to warn, when to compact, when to refuse.

Pure arithmetic on plain numbers. It never reads the environment, a file or the catalogue: the caller hands over what
was set, and what each setting can do (only lower, only shrink) is decided here, in one place.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum

from reverie.errors import SettingsError

REFERENCE_WINDOW = 200_000
"""The window the absolute numbers are written for; smaller windows scale them down."""

MILLION_WINDOW = 1_000_000
"""The window a `[1m]` suffix or the beta header asks for."""

OUTPUT_RESERVE = 20_000
"""At most this much of the window is kept free for the reply."""

AUTOCOMPACT_BUFFER = 13_000
WARNING_BUFFER = 20_000
BLOCKING_BUFFER = 3_000

_MILLION_SUFFIX = re.compile(r"\[1m\]\s*$", re.IGNORECASE)


class WindowSource(StrEnum):
    """Who said how large the window is."""

    SUFFIX = "[1m] suffix"
    CATALOGUE = "catalogue"
    BETA_HEADER = "1M beta header"
    SETTING = "REVERIE_CONTEXT_WINDOW"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Window:
    """A window in tokens, and where the number comes from."""

    tokens: int
    source: WindowSource


def resolve_window(
    model: str, *, catalogued: int | None = None, beta_1m: bool = False, configured: int | None = None
) -> Window:
    """The window of `model`: the first that answers.

    `catalogued` is the catalogue's window, None if it does not know the model; `beta_1m` says that requests carry the
    1M beta header; `configured` is the user's setting, which therefore speaks only for models nobody has described.
    """
    if _MILLION_SUFFIX.search(model):
        return Window(MILLION_WINDOW, WindowSource.SUFFIX)
    if catalogued is not None:
        return Window(_positive(catalogued, f"the catalogue's window of {model}"), WindowSource.CATALOGUE)
    if beta_1m:
        return Window(MILLION_WINDOW, WindowSource.BETA_HEADER)
    if configured is not None:
        return Window(_positive(configured, "REVERIE_CONTEXT_WINDOW"), WindowSource.SETTING)
    return Window(REFERENCE_WINDOW, WindowSource.DEFAULT)


def scaled(number: int, window: int) -> int:
    """An absolute number of tokens, characters or bytes as it holds for this window: scaled down below 200,000."""
    return number if window >= REFERENCE_WINDOW else number * window // REFERENCE_WINDOW


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where things happen, in tokens of context: `0 ≤ warning < autocompact ≤ effective ≤ window`."""

    window: int
    """The window the others are computed for (shrunk, if a setting says so)."""
    effective: int
    """What is left for the prompt once room for the reply is set aside."""
    autocompact: int
    """From here on the context is compacted before the next request."""
    warning: int
    """From here on the user is told how much is left."""
    blocking: int
    """From here on a request is refused and the user told to compact."""

    def percent_left(self, used: int) -> int:
        """How much is left before compaction, in whole percent: 100 for an empty context, never below 0."""
        left = (self.autocompact - used) / self.autocompact * 100
        return max(0, math.floor(left + 0.5))


def thresholds(
    window: int,
    max_output: int,
    *,
    autocompact_pct: float | None = None,
    autocompact_window: int | None = None,
    blocking_limit: int | None = None,
    output_reserve: int = OUTPUT_RESERVE,
    autocompact_buffer: int = AUTOCOMPACT_BUFFER,
    warning_buffer: int = WARNING_BUFFER,
    blocking_buffer: int = BLOCKING_BUFFER,
) -> Thresholds:
    """The thresholds for a window and a model's output limit, with what the user has set.

    `autocompact_window` can only shrink the window everything is computed for; `autocompact_pct` (of effective) can
    only lower the autocompact threshold; `blocking_limit` replaces the blocking threshold. A value outside its range
    is a `SettingsError` that names the setting.
    """
    _positive(max_output, "the model's max_output")
    size = _positive(window, "the context window")
    if autocompact_window is not None:
        size = min(size, _positive(autocompact_window, "REVERIE_AUTOCOMPACT_WINDOW"))
    # A window of a few tokens would round every reserve to nothing; keep one token between the steps.
    effective = max(1, size - min(max_output, scaled(output_reserve, size)))
    compact_at = max(1, effective - scaled(autocompact_buffer, size))
    if autocompact_pct is not None:
        if not 0 < autocompact_pct <= 100:
            raise SettingsError(
                f"REVERIE_AUTOCOMPACT_PCT is {autocompact_pct:g}; set a percentage above 0 and up to 100."
            )
        compact_at = max(1, min(compact_at, math.floor(effective * autocompact_pct / 100)))
    blocking = max(1, effective - scaled(blocking_buffer, size))
    if blocking_limit is not None:
        blocking = _positive(blocking_limit, "REVERIE_BLOCKING_LIMIT")
    warning = max(0, min(compact_at - 1, compact_at - scaled(warning_buffer, size)))
    return Thresholds(size, effective, compact_at, warning, blocking)


def _positive(tokens: int, what: str) -> int:
    if tokens < 1:
        raise SettingsError(f"{what} is {tokens}; set a number of tokens above 0.")
    return tokens
