"""The sections of the settings: every value with its default, its unit and its purpose.

To add a section, write its class here and add a field to `Settings` in `schema.py`. Reading, errors, `reverie settings`
and the reference page need no change. Numbers are for a window of 200,000 tokens.
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

INSIDE = "REVERIE_INSIDE"
PermissionMode = Literal["ask", "accept_edits", "accept_all", "read_only"]


class ModelSettings(Section):
    """The model that answers, and how to reach it."""

    name: str = text(
        "",
        "`provider:model` (docs/models.md). Empty: a provider whose key is set, else `embedded`.",
        env="REVERIE_MODEL",
    )
    small_model: str = text("", "The model for small background jobs. Empty: the cheapest of the family.")
    max_output: int = whole(8_000, "tokens", "The longest response of a normal request.")
    raised_output: int = whole(64_000, "tokens", "The limit rises to this once, if `max_output` cuts a response off.")
    go_on_nudges: int = whole(3, "times", "After that, how often the model is asked to continue.", minimum=0)
    thinking: Literal["off", "on", "adaptive"] = choice("off", ("off", "on", "adaptive"), "Thinking before the answer.")
    thinking_budget: int = whole(4_000, "tokens", "The limit for thinking when `thinking` is on.", minimum=1_024)
    effort: Literal["default", "low", "medium", "high", "max"] = choice(
        "default",
        ("default", "low", "medium", "high", "max"),
        "How much effort the model makes. default: the model decides.",
    )
    retries: int = whole(8, "times", "How often a request is repeated if the server cannot answer.", minimum=0)
    retry_first_wait_s: float = number(1.0, "seconds", "The longest wait before the first retry; it doubles each time.")
    retry_longest_wait_s: float = number(60.0, "seconds", "The longest wait before any retry.")
    retry_longest_asked_s: float = number(300.0, "seconds", "If the server asks for a longer wait, that is an error.")
    retry_connecting_s: float = number(2.0, "seconds", "An address that does not answer is an error after this time.")
    timeout_s: float = number(600.0, "seconds", "A server without any answer for this time counts as unreachable.")
    anthropic_api_key: str = secret("ANTHROPIC_API_KEY", "The key for `anthropic:` models.")
    anthropic_auth_token: str = secret("ANTHROPIC_AUTH_TOKEN", "A bearer token for `anthropic:`, instead of a key.")
    openai_api_key: str = secret("OPENAI_API_KEY", "The key for `openai:` models.")
    anthropic_base_url: str = url("", "The server for `anthropic:`. Empty: the vendor's.", env="ANTHROPIC_BASE_URL")
    anthropic_betas: tuple[str, ...] = texts(
        "Beta features to ask that server for with every request, such as `context-1m-2025-08-07`.",
        env="ANTHROPIC_BETAS",
    )
    anthropic_cache_edits: bool = switch(False, "Whether that server can delete cached results (`cache_edits`).")
    openai_base_url: str = url(
        "",
        "The server for `openai:` (Ollama, vLLM, llama.cpp, LM Studio, OpenRouter, …). Empty: the vendor's.",
        env="OPENAI_BASE_URL",
    )
    claude_code_program: str = text("claude", "The program of `claude-code:` models; options may follow its name.")
    codex_program: str = text("codex", "The program of `codex:` models; options may follow its name.")
    programs_at_once: int = whole(2, "programs", "The most programs of models that one process runs at the same time.")


class WindowSettings(Section):
    """How full the window may get before it is compacted."""

    context_window: int | None = whole(
        None,
        "tokens",
        "The window of models that the catalogue does not know. Not set: 200,000; on a server of your own what the "
        "server says, or 32,000.",
        env="REVERIE_CONTEXT_WINDOW",
    )
    output_reserve: int = whole(20_000, "tokens", "Kept free: effective = window − min(max output, this).", live=True)
    autocompact_buffer: int = whole(13_000, "tokens", "Auto-compaction starts at effective − this.", live=True)
    warning_buffer: int = whole(20_000, "tokens", "The warning comes this much before auto-compaction.", live=True)
    blocking_buffer: int = whole(3_000, "tokens", "Requests are refused from effective − this on.", live=True)
    autocompact_pct: float | None = number(
        None,
        "percent",
        "Auto-compaction starts at this share of effective; it can only lower the threshold.",
        maximum=100,
        env="REVERIE_AUTOCOMPACT_PCT",
    )
    autocompact_window: int | None = whole(
        None,
        "tokens",
        "The size of the window for the decision to compact; it can only be smaller than the real one.",
        env="REVERIE_AUTOCOMPACT_WINDOW",
    )
    blocking_limit: int | None = whole(
        None, "tokens", "Requests are refused from this size on, instead of the formula.", env="REVERIE_BLOCKING_LIMIT"
    )
    disable_compact: bool = switch(False, "Switches every compaction off.", env="REVERIE_DISABLE_COMPACT")
    disable_autocompact: bool = switch(False, "Switches auto-compaction off.", env="REVERIE_DISABLE_AUTOCOMPACT")


class TranscriptSettings(Section):
    """How conversations are stored."""

    fsync: bool = switch(False, "Writes every record to disk at once: slower, but safe in a power cut.")
    expire_days: int = whole(0, "days", "Sessions that are older are deleted. 0: never.", minimum=0)


class PermissionSettings(Section):
    """When the user is asked before a tool runs. Deny wins over ask, ask wins over allow."""

    mode: PermissionMode = choice(
        "ask",
        ("ask", "accept_edits", "accept_all", "read_only"),
        "What happens to a call that no rule matches.",
        env="REVERIE_PERMISSION_MODE",
    )
    allow: tuple[str, ...] = texts("Rules for calls that run without asking.")
    ask: tuple[str, ...] = texts("Rules for calls that always ask first, even if another rule allows them.")
    deny: tuple[str, ...] = texts("Rules for calls that never run.")
    sandbox: bool = switch(True, "Whether commands run in a sandbox where the system has one; else most of them ask.")


class HookCommand(Section):
    """One command that an event runs, with JSON on its standard input."""

    command: str = filled("The shell command to run.")
    matcher: str = pattern("*", "For tool events: a regular expression for the whole name of the tool.")
    timeout_s: float = number(60.0, "seconds", "The command is killed after this time.")
    wait: bool = switch(True, "False: the session goes on at once, and the answer does not count.")
    folder: ClassVar[Path | None] = None
    """Where it runs: the folder whose settings have it. None: the folder of the session, for the user's own hooks."""

    def at(self, folder: Path) -> HookCommand:
        made = HookCommand(**self.__dict__)
        made.__dict__["folder"] = folder
        return made


