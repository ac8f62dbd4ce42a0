"""Every setting there is, with its default, its unit and what it is for. One frozen dataclass a section.

To add a section: write its dataclass and give `Settings` one field. Reading, errors, `reverie settings` and the
reference page follow by themselves. Numbers are those of a window of 200,000 tokens.
"""

# ruff: noqa: RUF009 (the functions that make fields return `dataclasses.field`)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, cast

from reverie.settings.fields import (
    Project,
    Setting,
    choice,
    counts,
    location,
    number,
    paths,
    secret,
    settings_of,
    switch,
    tables,
    text,
    texts,
    url,
    whole,
)

if TYPE_CHECKING:
    from reverie.settings.loading import Source

PermissionMode = Literal["ask", "accept_edits", "accept_all", "read_only"]
HookEvent = Literal[
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreCompact", "Stop", "SubagentStop", "SessionEnd"
]


@dataclass(frozen=True, slots=True)
class Model:
    """Which model answers, and how it is reached."""

    name: str = text(
        "",
        "`provider:model`. Empty: a provider whose key is set, else `embedded`.",
        env="REVERIE_MODEL",
        project=Project.TRUSTED,
    )
    small_model: str = text(
        "", "Model for small background jobs. Empty: the cheapest of the family.", project=Project.TRUSTED
    )
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
    fallback_embedded: bool = switch(True, "Without any key, answer with the embedded model instead of an error.")
    retry_attempts: int = whole(8, "times", "How often an overloaded or unreachable server is asked again.", minimum=0)
    retry_base_s: float = number(0.5, "seconds", "First wait before a retry; doubles each time, with jitter.")
    retry_max_s: float = number(32.0, "seconds", "Longest wait before a retry.")
    timeout_s: float = number(600.0, "seconds", "Longest silence of a server before it counts as unreachable.")
    images_per_request: int = whole(100, "images", "Most images sent at once; older ones become short notes.")
    anthropic_api_key: str = secret("ANTHROPIC_API_KEY", "Key for `anthropic:` models.")
    anthropic_auth_token: str = secret(
        "ANTHROPIC_AUTH_TOKEN", "Bearer token for `anthropic:` models, instead of a key."
    )
    openai_api_key: str = secret("OPENAI_API_KEY", "Key for `openai:` models.")
    anthropic_base_url: str = url(
        "",
        "Server for `anthropic:` models. Empty: the vendor's.",
        env="ANTHROPIC_BASE_URL",
        project=Project.NEVER,
    )
    openai_base_url: str = url(
        "",
        "Server for `openai:` models (Ollama, vLLM, llama.cpp, LM Studio, OpenRouter). Empty: the vendor's.",
        env="OPENAI_BASE_URL",
        project=Project.NEVER,
    )


@dataclass(frozen=True, slots=True)
class Window:
    """How full the context may get before something is done about it."""

    default: int = whole(200_000, "tokens", "Window of a model nobody has described.")
    unknown_model: int | None = whole(
        None, "tokens", "The same, from the environment: speaks for unknown models only.", env="REVERIE_CONTEXT_WINDOW"
    )
    scale_below: int = whole(200_000, "tokens", "Below this window every absolute number shrinks in proportion.")
    output_reserve: int = whole(
        20_000, "tokens", "Kept free for the reply: effective = window − min(max output, this)."
    )
    autocompact_buffer: int = whole(13_000, "tokens", "Auto-compaction starts this far below effective.")
    warning_buffer: int = whole(20_000, "tokens", "The warning comes this far before auto-compaction.")
    blocking_buffer: int = whole(3_000, "tokens", "Requests are refused this far below effective.")
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


@dataclass(frozen=True, slots=True)
class Tokens:
    """How the size of text is estimated until the server has reported usage."""

    bytes_per_token: float = number(4.0, "bytes", "Plain text.")
    json_bytes_per_token: float = number(2.0, "bytes", "Tool inputs, .json and .jsonl content.")
    image_tokens: int = whole(2_000, "tokens", "An image or a document, whatever its size.")
    padding: float = number(4 / 3, "times", "Safety factor of an uncalibrated estimate that must not be late.")
    calibrate: bool = switch(True, "Learn the ratios from the usage each response reports.")


@dataclass(frozen=True, slots=True)
class Transcript:
    """What is kept of a conversation."""

    fsync: bool = switch(False, "Force every record to disk before going on: slower, survives a power cut.")
    expire_days: int = whole(0, "days", "Delete sessions older than this. 0: never.", minimum=0, project=Project.NEVER)


