"""The figures of the status line and of the last lines of a chat: window, cache, cost, background work, tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.cli.output import format_tokens, plural
from reverie.permissions.policy import PolicyMode
from reverie.quick import dataclass
from reverie.text.columns import width
from reverie.types import Purpose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reverie.context.ledger import Ledger
    from reverie.runtime.tasks import TaskInfo
    from reverie.session.session import Session

SEPARATOR = " · "
_CELLS = 8  # of the window meter


@dataclass(frozen=True, slots=True)
class StatusFigures:
    """What the chat shows about its session. Costs are in US dollars; None if no model that was used has a price."""

    model: str
    used: int
    """Tokens in the window now."""
    window: int
    cached: float | None
    """The share of the last prompt that came from the cache; None before the first answer."""
    cached_of_all: float | None
    """The same for all prompts of the conversation."""
    cost: float | None
    background_cost: float | None
    """The part of `cost` for work that nobody asked for: recall, notes, extraction, dreams."""
    tasks: tuple[TaskInfo, ...]
    """Running background tasks, without agents."""
    agents: tuple[str, ...]
    """Running agents and what each does."""
    mode: str
    """The permission mode in words; empty if it is the usual one."""

    @staticmethod
    def of(session: Session) -> StatusFigures:
        from reverie.context.day_book import BACKGROUND
        from reverie.session.verbs import running_agents

        budget, ledger = session.conversation.budget(), session.accounts.ledger.now()
        main = [one for one in ledger.entries if one.purpose == Purpose.MAIN]
        prompts = sum(one.usage.prompt for one in main)
        read = sum(one.usage.cache_read_input_tokens for one in main)
        last = main[-1].usage if main else None
        beside = [one.cost for one in ledger.entries if one.purpose in BACKGROUND and one.priced]
        running = running_agents(session.agents.spawner)
        return StatusFigures(
            short_model_name(session.model_name),
            budget.used,
            budget.window,
            last.cache_read_input_tokens / last.prompt if last is not None and last.prompt else None,
            read / prompts if prompts else None,
            _cost(ledger),
            sum(beside) if beside else None,
            tuple(info for info in session.tasks.running if info.purpose is not Purpose.AGENT),
            tuple(f"{one.name} ({one.doing})" if one.doing else one.name for one in running),
            "" if session.gate.mode is PolicyMode.ASK else session.gate.mode.value.replace("_", " "),
        )

    @property
    def share(self) -> float:
        return self.used / self.window if self.window else 0.0

    def parts(self, *, words: bool = False) -> list[tuple[int, str]]:
        """The parts of a status line with their rank: of a line that is too long, the highest ranks go first."""
        meter = f"{self.share:.0%} of {format_tokens(self.window)}"
        shown = [(0, self.model), (1, meter if words else f"{bar(self.share)} {meter}")]
        if self.mode:
            shown.insert(1, (1, self.mode))
        if self.cached is not None:
            shown.append((4, f"{self.cached:.0%} cached"))
        if self.cost is not None:
            shown.append((2, dollars(self.cost)))
        if self.background_cost:
            shown.append((5, f"{dollars(self.background_cost)} in the background"))
        if self.tasks:
            names = ", ".join(sorted({info.purpose for info in self.tasks}))
            shown.append((3, f"{plural(len(self.tasks), 'task')}: {names}"))
        if self.agents:
            shown.append((3, f"{plural(len(self.agents), 'agent')}: {', '.join(self.agents)}"))
        return shown

    def line(self, columns: int, more: Sequence[tuple[int, str]] = ()) -> str:
        """The status line: as many parts as fit."""
        parts = [*self.parts(), *more]
        if width(SEPARATOR.join(text for _, text in parts)) > columns:  # the bar goes first
            parts = [*self.parts(words=True), *more]
        return fit(parts, columns)


def fit(parts: Sequence[tuple[int, str]], columns: int) -> str:
    """The parts, joined; of too many, those with the highest rank are left out."""
    left = list(parts)
    while len(left) > 1 and width(SEPARATOR.join(text for _, text in left)) > columns:
        left.remove(max(left, key=lambda part: part[0]))
    return SEPARATOR.join(text for _, text in left)


def bar(share: float) -> str:
    """A meter: `▰▰▱▱▱▱▱▱`."""
    full = min(_CELLS, round(share * _CELLS)) or int(share > 0)
    return "▰" * full + "▱" * (_CELLS - full)


def dollars(amount: float) -> str:
    """A cost on the status line, in cents from one cent on."""
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else "<$0.01"


def closing_lines(session: Session) -> list[str]:
    """What the chat says at its end: what it cost, and how to continue. Nothing if nothing was said."""
    from reverie.cli.sessions.cost import dollars as exactly

    if not session.view.entries:
        return []
    figures = StatusFigures.of(session)
    spent = [] if figures.cost is None else [f"cost {exactly(figures.cost)}"]
    if figures.background_cost:
        spent.append(f"{exactly(figures.background_cost)} of it in the background")
    if figures.cached_of_all is not None:
        spent.append(f"{figures.cached_of_all:.0%} of the input from the cache")
    return [*([", ".join(spent)] if spent else []), f"continue with: reverie chat --resume {session.id[:8]}"]


def short_model_name(model: str) -> str:
    """The model's name; of a script, only the name of its file."""
    provider, colon, name = model.partition(":")
    return f"{provider}{colon}{name.rpartition('/')[2]}" if provider == "scripted" else model


def _cost(ledger: Ledger) -> float | None:
    priced = [one.cost for one in ledger.entries if one.priced]
    return sum(priced) if priced else None
