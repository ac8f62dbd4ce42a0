"""Settings of the layers 3 to 7: notes, compaction, extraction, dreams, agents and their messages.

Numbers are for a window of 200,000 tokens; a smaller window lowers them. A flag may change them while sessions run.
"""

from __future__ import annotations

from typing import Literal

from reverie.settings.fields import Section, choice, number, switch, whole


class NoteSettings(Section, live=True):
    """Notes that a session writes about its work (layer 3), and the messages kept with them after a compaction."""

    cadence: Literal["economic", "reference"] = choice(
        "economic",
        ("economic", "reference"),
        "When a model writes the notes. economic: when they are worth their price, shortly before a compaction; until "
        "then they are written without a model. reference: whenever the conversation has grown as below.",
    )
    first_tokens: int = whole(10_000, "tokens", "The first notes are written when the conversation has this size.")
    growth_tokens: int = whole(5_000, "tokens", "The notes are updated after the conversation has grown by this much.")
    growth_calls: int = whole(3, "calls", "And after this many tool calls; after a pause of the model, any number.")
    section_tokens: int = whole(2_000, "tokens", "The model must shorten a section that is longer.")
    total_tokens: int = whole(12_000, "tokens", "The limit for all sections together.")
    max_rounds: int = whole(5, "rounds", "The most requests of one update.")
    wait_s: float = number(15.0, "seconds", "The longest time that a compaction waits for a running update.")
    ignore_after_s: float = number(60.0, "seconds", "A compaction does not wait for an update that is older.")
    section_characters: int = whole(8_000, "characters", "A longer section is cut when notes replace the conversation.")
    keep_tokens: int = whole(10_000, "tokens", "At least this much of the conversation is kept with the notes.")
    keep_messages: int = whole(5, "messages", "At least this many messages with text are kept.")
    keep_tokens_most: int = whole(40_000, "tokens", "The limit for messages kept because of the two settings above.")


class CompactionSettings(Section, live=True):
    """What happens when the window is full (layer 4)."""

    idle: bool = switch(True, "Compact during a pause if the context is above the warning, so that nobody waits.")
    idle_minutes: float = number(4.0, "minutes", "The length of such a pause; a cache often lives for 5 minutes.")
    summary_tokens: int = whole(20_000, "tokens", "The longest summary.")
    failures: int = whole(3, "failures", "This many in a row stop auto-compaction for the session.")
    refill_turns: int = whole(3, "turns", "A compaction was useless if the window is full again within this many.")
    refill_rounds: int = whole(6, "rounds", "And within this many rounds: one long turn may fill the window too.")
    refill_times: int = whole(3, "times", "This many useless compactions in a row stop auto-compaction.")
    too_long_tries: int = whole(3, "times", "How often a conversation is shortened if it is too long to summarise.")
    restore_files: int = whole(5, "files", "How many of the last read files are read again.", minimum=0)
    restore_file_tokens: int = whole(5_000, "tokens", "The limit for each of these files.")
    restore_tokens: int = whole(50_000, "tokens", "The limit for all of these files.")
    restore_skill_tokens: int = whole(5_000, "tokens", "The limit for each invoked skill.")
    restore_skills_tokens: int = whole(25_000, "tokens", "The limit for all invoked skills.")
    request_bytes: int = whole(2_000, "bytes", "A longer message of the user becomes an excerpt with its file.")
    requests_tokens: int = whole(40_000, "tokens", "The limit for all messages of the user; the oldest are shortened.")
    ledger_characters: int = whole(16_000, "characters", "The limit for the list of operations.")
    names: int = whole(200, "names", "How many identifiers are listed with a summary.", minimum=0)
    last_message_tokens: int = whole(10_000, "tokens", "A message without an answer stays unchanged up to this size.")
    pins_bytes: int = whole(10_000, "bytes", "The limit for all pins together.")
    collapse_at_pct: float = number(90, "percent", "Old parts are folded from this share of effective on.", maximum=100)
    collapse_block_pct: float = number(95, "percent", "With folding: the blocking limit, of effective.", maximum=100)


class ExtractionSettings(Section, live=True):
    """Writing the lessons of a turn to memory (layer 5)."""

    every_turns: int = whole(1, "turns", "A run covers this many turns; 1: after every turn.")
    max_rounds: int = whole(5, "rounds", "The most requests of one run.")
    run_s: float = number(180.0, "seconds", "A run that takes longer is ended; the next run covers its messages.")
    most_losses: int = whole(3, "memories", "How many may lose statements, or be forgotten, in one run.", minimum=0)


class DreamSettings(Section, live=True):
    """Consolidation of memory across sessions (layer 6)."""

    mode: Literal["auto", "ask", "inbox"] = choice(
        "auto",
        ("auto", "ask", "inbox"),
        "What becomes of a dream: memory at once; a proposal that sessions mention; a proposal that waits quietly.",
    )
    hours: float = number(24.0, "hours", "The shortest time between two dreams.")
    scan_minutes: float = number(10.0, "minutes", "The time between two checks for changed transcripts.")
    transcripts: int = whole(5, "transcripts", "A dream needs this many changed ones, without the current one.")
    lock_minutes: float = number(60.0, "minutes", "A lock that is older does not count any more.")
    run_minutes: float = number(45.0, "minutes", "A dream that takes longer is ended; less than `lock_minutes`.")
    max_rounds: int = whole(60, "rounds", "The most requests of one dream.")
    max_loss_pct: float = number(
        25.0, "percent", "A dream that silently loses more statements of topic files is refused.", maximum=100
    )


class AgentSettings(Section, live=True):
    """Agents that a session starts: forks, sub-agents, workers and teammates (layer 7)."""

    max_rounds: int = whole(200, "rounds", "The most requests of one agent.")
    depth: int = whole(3, "levels", "How deep agents may start agents; 1: only the main agent may.")
    at_once: int = whole(10, "agents", "The most agents that work in one session; more are refused.")
    ask_s: float = number(300.0, "seconds", "A question of an agent in the background is denied after this time.")
    lead_s: float = number(5.0, "seconds", "The longest time that forks wait for the first of them to fill the cache.")
    progress_s: float = number(30.0, "seconds", "The time between two progress reports of a running agent.")


class MessageSettings(Section, live=True):
    """Messages between agents, and how a team of processes ends (layer 7)."""

    poll_ms: int = whole(500, "milliseconds", "How often a teammate checks its inbox.")
    letter_characters: int = whole(50_000, "characters", "The longest message; a longer one is kept on disk.")
    round_characters: int = whole(200_000, "characters", "Messages shown at once; the rest wait for the next round.")
    mailbox_bytes: int = whole(64_000_000, "bytes", "The limit for unread messages; more are refused.")
    lock_s: float = number(30.0, "seconds", "The longest wait for an inbox that another process is changing.")
    permission_s: float = number(300.0, "seconds", "A teammate's question without an answer is denied after this time.")
    shutdown_s: float = number(60.0, "seconds", "A teammate that does not answer a request to end is ended after this.")
    ask_again_s: float = number(30.0, "seconds", "The time between a refusal to end and the next request.")
    refusals: int = whole(3, "refusals", "How often a teammate may refuse to end.", minimum=0)
    kill_s: float = number(10.0, "seconds", "The time between SIGTERM and SIGKILL.")
