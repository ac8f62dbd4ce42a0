"""The sections of the settings: every value with its default, its unit and what it is for.

To add a section, write its class here (or in a module of its own) and give `Settings` in `schema.py` one field.
Reading, errors, `reverie settings` and the reference page follow by themselves. Numbers are for a 200,000 window.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, cast

from reverie.settings.fields import (
    Section,
    choice,
    counts,
    filled,
    location,
    number,
    paths,
    pattern,
    secret,
    switch,
    tables,
    text,
    texts,
    url,
    whole,
)

PermissionMode = Literal["ask", "accept_edits", "accept_all", "read_only"]


class ModelSettings(Section):
    """Which model answers, and how it is reached."""

    name: str = text(
        "",
        "`provider:model`. Empty: a provider whose key is set, else `embedded`.",
        env="REVERIE_MODEL",
    )
    small_model: str = text("", "Model for small background jobs. Empty: the cheapest of the family.")
    max_output: int = whole(8_000, "tokens", "Longest reply asked for at first.")
    raised_output: int = whole(64_000, "tokens", "A reply cut off at `max_output` raises the cap once to this.")
    go_on_nudges: int = whole(3, "times", 'After that, how often a cut-off reply is nudged to "go on".', minimum=0)
    thinking: Literal["off", "on", "adaptive"] = choice(
        "off", ("off", "on", "adaptive"), "Whether the model thinks before it answers."
    )
    thinking_budget: int = whole(4_000, "tokens", "Room for thinking when `thinking` is on.", minimum=1_024)
    effort: Literal["default", "low", "medium", "high", "max"] = choice(
        "default", ("default", "low", "medium", "high", "max"), "How hard the model tries. default: as the model does."
    )
    retries: int = whole(8, "times", "How often an overloaded or unreachable server is asked again.", minimum=0)
    retry_first_wait_s: float = number(1.0, "seconds", "Longest first wait before a retry; doubles each time.")
    retry_longest_wait_s: float = number(60.0, "seconds", "Longest wait before a retry.")
    retry_longest_asked_s: float = number(300.0, "seconds", "A server that asks for more patience gets an error.")
    retry_connecting_s: float = number(
        2.0, "seconds", "How long an address is tried at which nobody answers; then it is an error."
    )
    timeout_s: float = number(600.0, "seconds", "Longest silence of a server before it counts as unreachable.")
    anthropic_api_key: str = secret("ANTHROPIC_API_KEY", "Key for `anthropic:` models.")
    anthropic_auth_token: str = secret(
        "ANTHROPIC_AUTH_TOKEN", "Bearer token for `anthropic:` models, instead of a key."
    )
    openai_api_key: str = secret("OPENAI_API_KEY", "Key for `openai:` models.")
    anthropic_base_url: str = url(
        "",
        "Server for `anthropic:` models. Empty: the vendor's.",
        env="ANTHROPIC_BASE_URL",
    )
    anthropic_cache_edits: bool = switch(
        False, "That server understands `cache_edits`: results can be deleted inside its cache."
    )
    openai_base_url: str = url(
        "",
        "Server for `openai:` models (Ollama, vLLM, llama.cpp, LM Studio, OpenRouter). Empty: the vendor's.",
        env="OPENAI_BASE_URL",
    )


class WindowSettings(Section):
    """How full the context may get before something is done about it."""

    context_window: int | None = whole(
        None,
        "tokens",
        "Window of models the catalogue does not know. Not set: 200,000.",
        env="REVERIE_CONTEXT_WINDOW",
    )
    output_reserve: int = whole(
        20_000, "tokens", "Kept free for the reply: effective = window − min(max output, this).", live=True
    )
    autocompact_buffer: int = whole(13_000, "tokens", "Auto-compaction starts this far below effective.", live=True)
    warning_buffer: int = whole(20_000, "tokens", "The warning comes this far before auto-compaction.", live=True)
    blocking_buffer: int = whole(3_000, "tokens", "Requests are refused this far below effective.", live=True)
    autocompact_pct: float | None = number(
        None,
        "percent",
        "Auto-compact at this share of effective; can only lower the threshold.",
        maximum=100,
        env="REVERIE_AUTOCOMPACT_PCT",
    )
    autocompact_window: int | None = whole(
        None,
        "tokens",
        "Pretend the window is this small when deciding to compact; can only shrink it.",
        env="REVERIE_AUTOCOMPACT_WINDOW",
    )
    blocking_limit: int | None = whole(
        None, "tokens", "Refuse requests from this count on, instead of the formula.", env="REVERIE_BLOCKING_LIMIT"
    )
    disable_compact: bool = switch(False, "No compaction at all, not even by hand.", env="REVERIE_DISABLE_COMPACT")
    disable_autocompact: bool = switch(False, "No compaction unless asked for.", env="REVERIE_DISABLE_AUTOCOMPACT")


class TranscriptSettings(Section):
    """What is kept of a conversation."""

    fsync: bool = switch(False, "Force every record to disk before going on: slower, survives a power cut.")
    expire_days: int = whole(0, "days", "Delete sessions older than this. 0: never.", minimum=0)


class PermissionSettings(Section):
    """Who is asked before a tool runs. Deny wins over ask, ask over allow."""

    mode: PermissionMode = choice(
        "ask",
        ("ask", "accept_edits", "accept_all", "read_only"),
        "What happens to a call no rule speaks about.",
        env="REVERIE_PERMISSION_MODE",
    )
    allow: tuple[str, ...] = texts("Rules for calls that run without asking.")
    ask: tuple[str, ...] = texts("Rules for calls that are asked about even if allowed.")
    deny: tuple[str, ...] = texts("Rules for calls that never run.")


class HookCommand(Section):
    """One command of the user's, run at an event with JSON on its standard input."""

    command: str = filled("Shell command to run.")
    matcher: str = pattern("*", "For tool events: which tools, as a regular expression for the whole name.")
    timeout_s: float = number(60.0, "seconds", "Killed after this long.")
    folder: ClassVar[Path | None] = None
    """Where it runs: the folder whose own settings bring it. None: in the session's, for a hook of the user's."""

    def at(self, folder: Path) -> HookCommand:
        made = HookCommand(command=self.command, matcher=self.matcher, timeout_s=self.timeout_s)
        made.__dict__["folder"] = folder
        return made


