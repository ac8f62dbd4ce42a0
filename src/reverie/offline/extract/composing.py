"""The words of a memory: its title, its description and its body, all taken from what the person said.

Days are written out; reasons go behind `**Why:**`, when it applies behind `**How to apply:**`, if they were said. No
word of our own but for those labels: a rule that nobody gave must not look as if somebody had.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reverie.memory.taxonomy import MemoryType, file_name
from reverie.memory.topic_file import TopicFile
from reverie.offline.extract.candidates import Candidate
from reverie.offline.extract.judging import points
from reverie.offline.extract.marks import Marked
from reverie.text.cutting import shorten
from reverie.text.dates.phrases import write_out_days
from reverie.text.sentences import capitalize_first, end_sentence

_TITLE = 60
_DESCRIPTION = 150
_LEAD = re.compile(
    r"^(?:(?:and|also|so|but|btw|fyi|yes|yeah|yep|oh|ah|hm+|hi|hey\w*|hello|alright|heads[- ]?up(?: that)?"
    r"|just so you know(?=[,:])"
    r"|remember(?: that| this)?(?: for the future)?|small change|before i forget|quick background[^:]*"
    r"|keep in mind(?: that)?"
    r"|context(?: on me| for this)?|background|pls|please|und|also|bitte|kurz zu mir|übrigens|y|por cierto"
    r"|ojo que)\b[,:!.]?\s*"
    r"|(?:no|nope|ok(?:ay)?|well|right|wait|no wait|ouch,? no|ouch|whoa|ugh|argh|jeez|look|listen|great|cool"
    r"|then)[,:!.]\s+"
    r"|[-–—•,:;…]\s*)+",
    re.IGNORECASE,
)
_LEAD_CJK = re.compile(r"^(?:另外|对了|顺便(?:说|提)(?:一下)?|先说(?:明)?一下|ちなみに|あと|それと|[，,、：:\s])+")
_IDENTITY = re.compile(
    r"^(?:i'm|i am|im|ich bin|soy|我是|私は)\s+(?:an?\s+|the\s+|eine?\s+|la\s+|el\s+|una?\s+|一名|一个)?", re.IGNORECASE
)
_BECAUSE = re.compile(
    r"(?:,|\s[-–—(])?\s*\b(?P<why>(?:because|bc|since(?! (?:\w+day|\d|today|yesterday))|as otherwise|otherwise"
    r"|so that|weil|da sonst|sonst|damit|porque|ya que|si no)\b.+)$"
    r"|[，,。]?(?<![是正就只])(?P<whyc>(?:因为|由于|否则|不然).+)$",
    re.IGNORECASE,
)
_SO = re.compile(
    r"(?:,|;|\s[-–—])\s*(?P<so>(?:so|therefore|hence|that's why|deshalb|deswegen|daher|así que|por eso)\b\s.+)$"
    r"|[，,](?P<soc>所以.+)$",
    re.IGNORECASE,
)
_THEREFORE = re.compile(
    r"(?:so|therefore|hence|that'?s why|deshalb|deswegen|daher|así que|por eso)\b|所以|因此|だから|そのため", re.I
)
_SUBJECT = re.compile(
    r"(?:(?:the|our|this) )?(?P<noun>[a-z]{4,}) (?:is|was|starts|begins|ships|got|has|moves|ends|will)\b", re.IGNORECASE
)
_SCOPE = re.compile(
    r"\b(?P<scope>(?:when|whenever|if|before|after|every time|each time) (?:you|i) (?:[^,.;:]"
    r"|\.(?=\w)){3,70}(?=[,;:]|\.(?!\w)|$)"
    r"|(?:in|for|on|with) (?:every|all|any|anything|each) (?:[^,.;:]|\.(?=\w)){3,60}(?=[,;:]|\.(?!\w)|$)"
    r"|bei (?:solchen|allen|jedem|jeder) (?:[^,.;:]|\.(?=\w)){3,60}|immer wenn (?:[^,.;:]|\.(?=\w)){3,60}"
    r"|wenn du (?:[^,.;:]|\.(?=\w)){3,60}|cuando (?:[^,.;:]|\.(?=\w)){3,60}|cada vez que (?:[^,.;:]|\.(?=\w)){3,60})",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(
    r"\s*\((?=[^()]*(?:/|:|\b(?:user|login|pass\w*|pw|pwd|guest|token"
    r"|key)\b))(?=[^()]*\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{6,})[^()]*\)"
    r"|\s*\((?=[^()]*\b(?:user|login|pass\w*|pw|pwd)\b)(?=[^()]*\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{6,})[^()]*\)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory to write."""

    file: str
    text: str


