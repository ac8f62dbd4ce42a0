"""What can be put in order without a mind, for those who dream without a model: the index, and copies of files.

Applies the check-up's fixes that lose no word, and joins a file with another that says the same and a little more. It
rewords nothing, takes nothing out that stands nowhere else, and leaves every judgement to a model or a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.loss import loss, statements
from reverie.memory.checkup import Problem, check
from reverie.memory.checkup_fixes import Draft
from reverie.memory.directory import MemoryDirectory
from reverie.memory.index import LINE_CHARACTERS, long_entries, with_entry, without_entry
from reverie.memory.taxonomy import INDEX, TEAM, index_of, is_topic, pointer_of
from reverie.memory.topic_file import TopicFile, decode, encode

_FIXED: Final = (
    Problem.DUPLICATE,
    Problem.DEAD_POINTER,
    Problem.DOUBLE_POINTER,
    Problem.LONG_LINE,
    Problem.ORPHAN,
)
_SAME: Final = 0.6
"""The part of a file's statements that another must hold, word for word, to be taken for a copy of it."""


def tidy(copy: MemoryCopy) -> str:
    """Puts the copy in order and says, as a model would, what was done to which file."""
    said: dict[str, list[str]] = {}
    _join_copies(copy, said)
    _drafted(copy, lambda draft: _shorten_known(draft, said))
    findings = check(MemoryDirectory.open(copy.folder, gate=lambda _write: None))

    def fix(draft: Draft) -> None:
        for finding in sorted(findings, key=lambda one: one.problem is not Problem.DUPLICATE):
            if finding.fix is not None and finding.problem in _FIXED:
                finding.fix.apply(draft)
                said.setdefault(finding.file, []).append(finding.message)

    _drafted(copy, fix)
    changed = {one.name for one in copy.changes()}
    lines = [f"- {name}: {'; '.join(dict.fromkeys(what))}" for name, what in said.items() if name in changed]
    return "\n".join(lines) or "Nothing had to be changed."


def _drafted(copy: MemoryCopy, change: Callable[[Draft], None]) -> None:
    """Has all files changed as one draft, and puts what differs into the copy."""
    before: Draft = {name: decode(data) for name, data in copy.files().items()}
    draft = dict(before)
    change(draft)
    for name, text in draft.items():
        if text != before.get(name):
            copy.write(name, None if text is None else encode(text))


def _shorten_known(draft: Draft, said: dict[str, list[str]]) -> None:
    """Shortens index lines that only repeat what their file says; the others are left to the check-up's fix."""
    for index in (INDEX, f"{TEAM}/{INDEX}"):
        folder = index.removesuffix(INDEX)
        for entry in long_entries(draft.get(index) or "", LINE_CHARACTERS):
            text = draft.get(folder + entry.file)
            topic = TopicFile.parse(text or "")
            if text is None or loss({"line.md": entry.hook}, {"file.md": f"{topic.description}\n{topic.body}"}).lost:
                continue
            draft[index] = with_entry(draft[index] or "", entry.file, entry.title, topic.description)
            said.setdefault(index, []).append(f"the line for {entry.file} was too long")


def _join_copies(copy: MemoryCopy, said: dict[str, list[str]]) -> None:
    """Joins files most of whose statements are the same, word for word; what only one has goes into the other."""
    texts = {name: decode(data) for name, data in copy.files().items() if is_topic(name)}
    held = {name: {_plain(one): one for one in statements(text)} for name, text in texts.items()}
    gone: set[str] = set()
    ordered = sorted(texts, key=lambda one: (len(one), one))
    for name, other in ((one, two) for at, one in enumerate(ordered) for two in ordered[at + 1 :]):
        if not {name, other} & gone and _alike(name, other, texts, held):
            extra = [text for plain, text in held[other].items() if plain not in held[name]]
            topic = TopicFile.parse(texts[name])
            if extra:
                added = "".join(f"{line}\n" for line in _lines(texts[other], extra))
                texts[name] = topic.updated(body=f"{topic.body.rstrip()}\n{added}").text
                copy.write(name, encode(texts[name]))
                held[name] |= {_plain(text): text for text in extra}
            copy.write(other, None)
            index = copy.read(index_of(other))
            if index is not None:
                shorter = without_entry(decode(index), pointer_of(other))
                copy.write(index_of(other), encode(shorter))
            gone.add(other)
            said.setdefault(name, []).append(f"joined with {other}")
            said.setdefault(other, []).append(f"joined into {name}")


def _alike(name: str, other: str, texts: Mapping[str, str], held: Mapping[str, Mapping[str, str]]) -> bool:
    if name == other or name.startswith(f"{TEAM}/") != other.startswith(f"{TEAM}/"):
        return False
    same = held[name].keys() & held[other].keys()
    smaller = min(len(held[name]), len(held[other]))
    is_one_kind = TopicFile.parse(texts[name]).type == TopicFile.parse(texts[other]).type
    return is_one_kind and smaller >= 2 and len(same) >= _SAME * max(len(held[name]), len(held[other]))


def _lines(text: str, wanted: list[str]) -> list[str]:
    """The lines of a file that hold these statements, as they stand there."""
    plain = [_plain(one) for one in wanted]
    body = TopicFile.parse(text).body.splitlines()
    found = [line for line in body if any(one in _plain(line) for one in plain)]
    missing = [one for one in wanted if not any(_plain(one) in _plain(line) for line in found)]
    return [*found, *missing]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
