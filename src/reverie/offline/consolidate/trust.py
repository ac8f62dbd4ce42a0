"""How far a memory or a statement is trusted, by its head and its own words."""

from __future__ import annotations

import re
from enum import IntEnum

from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import TopicFile

_CONFIRMED = re.compile(
    r"\b(?:confirmed (?:by|on|with)|(?<!not )(?<!un)confirmed\b|said explicitly|explicitly (?:said|asked|told)"
    r"|(?:the user|he|she|they) (?:said|confirmed|insisted)|bestätigt|ausdrücklich|confirmado|确认过|確認済)",
    re.IGNORECASE,
)
_GUESSED = re.compile(
    r"\b(?:inferred|seems?(?: to)?|appears? to|apparently|probably|presumably|perhaps|maybe|likely|possibly"
    r"|guess(?:ed)?|unconfirmed|not confirmed|unverified|not verified|assum(?:ed?|ption)|looks like|suspect|vermutlich"
    r"|wahrscheinlich|anscheinend|offenbar|scheint|unbestätigt|nicht bestätigt|parece|probablemente|al parecer|quizás?"
    r"|sin confirmar)\b|可能|似乎|大概|未确认|らしい|ようだ|おそらく|未確認",
    re.IGNORECASE,
)
_UNDONE = re.compile(
    r"(?:\b(?:not|never|nobody|no one|none|neither|nor|without|no|nicht|nie|niemand|keiner|sin|nadie|nunca)|n['’]t"
    r"|\b(?:yet|still|remains?|needs?|wants?|has|have) to(?: be)?)(?:\s+(?!and\b|but\b|und\b|pero\b)\w+){0,3}\s+$",
    re.IGNORECASE,
)
"""Before *confirmed*: it was not confirmed."""


class TrustLevel(IntEnum):
    """Which statement wins, from low to high."""

    GUESSED = 0
    PLAIN = 1
    CONFIRMED = 2


def is_guess(statement: str) -> bool:
    """Whether a statement calls itself a conclusion."""
    return bool(_GUESSED.search(statement)) and not _is_confirmed(statement)


def without_doubt(statement: str) -> str:
    """What a guess claims, without the words that mark it as a guess."""
    return _GUESSED.sub(" ", statement)


def read_trust_level(file_text: str) -> TrustLevel:
    """Reads how certain a file is: from its `trust` field, or from its words."""
    topic = TopicFile.parse(file_text)
    if topic.trust is not None:
        return TrustLevel.CONFIRMED if topic.trust is Trust.CONFIRMED else TrustLevel.GUESSED
    said = f"{topic.description}\n{topic.body}"
    if _is_confirmed(said):
        return TrustLevel.CONFIRMED
    lead = f"{topic.description}\n{topic.body[:200]}"
    return TrustLevel.GUESSED if _GUESSED.search(lead) else TrustLevel.PLAIN


def _is_confirmed(text: str) -> bool:
    return any(
        not _UNDONE.search(text[max(0, match.start() - 40) : match.start()]) for match in _CONFIRMED.finditer(text)
    )