class HookSettings(Section):
    """The user's own commands, by the event that runs them."""

    SessionStart: tuple[HookCommand, ...] = tables(HookCommand, "A session begins.")
    UserPromptSubmit: tuple[HookCommand, ...] = tables(HookCommand, "A person sent a message.")
    PreToolUse: tuple[HookCommand, ...] = tables(HookCommand, "A tool is about to run.")
    PostToolUse: tuple[HookCommand, ...] = tables(HookCommand, "A tool has run.")
    PreCompact: tuple[HookCommand, ...] = tables(HookCommand, "The conversation is about to be compacted.")
    Stop: tuple[HookCommand, ...] = tables(HookCommand, "The agent has answered.")
    SubagentStop: tuple[HookCommand, ...] = tables(HookCommand, "A sub-agent has finished.")
    SessionEnd: tuple[HookCommand, ...] = tables(HookCommand, "A session ends.")

    def of(self, event: str) -> tuple[HookCommand, ...]:
        """The commands of one event, in the order they are written."""
        return cast("tuple[HookCommand, ...]", getattr(self, event))


class ToolSettings(Section):
    """Limits of the built-in tools."""

    bash_timeout_s: float = number(120.0, "seconds", "A shell command is stopped after this long.")
    bash_timeout_max_s: float = number(600.0, "seconds", "Longest time a call may ask for.")
    read_lines: int = whole(2_000, "lines", "Most lines one Read returns.")
    read_line_chars: int = whole(2_000, "characters", "Longer lines are cut.")
    read_bytes: int = whole(262_144, "bytes", "Most bytes one Read returns; larger files need a range.")
    read_image_bytes: int = whole(3_750_000, "bytes", "Larger images are not read.")
    grep_timeout_s: float = number(30.0, "seconds", "A search is stopped after this long.")
    glob_files: int = whole(100, "files", "Most files one Glob returns.")
    parallel: int = whole(10, "calls", "Most read-only calls at once.", live=True)
    max_rounds: int = whole(500, "rounds", "A turn is stopped after this many model requests.", live=True)


class ToolResultSettings(Section):
    """When a tool's result is put on disk and replaced by a preview."""

    default_limit: int = whole(50_000, "characters", "Limit of a tool without one of its own.", live=True)
    limits: Mapping[str, int] = counts(
        {"Grep": 20_000, "Bash": 30_000},
        "characters",
        "Limits by tool. Read bounds itself and is never put on disk.",
        live=True,
    )
    message_characters: int = whole(200_000, "characters", "All tool results of one round together.", live=True)
    preview_bytes: int = whole(2_000, "bytes", "What is shown of a result that was put on disk.", live=True)
    keep_days: int = whole(
        30,
        "days",
        "Files of sessions that can no longer be resumed are deleted after this long. 0: never.",
        minimum=0,
    )
    keep_bytes: int = whole(
        1_000_000_000,
        "bytes",
        "Of such files, the oldest are deleted beyond this much a project. 0: no limit.",
        minimum=0,
    )


class MicrocompactSettings(Section, live=True):
    """When old tool results are cleared from the conversation."""

    pause_minutes: int = whole(60, "minutes", "After a pause this long, all but the newest are cleared.")
    keep_recent: int = whole(5, "results", "The newest that stay, also for cache edits and the server.")
    cache_edits_above: int = whole(12, "results", "From more than this many on, cache edits delete all but the newest.")
    server_trigger: int = whole(
        180_000, "tokens", "The server clears from here on, or from the warning threshold if that is lower."
    )
    server_target: int = whole(40_000, "tokens", "What the server's clearing leaves, about.")


