"""Settings of the layers that keep a conversation within its window: notes and compaction.

Numbers are for a window of 200,000 and shrink with smaller ones. A flag may change each of them while sessions run.
"""

from __future__ import annotations

from reverie.settings.fields import Section, number, whole


class Notes(Section):
    """Notes kept while working (layer 3), and what is kept beside them when they take the conversation's place."""

    first_tokens: int = whole(10_000, "tokens", "Of conversation before notes are taken for the first time.", live=True)
    growth_tokens: int = whole(5_000, "tokens", "New since the last notes before they are taken again.", live=True)
    growth_calls: int = whole(
        3, "calls", "Tool calls since the last notes; not needed where the model paused.", live=True
    )
    section_tokens: int = whole(2_000, "tokens", "Longest section; a longer one is to be condensed.", live=True)
    total_tokens: int = whole(12_000, "tokens", "All sections together.", live=True)
    max_rounds: int = whole(5, "rounds", "Most requests one update may make.", live=True)
    wait_s: float = number(15.0, "seconds", "Longest wait of a compaction for an update under way.", live=True)
    ignore_after_s: float = number(60.0, "seconds", "An update older than this is not waited for.", live=True)
    section_characters: int = whole(
        8_000, "characters", "A longer section is cut when notes become the context.", live=True
    )
    keep_tokens: int = whole(
        10_000, "tokens", "At least so much of the conversation is kept beside the notes.", live=True
    )
    keep_messages: int = whole(5, "messages", "At least so many messages with text are kept.", live=True)
    keep_tokens_most: int = whole(40_000, "tokens", "From here on no more is kept to reach the two above.", live=True)


class Compaction(Section):
    """What happens when the window is full (layer 4)."""

    summary_tokens: int = whole(20_000, "tokens", "Longest summary.", live=True)
    failures: int = whole(3, "failures", "So many in a row stop auto-compaction for the session.", live=True)
    refill_turns: int = whole(3, "turns", "A context full again within so many was compacted in vain.", live=True)
    refill_rounds: int = whole(
        6, "rounds", "And within so many: one long turn of real work may well fill it again.", live=True
    )
    refill_times: int = whole(3, "times", "In vain so often in a row stops auto-compaction for the session.", live=True)
    too_long_tries: int = whole(
        3, "times", "How often a conversation too long for its summariser is shortened.", live=True
    )
    restore_files: int = whole(5, "files", "Files read last that are read again.", minimum=0, live=True)
    restore_file_tokens: int = whole(5_000, "tokens", "Of each of them.", live=True)
    restore_tokens: int = whole(50_000, "tokens", "Of all of them.", live=True)
    restore_skill_tokens: int = whole(5_000, "tokens", "Of each invoked skill.", live=True)
    restore_skills_tokens: int = whole(25_000, "tokens", "Of all invoked skills.", live=True)
    request_bytes: int = whole(
        2_000, "bytes", "A longer message of the user's stands as an excerpt, with its file.", live=True
    )
    requests_tokens: int = whole(
        40_000, "tokens", "All messages of the user's; beyond, the oldest are shortened.", live=True
    )
    ledger_characters: int = whole(16_000, "characters", "The ledger of operations.", live=True)
    names: int = whole(200, "names", "Identifiers listed beside a summary.", minimum=0, live=True)
    last_message_tokens: int = whole(
        10_000, "tokens", "A message not answered yet stays as it is up to this size.", live=True
    )
    pins_bytes: int = whole(10_000, "bytes", "All pins together.", live=True)
    collapse_at_pct: float = number(
        90, "percent", "Of effective: from here on old stretches are folded (flag).", maximum=100, live=True
    )
    collapse_block_pct: float = number(
        95, "percent", "Of effective: the blocking limit while folding is on.", maximum=100, live=True
    )
