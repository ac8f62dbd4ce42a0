"""Settings of the layers 3 to 7: notes, compaction, extraction, dreams, agents and their messages.

Numbers are for a window of 200,000 and shrink with smaller ones. A flag may change each of them while sessions run.
"""

from __future__ import annotations

from typing import Literal

from reverie.settings.fields import Section, choice, number, whole


class NoteSettings(Section, live=True):
    """Notes kept while working (layer 3), and what is kept beside them when they take the conversation's place."""

    first_tokens: int = whole(10_000, "tokens", "Of conversation before notes are taken for the first time.")
    growth_tokens: int = whole(5_000, "tokens", "New since the last notes before they are taken again.")
    growth_calls: int = whole(3, "calls", "Tool calls since the last notes; not needed where the model paused.")
    section_tokens: int = whole(2_000, "tokens", "Longest section; a longer one is to be condensed.")
    total_tokens: int = whole(12_000, "tokens", "All sections together.")
    max_rounds: int = whole(5, "rounds", "Most requests one update may make.")
    wait_s: float = number(15.0, "seconds", "Longest wait of a compaction for an update under way.")
    ignore_after_s: float = number(60.0, "seconds", "An update older than this is not waited for.")
    section_characters: int = whole(8_000, "characters", "A longer section is cut when notes become the context.")
    keep_tokens: int = whole(10_000, "tokens", "At least so much of the conversation is kept beside the notes.")
    keep_messages: int = whole(5, "messages", "At least so many messages with text are kept.")
    keep_tokens_most: int = whole(40_000, "tokens", "From here on no more is kept to reach the two above.")


class CompactionSettings(Section, live=True):
    """What happens when the window is full (layer 4)."""

    summary_tokens: int = whole(20_000, "tokens", "Longest summary.")
    failures: int = whole(3, "failures", "So many in a row stop auto-compaction for the session.")
    refill_turns: int = whole(3, "turns", "A context full again within so many was compacted in vain.")
    refill_rounds: int = whole(6, "rounds", "And within so many: one long turn of real work may well fill it again.")
    refill_times: int = whole(3, "times", "In vain so often in a row stops auto-compaction for the session.")
    too_long_tries: int = whole(3, "times", "How often a conversation too long for its summariser is shortened.")
    restore_files: int = whole(5, "files", "Files read last that are read again.", minimum=0)
    restore_file_tokens: int = whole(5_000, "tokens", "Of each of them.")
    restore_tokens: int = whole(50_000, "tokens", "Of all of them.")
    restore_skill_tokens: int = whole(5_000, "tokens", "Of each invoked skill.")
    restore_skills_tokens: int = whole(25_000, "tokens", "Of all invoked skills.")
    request_bytes: int = whole(2_000, "bytes", "A longer message of the user's stands as an excerpt, with its file.")
    requests_tokens: int = whole(40_000, "tokens", "All messages of the user's; beyond, the oldest are shortened.")
    ledger_characters: int = whole(16_000, "characters", "The ledger of operations.")
    names: int = whole(200, "names", "Identifiers listed beside a summary.", minimum=0)
    last_message_tokens: int = whole(10_000, "tokens", "A message not answered yet stays as it is up to this size.")
    pins_bytes: int = whole(10_000, "bytes", "All pins together.")
    collapse_at_pct: float = number(
        90, "percent", "Of effective: from here on old stretches are folded (flag).", maximum=100
    )
    collapse_block_pct: float = number(
        95, "percent", "Of effective: the blocking limit while folding is on.", maximum=100
    )


class ExtractionSettings(Section, live=True):
    """What a turn taught goes to memory (layer 5)."""

    every_turns: int = whole(1, "turns", "A run looks at so many turns at once; 1: after every turn.")
    max_rounds: int = whole(5, "rounds", "Most requests one run may make.")
    run_s: float = number(180.0, "seconds", "A run that takes longer is ended; its messages are looked at again.")
    most_losses: int = whole(3, "memories", "So many may lose statements, or be forgotten, in one run.", minimum=0)


class DreamSettings(Section, live=True):
    """Consolidation of memory across sessions (layer 6)."""

    mode: Literal["auto", "ask", "inbox"] = choice(
        "auto",
        ("auto", "ask", "inbox"),
        "What a dream's result becomes: memory at once; a proposal that sessions point to; one that waits quietly.",
    )
    hours: float = number(24.0, "hours", "Between two dreams, at least.")
    scan_minutes: float = number(10.0, "minutes", "Between two looks at which transcripts changed.")
    transcripts: int = whole(5, "transcripts", "Changed since the last dream, the current one not counted.")
    lock_minutes: float = number(60.0, "minutes", "A lock older than this is nobody's any more.")
    run_minutes: float = number(45.0, "minutes", "A run that takes longer is ended; less than `lock_minutes`.")
    max_rounds: int = whole(60, "rounds", "Most requests one dream may make.")
    max_loss_pct: float = number(
        25.0, "percent", "Of the statements in topic files: a dream that loses more unnamed is refused.", maximum=100
    )


class AgentSettings(Section, live=True):
    """Agents that a session starts: forks, sub-agents, workers and teammates (layer 7)."""

    max_rounds: int = whole(200, "rounds", "Most requests one agent may make.")
    depth: int = whole(3, "levels", "Agents may start agents so deep; 1: only the main agent may.")
    at_once: int = whole(10, "agents", "So many may be at work in one session; one more is refused.")
    ask_s: float = number(300.0, "seconds", "A question of an agent in the background is denied after this.")
    lead_s: float = number(
        5.0, "seconds", "Fork children wait at most so long for the first of them to fill the cache."
    )
    progress_s: float = number(30.0, "seconds", "Between two looks at what a running agent is at.")


class MessageSettings(Section, live=True):
    """Letters between agents, and how a team of processes ends (layer 7)."""

    poll_ms: int = whole(500, "milliseconds", "A team member looks into its mailbox this often.")
    letter_characters: int = whole(
        50_000, "characters", "Longest letter; a longer one that arrives is kept on disk and shown in part."
    )
    round_characters: int = whole(200_000, "characters", "Letters shown at once; the rest wait for the next round.")
    mailbox_bytes: int = whole(64_000_000, "bytes", "More unread letters than this are refused.")
    lock_s: float = number(30.0, "seconds", "Longest wait for a mailbox that another process is changing.")
    permission_s: float = number(300.0, "seconds", "A teammate's question that nobody answers is a no after this.")
    shutdown_s: float = number(
        60.0, "seconds", "A teammate that is asked to end has so long to answer; then it is ended."
    )
    ask_again_s: float = number(30.0, "seconds", "After a refusal, before the teammate is asked again.")
    refusals: int = whole(3, "refusals", "So often a teammate may refuse to end.", minimum=0)
    kill_s: float = number(10.0, "seconds", "Between SIGTERM and SIGKILL.")
