"""Settings of work beside a conversation: background writers, what they may cost, and work inside other agents."""

from __future__ import annotations

from typing import Literal

from reverie.settings.fields import Section, choice, number, secret, switch, text, whole


class BackgroundSettings(Section):
    """Work that runs in parallel with the conversation."""

    mind: Literal["model", "embedded"] = choice(
        "model",
        ("model", "embedded"),
        "What writes notes, selects memories, extracts, compacts and dreams: the session's model or the offline mind.",
        env="REVERIE_BACKGROUND_MIND",
    )
    fallback: bool = switch(
        True,
        "If the session's model is down or its budget is spent, the offline mind does this work, with one notice.",
        env="REVERIE_BACKGROUND_FALLBACK",
    )
    ask_s: float = number(120.0, "seconds", "The longest wait for a model that a program gave as a function (`ask`).")
    exit_wait_s: float = number(60.0, "seconds", "The longest wait at exit for work that still runs.")
    log_bytes: int = whole(5_000_000, "bytes", "A larger background log is replaced by a new one; one old log is kept.")


class BudgetSettings(Section):
    """What background work may cost. When a limit is reached, this work pauses until the next day."""

    background_tokens_per_day: int = whole(
        20_000_000,
        "tokens",
        "For recall, notes, extraction, dreams and progress of all sessions, as uncached input (a cache read counts a "
        "tenth, an output token about five). 0: no limit.",
        minimum=0,
        live=True,
    )
    background_dollars_per_day: float | None = number(
        None, "US dollars", "The same in money, for models with a known price. Not set: no limit.", live=True
    )


class ConnectSettings(Section):
    """What Reverie does inside Claude Code and Codex (`reverie connect`)."""

    model: str = text(
        "embedded",
        "`provider:model` that learns and dreams there. The offline mind costs nothing; others count against `budget`.",
    )
    recall: bool = switch(True, "Adds memories that fit to prompts, and the index where the agent does not load it.")
    restore: bool = switch(True, "After a compaction, gives back what the summary lost.")
    large_results: bool = switch(True, "Puts large tool results on disk, by the limits of `tool_results`.")
    learn: bool = switch(True, "Learns from sessions in the background.")
    prompt_characters: int = whole(4_000, "characters", "The limit for memories with one prompt.", minimum=0)
    session_tokens: int = whole(20_000, "tokens", "The limit for memories in one session.", minimum=0)
    day_tokens: int = whole(200_000, "tokens", "The limit for everything that is added, in all sessions.", minimum=0)
    idle_minutes: float = number(15.0, "minutes", "The service ends when nothing happened for this long.")


class ServeSettings(Section):
    """The memory server (`reverie serve`, `reverie worker`)."""

    dsn: str = secret("REVERIE_SERVE_DSN", "The PostgreSQL of the server, `postgresql://…`. Empty: one of its own.")