class HookSettings(Section):
    """Commands that run at an event."""

    SessionStart: tuple[HookCommand, ...] = tables(HookCommand, "A session begins.")
    InstructionsLoaded: tuple[HookCommand, ...] = tables(HookCommand, "An instruction file was loaded.")
    UserPromptSubmit: tuple[HookCommand, ...] = tables(HookCommand, "The user sent a message.")
    UserPromptExpansion: tuple[HookCommand, ...] = tables(HookCommand, "The user named a command of a file.")
    PreToolUse: tuple[HookCommand, ...] = tables(HookCommand, "A tool is about to run.")
    PostToolUse: tuple[HookCommand, ...] = tables(HookCommand, "A tool has run and succeeded.")
    PostToolUseFailure: tuple[HookCommand, ...] = tables(HookCommand, "A tool has run and failed.")
    PostToolBatch: tuple[HookCommand, ...] = tables(HookCommand, "All tool calls of a response are over.")
    PreCompact: tuple[HookCommand, ...] = tables(HookCommand, "The conversation is about to be compacted.")
    PostCompact: tuple[HookCommand, ...] = tables(HookCommand, "The conversation was compacted.")
    Stop: tuple[HookCommand, ...] = tables(HookCommand, "The agent has answered.")
    SubagentStart: tuple[HookCommand, ...] = tables(HookCommand, "A sub-agent begins.")
    SubagentStop: tuple[HookCommand, ...] = tables(HookCommand, "A sub-agent has finished.")
    SessionEnd: tuple[HookCommand, ...] = tables(HookCommand, "A session ends.")

    def of(self, event: str) -> tuple[HookCommand, ...]:
        """Returns the commands of one event, in the order of the file."""
        return cast("tuple[HookCommand, ...]", getattr(self, event))


class ClaudeSettings(Section):
    """What is read from the files of Claude Code: `.claude/` in a folder, and `~/.claude/` (or `CLAUDE_CONFIG_DIR`)."""

    hooks: bool = switch(True, "Whether the hooks in its settings files run.", env="REVERIE_CLAUDE_HOOKS")
    permissions: bool = switch(True, "Whether the permission rules in its settings files count.")
    commands: bool = switch(True, "Whether its commands and skills are offered.")


