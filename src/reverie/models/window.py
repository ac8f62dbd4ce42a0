"""The window of a model and the thresholds in it: when to warn, when to compact, when to refuse.

Only computes: the caller passes the settings and the facts of the model. It imports neither flags nor an event loop.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from reverie.errors import SettingsError
from reverie.quick import dataclass

if TYPE_CHECKING:
    from reverie.flags import Flags
    from reverie.models.catalogue import ModelFacts
    from reverie.settings import Settings

REFERENCE_WINDOW = 200_000
"""The window for which the absolute numbers are written; smaller windows scale them down."""

MILLION_WINDOW = 1_000_000
"""The window that a `[1m]` suffix or the beta header asks for."""
ONE_MILLION_BETA = "context-1m-2025-08-07"

UNLISTED_WINDOW = 32_000
"""The window of a model on the user's own server that neither the catalogue nor the server describes."""

OUTPUT_RESERVE = 20_000
"""At most this much of the window is kept free for the response."""

AUTOCOMPACT_BUFFER = 13_000
WARNING_BUFFER = 20_000
BLOCKING_BUFFER = 3_000

_MILLION_SUFFIX = re.compile(r"\[1m\]\s*$", re.IGNORECASE)


class WindowSource(StrEnum):
    """Where the size of a window comes from."""

    SUFFIX = "[1m] suffix"
    CATALOGUE = "catalogue"
    BETA_HEADER = "1M beta header"
    SETTING = "REVERIE_CONTEXT_WINDOW"
    SERVER = "the server says so"
    UNLISTED = "assumed"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Window:
    """A window in tokens, and the source of the number."""

    tokens: int
    source: WindowSource


def resolve_window(
    model: str,
    *,
    catalogued: int | None = None,
    beta_1m: bool = False,
    configured: int | None = None,
    served: int | None = None,
    own_server: bool = False,
) -> Window:
    """The window of `model`: by its suffix, the catalogue, the beta header, the user's setting, or the default.

    `catalogued` is None if the catalogue does not know the model; `beta_1m`: requests have the 1M beta header;
    `configured` is the user's setting, which only counts for models that are not in the catalogue. A model that is
    still unknown gets what its server said (`served`), and on a server other than the vendor's (`own_server`) a small
    window: too small costs a compaction, too large costs the conversation.
    """
    if _MILLION_SUFFIX.search(model):
        return Window(MILLION_WINDOW, WindowSource.SUFFIX)
    if catalogued is not None:
        return Window(_positive(catalogued, f"the catalogue's window of {model}"), WindowSource.CATALOGUE)
    if beta_1m:
        return Window(MILLION_WINDOW, WindowSource.BETA_HEADER)
    if configured is not None:
        return Window(_positive(configured, "REVERIE_CONTEXT_WINDOW"), WindowSource.SETTING)
    if served is not None:
        return Window(served, WindowSource.SERVER)
    if own_server:
        return Window(UNLISTED_WINDOW, WindowSource.UNLISTED)
    return Window(REFERENCE_WINDOW, WindowSource.DEFAULT)


def scaled(number: int, window: int) -> int:
    """A number of tokens, characters or bytes for this window: scaled down below 200,000."""
    return number if window >= REFERENCE_WINDOW else number * window // REFERENCE_WINDOW


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds in tokens of context: `0 ≤ warning < autocompact ≤ effective ≤ window`."""

    window: int
    """The window for which the others are computed; a setting can make it smaller."""
    effective: int
    """What is left for the prompt: the window without the room for the response."""
    autocompact: int
    """From here on the context is compacted before the next request."""
    warning: int
    """From here on the user sees how much is left."""
    blocking: int
    """From here on a request is refused, and the user is asked to compact."""
    is_set: bool = False
    """Whether the user set `blocking`, so that it counts whatever fills the window."""

    def percent_left(self, used: int) -> int:
        """How much is left before compaction, as a whole percentage from 100 (empty context) to 0."""
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
    """The thresholds for a window and a model's output limit, with the user's settings.

    `autocompact_window` can only shrink the window; `autocompact_pct` (of effective) can only lower the autocompact
    threshold; `blocking_limit` replaces the blocking threshold. A bad value is a `SettingsError`.
    """
    _positive(max_output, "the model's max_output")
    size = _positive(window, "the context window")
    if autocompact_window is not None:
        size = min(size, _positive(autocompact_window, "REVERIE_AUTOCOMPACT_WINDOW"))
    # In a very small window every reserve is rounded to 0: keep one token between the steps.
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
    return Thresholds(size, effective, compact_at, warning, blocking, is_set=blocking_limit is not None)


def asked_betas(settings: Settings) -> tuple[str, ...]:
    """The beta features in the settings. A variable has several of them with commas."""
    return tuple(beta for text in settings.model.anthropic_betas for beta in text.replace(",", " ").split())


def window_of(name: str, facts: ModelFacts, settings: Settings) -> Window:
    """The size of a model's window, and its source."""
    given, provider = settings.model, name.partition(":")[0]
    own = {"anthropic": given.anthropic_base_url, "openai": given.openai_base_url}
    return resolve_window(
        name,
        catalogued=facts.window if facts.known else None,
        beta_1m=provider == "anthropic" and ONE_MILLION_BETA in asked_betas(settings),
        configured=settings.window.context_window,
        served=facts.window if facts.served else None,
        own_server=bool(own.get(provider)),
    )


def window_doubt(name: str, found: Window) -> str | None:
    """One sentence about a window that nobody told us; None if somebody did."""
    if found.source is not WindowSource.UNLISTED:
        return None
    return (
        f"Nobody says how large the window of {name} is, so {found.tokens:,} tokens are assumed; "
        "set REVERIE_CONTEXT_WINDOW (window.context_window) to its real size."
    )


def output_caps(settings: Settings, facts: ModelFacts, window: int) -> tuple[int, int]:
    """The longest response of a request, and of the one after a response that was cut off.

    The first never asks for more than the window keeps free, which is less in a small window.
    """
    given = settings.model
    free = max(1, scaled(settings.window.output_reserve, window))
    cap = min(given.max_output, facts.max_output, free)
    return cap, max(cap, min(scaled(given.raised_output, window), facts.max_output))


def limits_of(name: str, facts: ModelFacts, settings: Settings, flags: Flags | None = None) -> Thresholds:
    """The thresholds of a model's window, with the user's settings and flags."""
    given = settings.window

    def number(key: str) -> int:
        value: int = getattr(given, key)
        return value if flags is None else flags.number(f"window.{key}", value)

    found = thresholds(
        window_of(name, facts, settings).tokens,
        facts.max_output,
        autocompact_pct=given.autocompact_pct,
        autocompact_window=given.autocompact_window,
        blocking_limit=given.blocking_limit,
        output_reserve=number("output_reserve"),
        autocompact_buffer=number("autocompact_buffer"),
        warning_buffer=number("warning_buffer"),
        blocking_buffer=number("blocking_buffer"),
    )
    if flags is not None and flags.on("context_collapse"):  # folding leaves less, so the window may be fuller
        share = flags.number("compaction.collapse_block_pct", settings.compaction.collapse_block_pct)
        return replace(found, blocking=int(found.effective * share / 100))
    return found


def _positive(tokens: int, what: str) -> int:
    if tokens < 1:
        raise SettingsError(f"{what} is {tokens}; set a number of tokens above 0.")
    return tokens
