"""Changes of a memory's text, line by line: take statements out, put earlier ones back, quote a line. Text in, text
out."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from reverie.memory.changes import ProposedWrite
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.text.folding import fold_statement, fold_text
from reverie.text.patterns import late
from reverie.text.sentences import Statement, statements_in, strip_marks
from reverie.text.sentences import lead_of as line_lead

_MEMORY_LINK = late(r"\[([^\[\]\n]*)\]\((?:[\w-]+/)?[\w-][\w.-]*\.md\)")
_LINK = late(r"\[([^\[\]\n]*)\]\(([^()\n]*)\)")
_FENCE = late(r"^[ \t]*(?:```+|~~~+)[ \t]*(?![\w+-]{0,15}[ \t]*$)(\S.*)$", re.MULTILINE)
_BLANKS = late(r"\n{3,}")
_QUOTED = late(r"\s*(?:>|```|~~~| {4,}\S)|.*[\"“”`«»「].{3,}[\"“”`«»」]")


@lru_cache(maxsize=256)  # a dream looks at the same memories for each of its writes
def body_parts(body: str) -> tuple[tuple[Statement, str], ...]:
    """Every statement of a body with its place, and its text without Markdown. Nothing is left out: targets of links
    and text beside a fence count too."""
    found = [(one, plain(one.text)) for one in statements_in(body, with_code=True)]
    for fence in _FENCE.finditer(body):
        found.append((Statement(fence[1], fence.start(1), fence.end(1)), plain(fence[1])))
    return tuple(sorted(((one, bare) for one, bare in found if len(bare) > 1), key=lambda pair: pair[0].start))


def texts_of(topic: TopicFile) -> list[str]:
    """The statements of a memory, each once; its description, if it has no other."""
    texts = [bare for _, bare in body_parts(topic.body)] or filter(None, [topic.description])
    return list(dict.fromkeys(texts))


def plain(statement: str) -> str:
    """A statement without emphasis, code marks, and links to other memories."""
    bare = _LINK.sub(r"\1 \2", _MEMORY_LINK.sub(r"\1", statement))
    return strip_marks(bare)


def take_out(body: str, unwanted: Collection[str]) -> str:
    """The body without these statements (as `body_parts` gives them), and without lines that are empty then."""
    for one, bare in reversed(body_parts(body)):
        if bare not in unwanted:
            continue
        body = body[: one.start] + body[one.end :]
        start = body.rfind("\n", 0, one.start) + 1
        end = body.find("\n", one.start)
        end = len(body) if end < 0 else end
        rest = body[line_lead(body, start).end() : end] if line_lead(body, start).end() <= end else ""
        if not any(char.isalnum() for char in rest):
            body = body[:start] + body[min(end + 1, len(body)) :]
        elif not body[one.start : end].strip():
            body = body[: one.start].rstrip(" ") + body[end:]
    bare = _BLANKS.sub("\n\n", body).rstrip("\n")
    return f"{bare}\n" if bare else ""


def put_back(before: str, after: str, lost: Collection[str]) -> str:
    """The new body with statements of the old one, each after the line that it followed."""
    old, new = before.splitlines(), after.splitlines()
    folded = {fold_text(one) for one in lost}
    for at, line in enumerate(old):
        parts = body_parts(line)
        gone = [bare for _, bare in parts if fold_text(bare) in folded]
        if not gone:
            continue
        whole = line if len(gone) == len(parts) else " ".join(gone)
        place = next((new.index(old[up]) + 1 for up in range(at - 1, -1, -1) if old[up].strip() and old[up] in new), 0)
        if place and not line.lstrip().startswith(("-", "*", "+")) and new[place - 1].strip():
            new.insert(place, "")
            place += 1
        new.insert(place, whole)
        if place == 0 and len(new) > 1 and new[1].strip() and not whole.lstrip().startswith(("-", "*", "+")):
            new.insert(1, "")
    return "\n".join(new) + ("\n" if new else "")


def quote_lines(body: str, adopted: Collection[str]) -> str:
    """The body with these statements shown as quotations."""
    lines = body.splitlines()
    is_code = False
    for at, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        said = [bare for _, bare in body_parts(line)]
        if said and not is_code and all(one in adopted for one in said) and not _QUOTED.match(line):
            lines[at] = f"> {line.lstrip()}"
    return "\n".join(lines) + ("\n" if lines else "")


def first_words(text: str, most: int) -> str:
    """The beginning of a statement as a title."""
    words = text.split()
    cut: Sequence[str] = words[:most]
    return " ".join(cut).rstrip(" ,;:.。") if cut else text[:40]


def put_in_place(before: Sequence[str], lines: list[str], kept: Sequence[str]) -> list[str]:
    """The lines with earlier ones, each after the line that it followed."""
    for at, line in enumerate(before):
        if line in kept:
            place = next((lines.index(up) + 1 for up in reversed(before[:at]) if up.strip() and up in lines), 0)
            lines.insert(place, line)
    is_same = [line for line in lines if line.strip()] == [line for line in before if line.strip()]
    return list(before) if kept and is_same else lines


def lead_of(topic: TopicFile) -> str:
    """The first statement of a memory; its description if the body says nothing."""
    return next((bare for _, bare in body_parts(topic.body)), topic.description)


def new_statements(write: ProposedWrite) -> list[str]:
    """The statements of the text that were not in the file before, word for word."""
    before = {fold_statement(one) for one in statements_of(write.before or "")}
    return [one for one in statements_of(write.text or "") if fold_statement(one) not in before]