class ChatSettings(Section):
    """The chat in the terminal."""

    vi_keys: bool = switch(False, "Whether the input line has the keys of vi. `/vi` switches it in the chat.")
    theme: Literal["terminal", "light"] = choice(
        "terminal",
        ("terminal", "light"),
        "The colours of the terminal; `light` uses only those that are readable on white.",
        env="REVERIE_THEME",
    )
    bell: bool = switch(False, "Whether the terminal rings when a question waits, and after a turn of 20 seconds.")


class ToolSettings(Section):
    """Limits of the built-in tools."""

    bash_timeout_s: float = number(120.0, "seconds", "A shell command is stopped after this time.")
    bash_timeout_max_s: float = number(600.0, "seconds", "The longest time limit that a call may request.")
    read_lines: int = whole(2_000, "lines", "The most lines of one Read.")
    read_line_chars: int = whole(2_000, "characters", "Longer lines are cut.")
    read_bytes: int = whole(262_144, "bytes", "The most bytes of one Read; a larger file needs a range.")
    read_image_bytes: int = whole(3_750_000, "bytes", "Larger images are not read.")
    grep_timeout_s: float = number(30.0, "seconds", "A search is stopped after this time.")
    glob_files: int = whole(100, "files", "The most files of one Glob.")
    parallel: int = whole(10, "calls", "The most read-only calls that run in parallel.", live=True)
    max_rounds: int = whole(500, "rounds", "A turn is stopped after this many requests.", live=True)


class ToolResultSettings(Section):
    """When a tool result is kept on disk and replaced by a preview."""

    default_limit: int = whole(50_000, "characters", "The limit for a tool without its own limit.", live=True)
    limits: Mapping[str, int] = counts(
        {"Grep": 20_000, "Bash": 30_000},
        "characters",
        "Limits per tool. Results of Read are never moved to disk: Read has its own limits.",
        live=True,
    )
    message_characters: int = whole(200_000, "characters", "The limit for all tool results of one round.", live=True)
    preview_bytes: int = whole(2_000, "bytes", "The size of the preview of a kept result.", live=True)
    keep_days: int = whole(
        30, "days", "Files of sessions that cannot be resumed stay this long. 0: forever.", minimum=0
    )
    keep_bytes: int = whole(
        1_000_000_000, "bytes", "If a project has more of such files, the oldest are deleted. 0: no limit.", minimum=0
    )


class MicrocompactSettings(Section, live=True):
    """When old tool results are cleared from the conversation."""

    pause_minutes: int = whole(60, "minutes", "After a pause of this length, all except for the newest are cleared.")
    keep_recent: int = whole(5, "results", "How many of the newest stay, even with cache edits and on the server.")
    keep_rounds: int = whole(4, "rounds", "The results of this many last rounds stay when clearing pays.")
    cache_edits_above: int = whole(12, "results", "If there are more, cache edits delete all except for the newest.")
    server_trigger: int = whole(180_000, "tokens", "The server clears from here on, at the latest from the warning on.")
    server_target: int = whole(40_000, "tokens", "About how much is left after the server has cleared.")


class MemorySettings(Section):
    """Memory across sessions."""

    disable: bool | None = switch(
        None,
        "Wins over every other setting: true switches memory off, false on.",
        env="REVERIE_DISABLE_MEMORY",
        env_only=True,
    )
    enabled: bool = switch(True, "Whether there is a memory.")
    path: str = text(
        "",
        "The memory directory, as an absolute path without `~`. Wins over `directory`.",
        env="REVERIE_MEMORY_PATH",
        env_only=True,
    )
    directory: str = text("", "The memory directory. Empty: one per project, in the home.")
    shared_with: Literal["", "claude-code"] = choice(
        "",
        ("", "claude-code"),
        "Whose memory directories are used: those of Claude Code, or (empty) Reverie's own. `reverie connect` sets it.",
    )
    store: str = url(
        "", "The memory server to keep the memory directory in step with. Empty: none.", env="REVERIE_STORE"
    )
    store_project: str = text(
        "",
        "The name of the project at the memory server. Empty: the address of its git remote.",
        env="REVERIE_STORE_PROJECT",
    )
    store_token: str = text(
        "",
        "The token for the memory server, instead of the one of `reverie memory login`.",
        env="REVERIE_STORE_TOKEN",
        env_only=True,
        secret=True,
    )
    guidelines: str = text("", "Text that is added to the instructions about memory.", env="REVERIE_MEMORY_GUIDELINES")
    recall_ceiling_s: float = number(
        0.3,
        "seconds",
        "How long a message waits for a model that selects memories. Then the local ranker selects some, and what the "
        "model chooses comes with the next round.",
    )
    recall_session_bytes: int = whole(60_000, "bytes", "The limit for recalled memories in a session.")
    encoder: str = text(
        "minilm", "The sentence encoder of recall: one of `reverie models list`, or one of an installed package."
    )


