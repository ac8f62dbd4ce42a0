"""The words by which a speech act is known, one set a language: what is standing, forbidden, supposed, mocked, quoted.

Function words and speech formulas of everyday language only: never the words of a trade, a project or a test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from reverie.text.tongue import Tongue

NOTHING: Final = re.compile(r"(?!)")
"""Matches no text: for what a language's word list does not know."""


def pattern(*alternatives: str) -> re.Pattern[str]:
    """One pattern of many, case ignored; lower-case words in it are whole words where the language parts words."""
    return re.compile("|".join(f"(?:{one})" for one in alternatives), re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Patterns to search a sentence for. Each says what its presence means."""

    # How to work.
    standing: re.Pattern[str]
    """It holds from now on, not for this task only."""
    habit: re.Pattern[str]
    """Always, never: standing, or a part of a specification."""
    forbids: re.Pattern[str]
    """The agent shall not do something."""
    displeased: re.Pattern[str]
    """What the agent just did was not wanted."""
    prefers: re.Pattern[str]
    permits: re.Pattern[str]
    """What may be done without asking, or what must be asked first."""
    our_way: re.Pattern[str]
    """How things are done here."""
    keep_on: re.Pattern[str]
    """Like that again: it points at what was said or done just before."""
    approves: re.Pattern[str]
    """The agent's choice is praised."""
    praises: re.Pattern[str]
    """A choice is called right, in so many words."""
    written: re.Pattern[str]
    """It is said to be written down, or known, already."""
    demands: re.Pattern[str]
    """Must, needs, should."""
    complains: re.Pattern[str]
    """What the agent does too often: no rule by itself."""
    reason: re.Pattern[str]
    people: re.Pattern[str]
    """Others have a part in it: what they do, read, want. A reason that outlives the task."""
    manner: re.Pattern[str]
    """How something is to be done, not what."""
    solved: re.Pattern[str]
    """What a mistake was, and that it is over."""
    mishap: re.Pattern[str]
    """Something went wrong once: the usual reason for a rule."""

    # What is not meant.
    once: re.Pattern[str]
    """For this one time."""
    supposed: re.Pattern[str]
    mocked: re.Pattern[str]
    quoted: re.Pattern[str]
    """Somebody else's words or opinion."""
    asks: re.Pattern[str]
    """A question, also without its mark."""
    requests: re.Pattern[str]
    """A task for now."""
    filler: re.Pattern[str]
    """Thanks, fine, a greeting: says nothing."""

    # Who the user is.
    person: re.Pattern[str]
    """I am, I work, I have been doing this for so long."""
    not_person: re.Pattern[str]
    """I am tired, I am done: a state of the moment."""
    goal: re.Pattern[str]

    # What is going on.
    event: re.Pattern[str]
    """Something that happens on a day: a release, a deadline, a visit."""
    limit: re.Pattern[str]
    """By, until, from: a day that binds."""
    parked: re.Pattern[str]
    """Work that was put aside, in so many words."""
    on_hold: re.Pattern[str]
    """Closed, frozen, blocked: of work, or of other things."""
    bound_by: re.Pattern[str]
    """A law, a contract or an auditor says so."""
    decided: re.Pattern[str]
    owns: re.Pattern[str]
    """Who does what."""
    trouble: re.Pattern[str]
    """An outage, a loss: something happened to others than this task."""

    # Where things are.
    place: re.Pattern[str]
    """A tracker, a board, a wiki, a channel, by its kind."""
    located: re.Pattern[str]
    """Is in, lives in, goes to, look there."""

    # What becomes of memories.
    remember: re.Pattern[str]
    tells: re.Pattern[str]
    """By the way, heads-up: what follows is meant to be known."""
    forget: re.Pattern[str]
    not_forget: re.Pattern[str]
    changed: re.Pattern[str]
    """Something is other than it was."""
    harks_back: re.Pattern[str]
    """It speaks of what was said to the agent before."""
    excepts: re.Pattern[str]
    """A rule has an exception."""


@cache
def lexicon(tongue: Tongue) -> Lexicon:
    """The words of a language, loaded when the first text in it comes."""
    match tongue:
        case "en":
            from reverie.offline.language import words_en as found
        case "de":
            from reverie.offline.language import words_de as found
        case "es":
            from reverie.offline.language import words_es as found
        case "zh":
            from reverie.offline.language import words_zh as found
        case "ja":
            from reverie.offline.language import words_ja as found
    return found.LEXICON
