"""The sections of the notes: split by the template's headings, checked, repaired, measured and cut. Pure.

A heading is a line of the template that begins with `#`; an italic line below it is its hint. Everything else is text
of its section, even lines that look like headings.
"""

from __future__ import annotations

import re

from reverie.models.tokens import estimate_text
from reverie.quick import dataclass

_HEADING = re.compile(r"#{1,3} \S")
_ITALIC = re.compile(r"([_*])\s*+\S.*\1$")
CUT = "[… the rest of this section is in {path}]"


@dataclass(frozen=True, slots=True)
class NoteSection:
    """One section: its heading line, its hint (may be empty) and its text."""

    heading: str
    hint: str
    body: str = ""

    @property
    def text(self) -> str:
        head = f"{self.heading}\n{self.hint}\n" if self.hint else f"{self.heading}\n"
        return f"{head}\n{self.body}\n" if self.body else head


def outline(template: str) -> list[NoteSection]:
    """Returns the empty sections of a template in order; none if it has no heading."""
    lines = template.splitlines()
    found = list[NoteSection]()
    for at, line in enumerate(lines):
        if _HEADING.match(line):
            following = next((other.strip() for other in lines[at + 1 : at + 3] if other.strip()), "")
            found.append(NoteSection(line.strip(), following if _ITALIC.match(following) else ""))
    return found


def split(notes: str, template: str) -> list[NoteSection]:
    """Splits the notes by the template's sections. A missing heading becomes an empty section; no text is lost."""
    empty = outline(template)
    bodies: dict[str, list[str]] = {section.heading: [] for section in empty}
    hints = {section.hint for section in empty if section.hint}
    at = empty[0].heading if empty else ""
    for line in notes.splitlines():
        if line.strip() in bodies:
            at = line.strip()
        elif line.strip() not in hints:
            bodies.setdefault(at, []).append(line)
    return [NoteSection(s.heading, s.hint, "\n".join(bodies[s.heading]).strip("\n").rstrip()) for s in empty]


def repair_notes(notes: str, template: str) -> str:
    """Returns the notes with every heading and hint of the template in its place."""
    return "\n".join(section.text for section in split(notes, template))


def is_intact(notes: str, template: str) -> bool:
    """Returns whether every heading is there once, in order, with its hint below it."""
    lines = [line.strip() for line in notes.splitlines() if line.strip()]
    at = -1
    for section in outline(template):
        if lines.count(section.heading) != 1 or lines.index(section.heading) <= at:
            return False
        at = lines.index(section.heading)
        if section.hint and lines[at + 1 : at + 2] != [section.hint]:
            return False
    return True


def is_empty(notes: str, template: str) -> bool:
    """Returns whether nothing was written yet: the notes are the template."""
    untouched = {section.heading: section.body for section in split(template, template)}
    return all(section.body in ("", untouched[section.heading]) for section in split(notes, template))


def over_limit(notes: str, template: str, *, section_tokens: int, total_tokens: int) -> list[str]:
    """Returns one line for each thing that is too long."""
    found = list[str]()
    total = 0
    for section in split(notes, template):
        tokens = estimate_text(section.body)
        total += tokens
        if tokens > section_tokens:
            name = section.heading.lstrip("# ")
            found.append(f'- "{name}" is about {tokens:,} tokens long; at most {section_tokens:,}.')
    if total > total_tokens:
        found.append(f"- All sections together are about {total:,} tokens long; at most {total_tokens:,}.")
    return found


def shorten_sections(notes: str, template: str, *, characters: int, path: str) -> str:
    """Cuts every section that is too long at the end of a line, with a marker."""
    out = list[str]()
    for section in split(notes, template):
        body = section.body
        if len(body) > characters:
            cut = body[:characters]
            newline = cut.rfind("\n")
            body = (cut[:newline] if newline > characters // 2 else cut).rstrip() + "\n" + CUT.format(path=path)
        out.append(NoteSection(section.heading, section.hint, body).text)
    return "\n".join(out)