@dataclass(frozen=True, slots=True)
class Permissions:
    """Who is asked before a tool runs. Deny wins over ask, ask over allow."""

    mode: PermissionMode = choice(
        "ask",
        ("ask", "accept_edits", "accept_all", "read_only"),
        "What happens to a call no rule speaks about.",
        env="REVERIE_PERMISSION_MODE",
        project=Project.TRUSTED,
    )
    allow: tuple[str, ...] = texts("Rules for calls that run without asking.", project=Project.TRUSTED)
    ask: tuple[str, ...] = texts("Rules for calls that are asked about even if allowed.")
    deny: tuple[str, ...] = texts("Rules for calls that never run.")


@dataclass(frozen=True, slots=True)
class HookCommand:
    """One command of the user's, run at an event with JSON on its standard input."""

    command: str = text("", "Shell command to run.", required=True)
    matcher: str = text("", "For tool events: which tools. Empty: all.")
    timeout_s: float = number(60.0, "seconds", "Killed after this long.")


@dataclass(frozen=True, slots=True)
class Hooks:
    """The user's own commands, by the event that runs them."""

    SessionStart: tuple[HookCommand, ...] = tables(HookCommand, "A session begins.", project=Project.TRUSTED)
    UserPromptSubmit: tuple[HookCommand, ...] = tables(HookCommand, "A person sent a message.", project=Project.TRUSTED)
    PreToolUse: tuple[HookCommand, ...] = tables(HookCommand, "A tool is about to run.", project=Project.TRUSTED)
    PostToolUse: tuple[HookCommand, ...] = tables(HookCommand, "A tool has run.", project=Project.TRUSTED)
    PreCompact: tuple[HookCommand, ...] = tables(
        HookCommand, "The conversation is about to be compacted.", project=Project.TRUSTED
    )
    Stop: tuple[HookCommand, ...] = tables(HookCommand, "The agent has answered.", project=Project.TRUSTED)
    SubagentStop: tuple[HookCommand, ...] = tables(HookCommand, "A sub-agent has finished.", project=Project.TRUSTED)
    SessionEnd: tuple[HookCommand, ...] = tables(HookCommand, "A session ends.", project=Project.TRUSTED)

    def of(self, event: HookEvent) -> tuple[HookCommand, ...]:
        """The commands of one event, in the order they run."""
        return cast("tuple[HookCommand, ...]", getattr(self, event))


@dataclass(frozen=True, slots=True)
class Tools:
    """Limits of the built-in tools."""

    bash_timeout_s: float = number(120.0, "seconds", "A shell command is stopped after this long.")
    bash_timeout_max_s: float = number(600.0, "seconds", "Longest time a call may ask for.")
    read_lines: int = whole(2_000, "lines", "Most lines one Read returns.")
    read_line_chars: int = whole(2_000, "characters", "Longer lines are cut.")
    read_bytes: int = whole(262_144, "bytes", "Most bytes one Read returns; larger files need a range.")
    grep_timeout_s: float = number(30.0, "seconds", "A search is stopped after this long.")
    glob_files: int = whole(100, "files", "Most files one Glob returns.")
    parallel: int = whole(10, "calls", "Most read-only calls at once.")
    max_rounds: int = whole(500, "rounds", "A turn is stopped after this many model requests.")


@dataclass(frozen=True, slots=True)
class ToolResults:
    """When a tool's result is put on disk and replaced by a preview."""

    default_limit: int = whole(50_000, "characters", "Limit of a tool without one of its own.")
    limits: Mapping[str, int] = counts(
        {"Grep": 20_000, "Bash": 30_000}, "characters", "Limits by tool. Read bounds itself and is never put on disk."
    )
    message_budget: int = whole(200_000, "characters", "All tool results of one round together.")
    preview_bytes: int = whole(2_000, "bytes", "What is shown of a result that was put on disk.")


@dataclass(frozen=True, slots=True)
class Memory:
    """What outlives a session."""

    disable: bool | None = switch(
        None, "Decides before everything else: true is off, false is on.", env="REVERIE_DISABLE_MEMORY", env_only=True
    )
    enabled: bool = switch(True, "Whether there is a memory.", project=Project.OFF_ONLY)
    path: str = text(
        "",
        "Where memory lives: absolute, no `~`. Wins over `directory`.",
        env="REVERIE_MEMORY_PATH",
        env_only=True,
    )
    directory: str = text("", "Where memory lives. Empty: by project, in the home.", project=Project.NEVER)
    guidelines: str = text(
        "", "Added to what the model is told about memory.", env="REVERIE_MEMORY_GUIDELINES", project=Project.TRUSTED
    )