class MemorySettings(Section):
    """What outlives a session."""

    disable: bool | None = switch(
        None, "Decides before everything else: true is off, false is on.", env="REVERIE_DISABLE_MEMORY", env_only=True
    )
    enabled: bool = switch(True, "Whether there is a memory.")
    path: str = text(
        "",
        "Where memory lives: absolute, no `~`. Wins over `directory`.",
        env="REVERIE_MEMORY_PATH",
        env_only=True,
    )
    directory: str = text("", "Where memory lives. Empty: by project, in the home.")
    guidelines: str = text("", "Added to what the model is told about memory.", env="REVERIE_MEMORY_GUIDELINES")
    recall_ceiling_s: float = number(
        1.5, "seconds", "Longest wait for a model that selects memories; then the local ranker stands in."
    )
    recall_session_bytes: int = whole(60_000, "bytes", "Once so much was recalled in a session, no more is.")


class InstructionSettings(Section):
    """AGENTS.md, CLAUDE.md and rules."""

    exclude: tuple[str, ...] = texts(
        "Files that are not loaded: ignore patterns for whole paths, or for paths inside the project; `~/` is the "
        "user's home.",
    )
    approved_includes: tuple[Path, ...] = paths(
        "Files, or folders of files, outside a project that its instruction files may include.",
    )
    warn_characters: int = whole(40_000, "characters", "A larger instruction file, with its includes, is warned about.")
    max_characters: int = whole(400_000, "characters", "All instruction files together; what goes beyond is left out.")


class TeamSettings(Section):
    """How the team's part of the memory is shared. It exists only where the flag `team_memory` is on."""

    sharing: Literal["none", "folder", "git"] = choice(
        "none",
        ("none", "folder", "git"),
        "Not at all, through a folder, or through a git remote.",
    )
    folder: Path | None = location(None, "The shared folder, where `sharing` is folder.")
    remote: str = text("", "Address of the git repository, where `sharing` is git.")
    branch: str = text("main", "Branch of the git repository.")
    sync_minutes: float = number(
        10.0, "minutes", "A session looks this often what others changed; its own changes go out after the turn."
    )
    timeout_s: float = number(60.0, "seconds", "A git command is stopped after this long.")


class BackgroundSettings(Section):
    """Work that runs beside the conversation."""

    mind: Literal["model", "embedded"] = choice(
        "model",
        ("model", "embedded"),
        "Who takes notes, chooses memories, learns, compacts and dreams: the session's model or the embedded one.",
        env="REVERIE_BACKGROUND_MIND",
    )
    fallback: bool = switch(
        True,
        "Where the session's model is down or its budget spent, the embedded one does such work, and says so once.",
        env="REVERIE_BACKGROUND_FALLBACK",
    )
    exit_wait_s: float = number(60.0, "seconds", "Longest wait at exit for a run in flight.")
    log_bytes: int = whole(
        5_000_000, "bytes", "A background log beyond this size is replaced by a new one; one old log is kept."
    )


class BudgetSettings(Section):
    """What work nobody asked for may cost. Once a cap is reached, such work is left out until the day is over."""

    background_tokens_per_day: int = whole(
        20_000_000,
        "tokens",
        "Recall, notes, extraction, dreams and progress of all sessions, as fresh input (a cache read counts a tenth, "
        "an output token about five). 0: no cap.",
        minimum=0,
        live=True,
    )
    background_dollars_per_day: float | None = number(
        None,
        "US dollars",
        "The same in currency, for models with a known price. Not set: no cap.",
        live=True,
    )


class CatalogueSettings(Section):
    """What is known about models."""

    files: tuple[Path, ...] = paths("More catalogue files, laid over the built-in one in turn.")


class DebugSettings(Section):
    """For finding out what went on."""

    request_log: Path | None = location(None, "Write every request sent to this file.", env="REVERIE_REQUEST_LOG")


class SessionSettings(Section):
    """How a session runs."""

    bare: bool = switch(
        False, "No memory, no instruction files, no hooks: only the conversation.", env="REVERIE_BARE", env_only=True
    )


class RemoteSettings(Section):
    """Running on a machine that is not the user's own."""

    enabled: bool = switch(False, "This machine is a remote one.", env="REVERIE_REMOTE", env_only=True)
    memory_directory: Path | None = location(
        None,
        "Where memory is mounted there; replaces the home for memory only.",
        env="REVERIE_REMOTE_MEMORY_DIR",
        env_only=True,
    )


class FlagSettings(Section):
    """Where kill switches come from."""

    provider: str = text(
        "",
        "`package.module:name` of an OpenFeature provider, or of a function that makes one. Empty: flags.toml.",
    )


def _default_home() -> Path:
    return Path.home() / ".reverie"


class PlaceSettings(Section):
    """Where Reverie's own files live."""

    home: Path = location(
        _default_home, "Everything Reverie keeps.", env="REVERIE_HOME", env_only=True, default_text="~/.reverie"
    )
    user_home: Path = location(
        Path.home, "What `~/` means.", env="HOME", env_only=True, default_text="the user's home folder"
    )
    runtime: Path | None = location(
        None, "For sockets, where the home's own path is too long.", env="XDG_RUNTIME_DIR", env_only=True
    )