def compose(candidate: Candidate, taken: Sequence[str]) -> Memory:
    """A new memory under a name that is not taken."""
    title = _title(candidate)
    lines = statement_lines(candidate)
    topic = TopicFile.new(
        name=title, description=shorten(_plain(lines[0]), _DESCRIPTION), type=candidate.type, body="\n".join(lines)
    )
    name = file_name(candidate.type, title)
    number = 2
    while name in taken:
        name = file_name(candidate.type, f"{title} {number}")
        number += 1
    return Memory(name, topic.text)


def statement_lines(candidate: Candidate) -> list[str]:
    """The body of a memory, line by line: what was said, then why and when it applies, as far as that was said."""
    said, why, so = list[str](), [_spoken(one) for one in candidate.why], list[str]()
    explained = candidate.type in (MemoryType.FEEDBACK, MemoryType.PROJECT)
    for one in candidate.said:
        text = _fuller(one, _spoken(one))
        if explained and said and _THEREFORE.match(one.text):
            so.append(text)
            continue
        if explained:
            text, reason = _parted(text, _BECAUSE)
            why += [reason] if reason else []
        if candidate.type is MemoryType.PROJECT:
            text, then = _parted(text, _SO)
            so += [then] if then else []
        said += [text] if text else []
    if candidate.confirmed:
        said.append(candidate.confirmed)
    told = " ".join(_sentence(text) for text in said)
    if not explained:
        told = " ".join([told, *map(_sentence, why)])
        return [f"In the user's words: “{told}”"] if candidate.type is MemoryType.USER else [told]
    scope = _SCOPE.search(told) if candidate.type is MemoryType.FEEDBACK else None
    so += [scope["scope"]] if scope else []
    labelled = [
        f"**{name}:** {' '.join(map(_sentence, texts))}"
        for name, texts in (("Why", why), ("How to apply", so))
        if texts
    ]
    return [told, "", *labelled] if labelled else [told]


def _fuller(one: Marked, text: str) -> str:
    """The subject by the fuller name it has elsewhere in the message: “the 5.0 launch” for “the launch”."""
    first = _SUBJECT.match(text)
    if first is None:
        return text
    noun = first["noun"]
    for other in one.message.marked:
        found = (
            re.search(rf"\b(?P<name>[\w.-]*[A-Z\d][\w.-]*) {re.escape(noun)}\b", other.bare)
            if other is not one
            else None
        )
        if found and found["name"][0].isalnum() and not found["name"].isdigit():
            return f"{found['name']} {text[first.start('noun') :]}"
    return text


def _spoken(one: Marked) -> str:
    """A sentence as it is kept: days written out, credentials and what leads in left out."""
    text = write_out_days(one.text, one.message.said.day, one.message.tongue)
    text = _LEAD_CJK.sub("", _LEAD.sub("", _CREDENTIALS.sub("", text))).strip()
    return text.strip(" ,;:-–—")


def _parted(text: str, pattern: re.Pattern[str]) -> tuple[str, str]:
    """A sentence and the clause in it that gives the reason, or the consequence."""
    found = pattern.search(text)
    if found is None or found.start() < 12:
        return text, ""
    clause = next(group for group in found.groups() if group)
    return text[: found.start()].rstrip(" ,;:-–—("), clause.rstrip(")")


def _title(candidate: Candidate) -> str:
    """The first words of the sentence that made it a memory."""
    main = max(candidate.said, key=lambda one: points(one).get(candidate.type, 0.0))
    text = _plain(_fuller(main, _spoken(main)))
    if candidate.type is MemoryType.USER:
        text = _IDENTITY.sub("", text)
    text = re.sub(r"\s*[(（][^()（）]*[)）]", "", text) or text.strip("()（）")
    limit = _TITLE // 3 if candidate.message.tongue in ("zh", "ja") else _TITLE
    parts = re.split(r"[,;(。，；、]\s*|:\s|\s[-–—]\s", text)
    while len(text) > limit and len(parts) > 1:
        parts.pop()
        text = ", ".join(parts)
    text = re.sub(r"[.!?]\s+(?=\S)", " ", text)  # a title is one piece, also for those who look for sentences in it
    return capitalize_first(shorten(text, limit).strip(" .!?…。！？"))


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").replace("`", "").split())


def _sentence(text: str) -> str:
    return end_sentence(capitalize_first(text.strip()))
