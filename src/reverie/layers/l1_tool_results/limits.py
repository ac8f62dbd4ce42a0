"""The limits of layer 1: characters per tool and per message, and the cap for everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reverie.models.window import scaled

NEVER_PERSISTED = frozenset({"Read"})
HARD_CAP_BYTES = 400_000
"""No result larger than this is ever sent, whatever the settings."""


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """In characters, except for the preview and the cap, which are bytes."""

    default: int = 50_000
    by_tool: Mapping[str, int] = field(default_factory=lambda: {"Grep": 20_000, "Bash": 30_000})
    message: int = 200_000
    preview: int = 2_000
    cap: int = HARD_CAP_BYTES

    def of(self, tool: str) -> int | None:
        """Returns the limit of a tool's results; None if they stay whole up to the cap."""
        return None if tool in NEVER_PERSISTED else self.by_tool.get(tool, self.default)

    def for_window(self, window: int) -> ResultLimits:
        """Returns the limits for a smaller window: every number shrinks with it."""
        return ResultLimits(
            default=max(1, scaled(self.default, window)),
            by_tool={tool: max(1, scaled(limit, window)) for tool, limit in self.by_tool.items()},
            message=max(1, scaled(self.message, window)),
            preview=max(1, scaled(self.preview, window)),
            cap=max(1, scaled(self.cap, window)),
        )


LimitsNow = Callable[[], ResultLimits]
"""Called at each use, so that a flag changes the limits of running sessions."""
