"""What the files of an untrusted folder may do to each setting, and what a stranger could do with it.

Every setting that can be in a file is listed here once, by rule and by risk. A setting that is not listed can only be
set by the user, and a test fails until it is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import cast

from reverie.quick import dataclass


class FolderRule(Enum):
    """What an untrusted folder may do to a setting."""

    FREE = "yes"
    LOWER = "only lower"
    """Not above the managed and user settings, else not above the default."""
    HIGHER = "only higher"
    """The opposite: a longer pause between two runs costs less."""
    OFF = "only off"
    TRUST = "if trusted"
    USER = "local, if trusted"
    """Even in a trusted folder only the local file: everybody who works there can change the committed one."""


class Risk(Enum):
    """The worst that a stranger could do with a setting."""

    NOTHING = "nothing"
    SPEND = "spend"
    RUN = "run"
    SEND = "send"
    WEAKEN = "weaken a guard"
    MOVE = "move or lose data"


@dataclass(frozen=True, slots=True)
class Reach:
    """The rule and the risk of one setting."""

    rule: FolderRule = FolderRule.USER
    risk: Risk = Risk.RUN


_LISTED: tuple[tuple[FolderRule, Risk, str], ...] = (
    (
        FolderRule.FREE,
        Risk.NOTHING,
        """
        transcript.fsync permissions.ask permissions.deny background.fallback chat.vi_keys chat.bell chat.theme mcp.off
        """,
    ),
    (
        FolderRule.LOWER,
        Risk.SPEND,
        """
        model.go_on_nudges model.thinking model.thinking_budget model.retries tools.read_lines tools.read_line_chars
        tools.read_bytes tools.read_image_bytes tools.glob_files tools.parallel tools.max_rounds
        tool_results.default_limit tool_results.limits tool_results.message_characters tool_results.preview_bytes
        notes.max_rounds compaction.failures compaction.refill_times compaction.too_long_tries
        compaction.restore_files compaction.restore_file_tokens compaction.restore_tokens
        compaction.restore_skill_tokens compaction.restore_skills_tokens memory.recall_ceiling_s
        memory.recall_session_bytes instructions.max_characters extraction.max_rounds dream.max_rounds
        agents.max_rounds agents.depth agents.at_once messages.letter_characters messages.round_characters
        messages.mailbox_bytes connect.prompt_characters connect.session_tokens connect.day_tokens
        connect.idle_minutes model.programs_at_once mcp.listed_characters mcp.description_characters
        mcp.instructions_characters mcp.restore_characters
        """,
    ),
    (
        FolderRule.LOWER,
        Risk.WEAKEN,
        """
        permissions.mode tools.bash_timeout_s tools.bash_timeout_max_s tools.grep_timeout_s notes.wait_s
        notes.ignore_after_s instructions.warn_characters team.timeout_s extraction.most_losses agents.ask_s
        messages.lock_s messages.permission_s background.exit_wait_s background.ask_s mcp.start_s mcp.first_wait_s
        mcp.call_s mcp.message_bytes
        """,
    ),
    (
        FolderRule.HIGHER,
        Risk.SPEND,
        """
        window.blocking_buffer notes.first_tokens notes.growth_tokens notes.growth_calls compaction.refill_turns
        compaction.refill_rounds extraction.every_turns dream.hours dream.scan_minutes dream.transcripts
        agents.progress_s messages.poll_ms
        """,
    ),
    (FolderRule.HIGHER, Risk.SEND, "team.sync_minutes"),
    (FolderRule.OFF, Risk.MOVE, "memory.enabled connect.large_results"),
    (FolderRule.OFF, Risk.RUN, "mcp.enabled mcp.project"),
    (FolderRule.OFF, Risk.SPEND, "connect.recall connect.restore connect.learn"),
    (
        FolderRule.TRUST,
        Risk.RUN,
        """
        permissions.allow hooks.SessionStart hooks.InstructionsLoaded hooks.UserPromptSubmit hooks.UserPromptExpansion
        hooks.PreToolUse hooks.PostToolUse hooks.PostToolUseFailure hooks.PostToolBatch hooks.PreCompact
        hooks.PostCompact hooks.Stop hooks.SubagentStart hooks.SubagentStop hooks.SessionEnd
        """,
    ),
    (FolderRule.TRUST, Risk.SEND, "model.name model.small_model"),
    (
        FolderRule.TRUST,
        Risk.SPEND,
        """
        model.max_output model.raised_output model.effort extraction.run_s dream.run_minutes model.retry_first_wait_s
        model.retry_connecting_s model.retry_longest_wait_s model.retry_longest_asked_s model.timeout_s
        window.context_window window.output_reserve window.autocompact_buffer window.warning_buffer
        window.autocompact_pct window.autocompact_window window.blocking_limit window.disable_compact
        window.disable_autocompact microcompact.pause_minutes microcompact.keep_recent microcompact.keep_rounds
        microcompact.cache_edits_above notes.cadence compaction.idle compaction.idle_minutes
        microcompact.server_trigger microcompact.server_target compaction.summary_tokens compaction.collapse_at_pct
        compaction.collapse_block_pct agents.lead_s catalogue.files
        """,
    ),
    (
        FolderRule.TRUST,
        Risk.WEAKEN,
        """
        notes.section_tokens notes.total_tokens notes.section_characters notes.keep_tokens notes.keep_messages
        notes.keep_tokens_most compaction.request_bytes compaction.requests_tokens compaction.ledger_characters
        compaction.names compaction.last_message_tokens compaction.pins_bytes memory.guidelines instructions.exclude
        dream.lock_minutes messages.shutdown_s messages.ask_again_s messages.refusals messages.kill_s
        """,
    ),
    (FolderRule.TRUST, Risk.MOVE, "background.log_bytes"),
    (
        FolderRule.USER,
        Risk.RUN,
        """
        flags.provider memory.encoder model.claude_code_program model.codex_program claude.hooks claude.permissions
        claude.commands
        """,
    ),
    (
        FolderRule.USER,
        Risk.SEND,
        """
        model.anthropic_api_key model.anthropic_auth_token model.openai_api_key model.anthropic_base_url
        model.openai_base_url model.anthropic_betas instructions.approved_includes team.sharing team.folder team.remote
        team.branch telemetry.otel debug.request_log memory.store memory.store_project serve.dsn
        """,
    ),
    (
        FolderRule.USER,
        Risk.SPEND,
        "background.mind connect.model budget.background_tokens_per_day budget.background_dollars_per_day",
    ),
    (FolderRule.USER, Risk.WEAKEN, "model.anthropic_cache_edits dream.mode dream.max_loss_pct permissions.sandbox"),
    (
        FolderRule.USER,
        Risk.MOVE,
        "transcript.expire_days tool_results.keep_days tool_results.keep_bytes memory.directory memory.shared_with",
    ),
)

_ORDERS: Mapping[str, tuple[str, ...]] = {
    "permissions.mode": ("read_only", "ask", "accept_edits", "accept_all"),
    "model.thinking": ("off", "adaptive", "on"),
}
"""Choices that have an order, the lowest first."""


@cache
def list_reaches() -> Mapping[str, Reach]:
    """Returns every setting of the table above; each may be there only once."""
    found: dict[str, Reach] = {}
    for rule, risk, keys in _LISTED:
        for key in keys.split():
            assert key not in found, key
            found[key] = Reach(rule, risk)
    return found


def find_reach(key: str, value: object = None) -> Reach:
    """Returns who may set `section.key` to `value`. Only the user may set a setting that is not listed."""
    if key in ("model.name", "model.small_model") and names_program(value):
        return Reach()
    return list_reaches().get(key, Reach())


def names_program(model: object) -> bool:
    """Whether the name of a model is a command to run. Only the user may choose such a model."""
    return isinstance(model, str) and model.strip().startswith("command:")


def needs_trust(key: str, value: object, now: object, fallback: object = None) -> bool:
    """Whether `value` may replace `now` only in a trusted folder. `fallback`: the limit of names not in a table."""
    match find_reach(key).rule:
        case FolderRule.FREE:
            return False
        case FolderRule.OFF:
            return bool(value) and not now
        case FolderRule.LOWER:
            return not _is_at_most(key, value, now, fallback)
        case FolderRule.HIGHER:
            return not _is_at_most(key, now, value, fallback)
        case FolderRule.TRUST | FolderRule.USER:
            return True


def _is_at_most(key: str, one: object, other: object, fallback: object) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        limits = cast("Mapping[str, int]", other)
        named = cast("Mapping[str, int]", one)
        return all(limit <= limits.get(name, cast("int", fallback)) for name, limit in named.items())
    if key in _ORDERS:
        order = _ORDERS[key]
        return order.index(cast("str", one)) <= order.index(cast("str", other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one <= other
    return False
