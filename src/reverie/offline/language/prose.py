"""What the user says in a message, sentence by sentence; what they only show (code, logs, quotes) is left out.

A chat has bullets and brackets everywhere; `text.sentences` decides where sentences end.
"""

from __future__ import annotations

import re
from typing import Final

from reverie.parsing import LONGEST_MESSAGE
from reverie.quick import dataclass
from reverie.text.sentences import sentences as split

_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(
    r"<(system-reminder|persisted-output|command-[\w-]+|local-command-[\w-]+|task-notification"
    r"|recalled[\w-]*)\b[^<>]*>.*?(?:</\1>|\Z)|^[ \t]*<([a-z][\w-]*)\b[^<>]*>.*?</\2>",
    re.DOTALL | re.MULTILINE,
)
_SHOWN = re.compile(
    r"^\s*(?:>|\||[{}\[\]<]|\$ |%|at \S+\(|File \"|Traceback|\+\+|--|@@|//|/\*|\*/|import [\w{*.]+(?:;|$| from)"
    r"|from \S+ import|(?:async )?def \w+\(|class \w+[:({]|(?:async )?function\b.*\(|(?:const|let|var) \w+ ?[=:]"
    r"|return\b.*;|#include|#define|(?:public|private|static) (?:class|static|void|fn|func|int|string)"
    r"|[A-Z][A-Za-z]*(?:Error|Exception)\b)|^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|^\s*\[?\d\d:\d\d:\d\d|^\s*(?:ERROR"
    r"|WARN(?:ING)?|INFO|DEBUG|FATAL|TRACE)\b|[{;\[]\s*$|^\s*[\"\x27][^\"\x27]*[\"\x27],?\s*$"
    r"|^\s*[\w./-]+:\d+(?::\d+)?[: ]|^\s*-{3,}\s*$|^(?: {4,}|\t)(?!\s*[-*•\d])|^=== .* ===$|^[➜❯⏺⎿]"
)
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+\S|\*\*[^*]+\*\*:?\s*$|={3,}$)", re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)]|\(?[a-z]\)|\[[ x]\])\s+", re.MULTILINE)
_QUOTE = re.compile(
    r"[\"“„«「『](?P<said>[^\"“”„«»「」『』\n]{2,}?)[\"”“»」』]|(?<!\w)['‘‚](?P<word>[^'’‘‚\n]{2,}?)['’‘](?!\w)"
)
_LEAD = re.compile(
    r"^(?:(?:and|also|so|but|btw|by the way|fyi|yes|yeah|yep|nope|oh|ah|hm+|hi|hey\w*|hello|alright|sorry|thanks"
    r"|heads[- ]?up(?: that)?|just so you know(?=[,:])|actually|for the record|small change|before i forget"
    r"|(?:remember|note|keep in mind|bear in mind)(?: this| that| please| for later| for the future)*|(?:quick "
    r"|for )?(?:background|context)(?: on me| for this)?|pls|please|und|bitte|kurz zu mir|übrigens|nein|merke? dir|y"
    r"|por cierto|ojo que|recuerda(?: esto| que)*)\b[,:!.]?\s*|(?:no|ok(?:ay)?|well|right|wait|ouch|whoa|ugh|argh|jeez"
    r"|look|listen|great|cool|then)[,:!.]\s+|[-–—•,:;…，、：\s]+|另外|对了|顺便(?:说|提)(?:一下)?|先说(?:明)?一下"
    r"|请?记住|ちなみに|あと|それと)+",
    re.IGNORECASE,
)
_BLANK = re.compile(r"\n[ \t]*\n")
_PASTED: Final = 0.3  # share of a paragraph's lines: then all of it was pasted
_LONG_QUOTE: Final = 24  # characters, and more than three words: not a name or title
_LONG: Final = 1_500
_MANY_BULLETS: Final = 4


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it was typed, except for long quotations: those are somebody else's words."""

    text: str
    paragraph: int = 0

    @property
    def is_question(self) -> bool:
        """By its mark; “…, ok?” does not count."""
        end = self.text.rstrip(" \"'”’)]:🙂🙃😉")
        if not end.endswith(("?", "？")) and not end.endswith(("吗", "呢", "ですか", "ますか")):
            return False
        return not re.search(
            r"[,;—-]\s*(?:but )?(?:ok(?:ay)?|right|yes|alright|deal|please|honestly|gell|ja|vale|sí|no)\s*\?$",
            end,
            re.I,
        )


@dataclass(frozen=True, slots=True)
class Prose:
    """What is said in a message. `is_document`: it is a pasted or composed text, not somebody talking."""

    sentences: tuple[Sentence, ...]
    is_document: bool


def read_prose(text: str) -> Prose:
    """The sentences of a message."""
    said = _TAGGED.sub("\n", _FENCE.sub("\n", text[:LONGEST_MESSAGE]))
    blocks = [kept for block in _BLANK.split(said) if (kept := _spoken(block))]
    prose = "\n\n".join(blocks)
    bullets, headings = len(_BULLET.findall(prose)), len(_HEADING.findall(prose))
    is_document = len(prose) > _LONG or headings >= 1 or bullets >= _MANY_BULLETS
    spoken = (Sentence(one.text, number) for number, block in enumerate(blocks) for one in sentences(block))
    return Prose(tuple(spoken), is_document)


def sentences(text: str) -> list[Sentence]:
    """Splits prose into sentences, without bullets and list numbers."""
    pieces = (_BULLET.sub("", part).strip() for part in split(without_quotes(text), is_chat=True))
    return [Sentence(piece) for piece in pieces if any(char.isalnum() for char in piece)]


def without_quotes(text: str) -> str:
    """The text with long quotations replaced by an ellipsis; names and titles between quotes stay."""

    def cut(match: re.Match[str]) -> str:
        said = match["said"] or match["word"] or ""
        is_long = len(said) > _LONG_QUOTE and (len(said.split()) > 3 or not said.isascii())
        return "“…”" if is_long else match[0]

    return _QUOTE.sub(cut, text)


def without_lead(text: str) -> str:
    """A sentence without the words that introduce it."""
    return _LEAD.sub("", text.strip()) or text.strip()


def _spoken(block: str) -> str:
    """The lines of a paragraph that were typed; none if a large part of it was pasted."""
    lines = [line for line in block.splitlines() if line.strip()]
    kept = [line for line in lines if not _SHOWN.search(line) and not _is_shown(line)]
    return "\n".join(kept) if len(lines) - len(kept) <= _PASTED * len(lines) else ""


def _is_shown(line: str) -> bool:
    """A table, a stack, a dump: more signs than words."""
    bare = line.strip()
    if len(bare) < 12:
        return False
    wordy = sum(char.isalpha() or char.isspace() for char in bare)
    return wordy < 0.6 * len(bare) or bare.count("|") >= 3
