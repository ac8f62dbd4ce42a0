"""The statements of a memory's body, and how one is changed in its file while the rest keeps its bytes.

Pure: texts in, texts out.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from reverie.memory.topic_file import TopicFile
from reverie.text.sentences import Statement, lead_of, statements_in


@lru_cache(maxsize=2_048)
def body_statements(file_text: str) -> tuple[Statement, ...]:
    """The statements of a topic file's body, placed in the file's text."""
    return tuple(statements_in(file_text, len(file_text) - len(TopicFile.parse(file_text).body)))


def replace_statement(file_text: str, one: Statement, new: str) -> str:
    """Replaces one statement of a file."""
    return file_text[: one.start] + new + file_text[one.end :]


def with_lines(file_text: str, lines: Iterable[str]) -> str:
    """The file with plain lines after the statements that open its body, before Why and How to apply."""
    new = "".join(f"{line}\n" for line in lines)
    if not new:
        return file_text
    if not file_text.endswith("\n"):
        file_text += "\n"
    standing = body_statements(file_text)
    labelled = next((number for number, one in enumerate(standing) if one.label), len(standing))
    if labelled == 0:
        at = _line_start(file_text, standing[0].start) if standing else len(file_text)
        return file_text[:at] + new + ("\n" if standing else "") + file_text[at:]
    end = file_text.find("\n", standing[labelled - 1].end) + 1
    return file_text[:end] + new + file_text[end:]


def with_labelled(file_text: str, label_line: str, label: str, said: str) -> str:
    """The file with a statement at a label: after the existing ones, or as a new line at the end."""
    own = [one for one in body_statements(file_text) if one.label == label]
    if own:
        last = own[-1]
        gap = "" if last.text.endswith((".", "!", "?", "。", "！", "？")) else "."
        return file_text[: last.end] + f"{gap} {said[:1].upper()}{said[1:]}" + file_text[last.end :]
    has_labels = any(one.label for one in body_statements(file_text))
    return f"{file_text.rstrip()}\n{'' if has_labels else chr(10)}{label_line}{said}\n"


def label_of_line(file_text: str, one: Statement) -> str:
    """The label in front of a statement, as it is written: `**Why:** `."""
    start = _line_start(file_text, one.start)
    return lead_of(file_text, start)["label"] or ""


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1
