"""Settings of agents that a session starts (layer 7). A flag may change each number while sessions run."""

from __future__ import annotations

from reverie.settings.fields import Section, number, whole


class Agents(Section):
    """Agents that a session starts: forks, sub-agents, workers and teammates (layer 7)."""

    max_rounds: int = whole(200, "rounds", "Most requests one agent may make.", live=True)
    depth: int = whole(3, "levels", "Agents may start agents so deep; 1: only the main agent may.", live=True)
    at_once: int = whole(10, "agents", "So many may be at work in one session; one more is refused.", live=True)
    ask_s: float = number(300.0, "seconds", "A question of an agent in the background is denied after this.", live=True)
    lead_s: float = number(
        5.0, "seconds", "Fork children wait at most so long for the first of them to fill the cache.", live=True
    )
    progress_s: float = number(30.0, "seconds", "Between two looks at what a running agent is at.", live=True)