@dataclass(frozen=True, slots=True)
class Background:
    """Work that runs beside the conversation."""

    exit_wait_s: float = number(60.0, "seconds", "Longest wait at exit for a run in flight.")
    log_bytes: int = whole(5_000_000, "bytes", "The background log starts anew beyond this; one old one is kept.")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is known about models."""

    files: tuple[Path, ...] = paths(
        "More catalogue files, laid over the built-in one in turn.", project=Project.TRUSTED
    )


@dataclass(frozen=True, slots=True)
class Debug:
    """For finding out what went on."""

    request_log: Path | None = location(
        None, "Write every request sent to this file.", env="REVERIE_REQUEST_LOG", project=Project.NEVER
    )


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How a session runs."""

    bare: bool = switch(
        False, "No memory, no instruction files, no hooks: only the conversation.", env="REVERIE_BARE", env_only=True
    )


@dataclass(frozen=True, slots=True)
class Remote:
    """Running on a machine that is not the user's own."""

    enabled: bool = switch(False, "This machine is a remote one.", env="REVERIE_REMOTE", env_only=True)
    memory_directory: Path | None = location(
        None,
        "Where memory is mounted there; replaces the home for memory only.",
        env="REVERIE_REMOTE_MEMORY_DIR",
        env_only=True,
    )


@dataclass(frozen=True, slots=True)
class Trust:
    """Which projects may do more than restrict."""

    projects: tuple[Path, ...] = paths(
        "Roots of repositories whose committed settings may set hooks, allow rules and models.", project=Project.NEVER
    )


@dataclass(frozen=True, slots=True)
class FlagSettings:
    """Where kill switches come from."""

    provider: str = text(
        "",
        "`package.module:name` of an OpenFeature provider, or of a function that makes one. Empty: flags.toml.",
        project=Project.NEVER,
    )


def _default_home() -> Path:
    return Path.home() / ".reverie"


@dataclass(frozen=True, slots=True)
class PlaceSettings:
    """Where Reverie's own files live."""

    home: Path = location(_default_home, "Everything Reverie keeps.", env="REVERIE_HOME", env_only=True)
    user_home: Path = location(Path.home, "What `~/` means.", env="HOME", env_only=True)
    runtime: Path | None = location(
        None, "For sockets, where the home's own path is too long.", env="XDG_RUNTIME_DIR", env_only=True
    )


def _no_strings() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_sources() -> Mapping[str, tuple[Source, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set, read once. `Settings()` is all defaults; `load_settings` reads the places."""

    places: PlaceSettings = field(default_factory=PlaceSettings)
    session: SessionSettings = field(default_factory=SessionSettings)
    model: Model = field(default_factory=Model)
    window: Window = field(default_factory=Window)
    tokens: Tokens = field(default_factory=Tokens)
    transcript: Transcript = field(default_factory=Transcript)
    permissions: Permissions = field(default_factory=Permissions)
    hooks: Hooks = field(default_factory=Hooks)
    tools: Tools = field(default_factory=Tools)
    tool_results: ToolResults = field(default_factory=ToolResults)
    memory: Memory = field(default_factory=Memory)
    background: Background = field(default_factory=Background)
    catalogue: Catalogue = field(default_factory=Catalogue)
    trust: Trust = field(default_factory=Trust)
    flags: FlagSettings = field(default_factory=FlagSettings)
    remote: Remote = field(default_factory=Remote)
    debug: Debug = field(default_factory=Debug)

    warnings: tuple[str, ...] = ()
    """What was ignored and why: sentences to show once."""
    flag_env: Mapping[str, str] = field(default_factory=_no_strings)
    """The `REVERIE_FLAG_*` variables as they are; `flags.py` knows what they mean."""
    sources: Mapping[str, tuple[Source, ...]] = field(default_factory=_no_sources, compare=False, repr=False)
    """Where each `section.key` that is not a default came from."""


@cache
def sections() -> Mapping[str, type]:
    """Every section by its name, in the order of `Settings`."""
    found = {entry.name: entry.default_factory for entry in fields(Settings)}
    return {name: made for name, made in found.items() if isinstance(made, type)}


@cache
def all_settings() -> Mapping[str, Setting]:
    """Every setting by its full name, `section.key`."""
    return {
        f"{name}.{key}": setting
        for name, section in sections().items()
        for key, setting in settings_of(section).items()
    }


def value_of(settings: Settings, key: str) -> object:
    """The value of `section.key`."""
    section, name = key.split(".", 1)
    return cast("object", getattr(getattr(settings, section), name))
