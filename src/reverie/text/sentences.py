"""Finds the sentences and statements of a text: sentences and bullets, without Markdown. In a chat a sentence may begin
in lower case. Abbreviations, versions, ordinals and file names stay whole. Pure, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.parsing import split_long
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.text.words import CJK, content_terms

_PAUSE = late(
    r"(?<=[.!?])(?P<closed>[\"'”’)\]]*+)\s++|(?<=[。！？])[」』”’）)]*+|(?P<clause>[;；])\s*+|\n++"
    r"|(?<=\?)(?=\()|(?<=[?!])(?=[\u3040-\u30ff\u3400-\u9fff])"
)
_OPENS = late(r"[\"'`“„(*\[]*+[^\Wa-z_]")
"""How a sentence begins where capitals are used."""
_ABBREVIATED = late(
    r"(?:^|[^\w])(?:[A-Za-z]|(?:\w\.)+\w|(?i:mrs?|ms|mx|dr|prof|st|jr|sr|hon|rev|gen|col|capt|sgt|lt|vs|etc|eg|ie|cf|inc"
    r"|ltd|co|corp|dept|est|approx|ca|eds|al|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|bzw|usw|str))\.$"
)
"""A word with a dot that does not end a sentence: an initial, letters with dots between, or a known short form."""
_NUMBERED = late(r"\b(?:no|nr|tel|ext|art|figs?|vol|pp)\.$", re.IGNORECASE)
"""The same, if a number follows."""
_ORDINAL = late(r"(?:^|[^\w.])\d{1,2}\.$")
_NUMBER_ENDS = late(r"(?<!\bam)(?<!\bab)(?<!\bder)(?<!\bden)(?<!\bdem)(?<!\bzum)(?<!\bvom)(?<!\bbis)\s\d{1,2}\.$")
_LOOKED_AT = 24
"""Characters before a dot that are checked for an abbreviation."""
_LINE = late(r"[^\n]+")
_LEAD = late(
    r"[^\S\n]*(?:(?:[-*+•>]|\d+[.)]|\[[ x]\]|#+)[^\S\n]+)*"
    r"(?P<label>\**(?:why|how to apply|warum|anwendung|wie anwenden|por qu[eéê]|c[oó]mo aplicar|pourquoi|application"
    r"|comment appliquer|perché|come applicare|waarom|toepassing|почему|как применять|原因|应用|理由|適用)"
    r"[^\S\n]?[:：]\**[^\S\n]*)?",
    re.IGNORECASE,
)
_LINK = late(r"\[([^\[\]\n]*)\]\((?!\w+://)[^()\n]*\)")  # to another memory: a name, not a statement


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; `start` and `end` count characters of the text. `label` is `why` or `how to apply`, if the line
    has it."""

    text: str
    start: int
    end: int
    label: str = ""

    @property
    def terms(self) -> frozenset[str]:
        return content_terms(self.text)


def pauses(
    text: str, start: int = 0, end: int | None = None, *, clauses: bool = False, is_chat: bool = False
) -> Iterator[tuple[int, int]]:
    """Where one sentence ends and the next begins, in order; with `clauses` also at semicolons."""
    for found in _PAUSE.finditer(text, start, len(text) if end is None else end):
        closed = found.start("closed")
        if closed < 0:
            if not found["clause"]:
                yield found.end(), found.end()
            elif clauses and (found["clause"] == "；" or text[found.end() - 1].isspace()):
                yield found.start() + 1, found.end()
        elif _is_end(text[max(start, closed - _LOOKED_AT) : closed], text[found.end() : found.end() + 9], is_chat):
            yield found.end("closed"), found.end()


def _is_end(before: str, after: str, is_chat: bool) -> bool:
    opens = bool(_OPENS.match(after))
    if not before.endswith("."):
        return opens or is_chat
    if _ORDINAL.search(before):
        return opens and bool(_NUMBER_ENDS.search(before))
    if after[:1].isdigit() and _NUMBERED.search(before):
        return False
    return (opens or is_chat) and not _ABBREVIATED.search(before)


def sentences(text: str, *, is_chat: bool = False) -> list[str]:
    """The sentences of a text, also split at semicolons, each of limited length."""
    found = [part for start, end in _spans(text, 0, len(text), is_chat) for part in split_long(text[start:end])]
    return [part.strip() for part in found if any(char.isalnum() for char in part)]


def statements_in(text: str, start: int = 0, *, with_code: bool = False) -> list[Statement]:
    """The statements of a text from `start` on, with their positions."""
    found: list[Statement] = []
    is_code = False
    for line in _LINE.finditer(text, start):
        if line[0].lstrip().startswith("```"):
            is_code = not is_code
            continue
        if is_code and not with_code:
            continue
        lead = lead_of(text, line.start())
        label = (lead["label"] or "").strip("* :：").lower()
        for begin, end in _spans(text, min(lead.end(), line.end()), line.end(), is_chat=False):
            at = begin
            for said in split_long(text[begin:end]):
                if any(char.isalnum() for char in said):
                    found.append(
                        Statement(said.strip(), at + len(said) - len(said.lstrip()), at + len(said.rstrip()), label)
                    )
                at += len(said)
    return found


def statements(text: str) -> list[str]:
    """The statements of a text, each once and without Markdown; code counts."""
    bare = (strip_marks(one.text) for one in statements_in(text, with_code=True))
    return list(dict.fromkeys(one for one in bare if len(one) > 1))


def strip_marks(statement: str) -> str:
    """A statement without emphasis, code marks, and links to other files."""
    return _LINK.sub(r"\1", statement).strip(" *_`-—")


def lead_of(text: str, line_start: int) -> re.Match[str]:
    """The bullet, heading marks and label before the first statement of a line."""
    found = _LEAD.match(text, line_start)
    assert found is not None  # all of it is optional
    return found


def _spans(text: str, start: int, end: int, is_chat: bool) -> Iterator[tuple[int, int]]:
    for until, then in pauses(text, start, end, clauses=True, is_chat=is_chat):
        yield start, until
        start = then
    yield start, end


def end_sentence(text: str) -> str:
    """The text with a full stop, unless it ends a sentence already."""
    text = text.strip()
    return text if not text or text[-1] in ".!?。！？…:)”" else f"{text}{'。' if CJK.match(text[-1]) else '.'}"


def capitalize_first(text: str) -> str:
    return text[:1].upper() + text[1:]