class InstructionSettings(Section):
    """AGENTS.md, CLAUDE.md and rules."""

    exclude: tuple[str, ...] = texts(
        "Files that are not loaded: patterns as in .gitignore, for whole paths or paths in the project; `~/` is the "
        "user's home."
    )
    approved_includes: tuple[Path, ...] = paths("Files or folders outside a project that its files may include.")
    warn_characters: int = whole(40_000, "characters", "A larger instruction file, with includes, causes a warning.")
    max_characters: int = whole(400_000, "characters", "The limit for all instruction files; the rest is left out.")


class TeamSettings(Section):
    """How team memory is shared. It exists only if the flag `team_memory` is on."""

    sharing: Literal["none", "folder", "git"] = choice(
        "none",
        ("none", "folder", "git"),
        "Whether team memory is shared: not at all, through a folder, or through a git remote.",
    )
    folder: Path | None = location(None, "The shared folder, if `sharing` is folder.")
    remote: str = text("", "The address of the git repository, if `sharing` is git.")
    branch: str = text("main", "The branch of the git repository.")
    sync_minutes: float = number(
        10.0, "minutes", "How often changes of others are fetched; own ones are sent after a turn."
    )
    timeout_s: float = number(60.0, "seconds", "A git command is stopped after this time.")


class CatalogueSettings(Section):
    """Facts about models."""

    files: tuple[Path, ...] = paths("More catalogue files; later ones win, and all win over the built-in one.")


class TelemetrySettings(Section):
    """OpenTelemetry: names, sizes and times of requests, tools and layers; never content."""

    otel: bool = switch(
        False, "Sends spans and metrics (needs the extra `otel`; OTEL_* variables say where).", env="REVERIE_OTEL"
    )


class DebugSettings(Section):
    """Help for finding mistakes."""

    request_log: Path | None = location(None, "A file for a log of every request.", env="REVERIE_REQUEST_LOG")


class SessionSettings(Section):
    """How a session runs."""

    bare: bool = switch(False, "No memory, no instruction files, no hooks.", env="REVERIE_BARE", env_only=True)
    inside: bool = switch(
        False,
        "Set for every program that a model starts. Such models and our hooks in other agents do nothing then.",
        env=INSIDE,
        env_only=True,
    )


class RemoteSettings(Section):
    """Sessions on a remote machine."""

    enabled: bool = switch(False, "Whether this machine is remote.", env="REVERIE_REMOTE", env_only=True)
    memory_directory: Path | None = location(
        None,
        "The memory of a remote machine; it replaces the home, but only for memory.",
        env="REVERIE_REMOTE_MEMORY_DIR",
        env_only=True,
    )


class FlagSettings(Section):
    """Where flags come from."""

    provider: str = text("", "`package.module:name` of an OpenFeature provider or its factory. Empty: flags.toml.")


def _default_home() -> Path:
    return Path.home() / ".reverie"


class PlaceSettings(Section):
    """Where Reverie keeps its files."""

    home: Path = location(
        _default_home,
        "The folder for everything that Reverie keeps.",
        env="REVERIE_HOME",
        env_only=True,
        default_text="~/.reverie",
    )
    user_home: Path = location(
        Path.home, "The folder that `~/` means.", env="HOME", env_only=True, default_text="the user's home folder"
    )
    claude: Path | None = location(
        None,
        "The folder where Claude Code keeps its settings and memory.",
        env="CLAUDE_CONFIG_DIR",
        env_only=True,
        default_text="~/.claude",
    )
    codex: Path | None = location(
        None, "The folder where Codex keeps its settings.", env="CODEX_HOME", env_only=True, default_text="~/.codex"
    )
    runtime: Path | None = location(
        None, "The folder for sockets, if the path of the home is too long.", env="XDG_RUNTIME_DIR", env_only=True
    )
