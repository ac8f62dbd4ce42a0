"""Settings of messages between agents and of teams (layer 7). A flag may change each number while sessions run."""

from __future__ import annotations

from reverie.settings.fields import Section, number, whole


class Messages(Section):
    """Letters between agents, and how a team of processes ends (layer 7)."""

    poll_ms: int = whole(500, "milliseconds", "A team member looks into its mailbox this often.", live=True)
    letter_characters: int = whole(
        50_000, "characters", "Longest letter; a longer one that arrives is kept on disk and shown in part.", live=True
    )
    round_characters: int = whole(
        200_000, "characters", "Letters shown at once; the rest wait for the next round.", live=True
    )
    mailbox_bytes: int = whole(64_000_000, "bytes", "More unread letters than this are refused.", live=True)
    lock_s: float = number(30.0, "seconds", "Longest wait for a mailbox that another process is changing.", live=True)
    permission_s: float = number(
        300.0, "seconds", "A teammate's question that nobody answers is a no after this.", live=True
    )
    shutdown_s: float = number(
        60.0, "seconds", "A teammate that is asked to end has so long to answer; then it is ended.", live=True
    )
    ask_again_s: float = number(30.0, "seconds", "After a refusal, before the teammate is asked again.", live=True)
    refusals: int = whole(3, "refusals", "So often a teammate may refuse to end.", minimum=0, live=True)
    kill_s: float = number(10.0, "seconds", "Between SIGTERM and SIGKILL.", live=True)
