"""The words that mark a plain statement, one small table per language.

The tables contain only what people say outright: remember this, from now on, I am a …, we decided, it is due on, forget
that. Hints are for a model that thinks. A language's patterns are compiled when they are first used.
"""

from __future__ import annotations

import re
from functools import cache

from reverie.offline.language import words
from reverie.quick import dataclass
from reverie.text.tongue import Tongue


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Patterns to search a sentence for. Each says what its presence means."""

    remember: re.Pattern[str]
    """The sentence asks to keep what it says."""
    standing: re.Pattern[str]
    """It is true from now on, not only for this task."""
    orders: re.Pattern[str]
    """It opens with always, never or a wish: a rule, or a part of a task."""
    person: re.Pattern[str]
    """I am a …, I work as …: who the user is."""
    decided: re.Pattern[str]
    """Something was decided, put off or handed over."""
    event: re.Pattern[str]
    """Something that happens on a day."""
    located: re.Pattern[str]
    """Something is kept somewhere."""
    reason: re.Pattern[str]
    forget: re.Pattern[str]
    """It asks to remove something that was kept, or not to keep something that was said."""
    deletes: re.Pattern[str]
    """It asks to delete something: a memory, if the message mentions memory."""
    kept: re.Pattern[str]
    """It mentions memory."""
    not_forget: re.Pattern[str]
    changed: re.Pattern[str]
    """Something has changed."""
    void: re.Pattern[str]
    """A supposition or a joke: nothing in the whole message is serious."""
    unmeant: re.Pattern[str]
    """For this one time, somebody else's words, or written down already."""
    asks: re.Pattern[str]
    """A question, even without its mark."""
    requests: re.Pattern[str]
    """A task for now."""
    filler: re.Pattern[str]
    """Thanks, fine, a greeting: no content."""


@cache
def lexicon(tongue: Tongue) -> Lexicon:
    """The words of a language, case ignored."""
    return Lexicon(**{name: re.compile(pattern, re.IGNORECASE) for name, pattern in words.WORDS[tongue].items()})
