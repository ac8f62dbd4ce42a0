"""What can be put right in the memory directory without asking what is meant: each fix a small change of the texts.

A fix works on a draft of all texts, so that many can be applied one after the other and land together. None of them
loses a word: what leaves the index goes into the file, and what is removed stands elsewhere, word for word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from reverie.memory.index import IndexEntry, index_line, unlinked, with_entry, without_entry
from reverie.memory.taxonomy import MemoryType, index_of, pointer_of
from reverie.memory.topic_file import TopicFile
from reverie.text.folding import plain

Draft = dict[str, str | None]
"""The texts of all files while fixes are applied; None is a removed file."""

_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Fix:
    """What would put a finding right."""

    what: str
    """The end of the sentence `This would …`."""
    apply: Callable[[Draft], None]


def _rewriting(name: str, what: str, change: Callable[[str], str]) -> Fix:
    def apply(draft: Draft) -> None:
        text = draft.get(name)
        if text is not None:  # an earlier fix may have removed it
            draft[name] = change(text)

    return Fix(what, apply)


def drop_pointer(index: str, file: str) -> Fix:
    """For a line whose file is gone."""
    return _rewriting(index, f"take the line for {file} out of {index}", lambda text: without_entry(text, file))


def unlink_prose(index: str, file: str) -> Fix:
    """For a sentence that links to what is gone."""
    return _rewriting(index, f"keep the words and drop the link to {file}", lambda text: unlinked(text, file))


def drop_line(index: str, entry: IndexEntry) -> Fix:
    """For a second line that lists the same file; its hook goes with it."""

    def without(text: str) -> str:
        lines = _LINES.findall(text)
        same = [number for number, line in enumerate(lines) if line.rstrip("\r\n") == entry.text]
        if same:
            del lines[same[-1]]
        return "".join(lines)

    return _rewriting(index, f"take the second line for {entry.file} out of {index}", without)


def shorten_line(index: str, entry: IndexEntry, target: str) -> Fix:
    """For a line that is too long: its words move into the file, the line keeps their beginning."""

    def apply(draft: Draft) -> None:
        text, listed = draft.get(target), draft.get(index)
        if text is None or listed is None:
            return
        topic = TopicFile.parse(text)
        short = index_line(entry.title, entry.file, entry.hook)
        if plain(entry.hook) not in plain(topic.text):
            draft[target] = topic.updated(body=f"{topic.body.rstrip()}\n\n{entry.hook}\n").text
        if len(short) < len(entry.text):
            draft[index] = with_entry(listed, entry.file, entry.title, entry.hook)

    return Fix(f"shorten the line for {entry.file} and keep its words in {target}", apply)


def add_line(index: str, name: str, topic: TopicFile) -> Fix:
    """For a file that no index lists."""

    def apply(draft: Draft) -> None:
        if draft.get(name) is not None:
            title = topic.name or pointer_of(name).removesuffix(".md")
            draft[index] = with_entry(draft.get(index) or "", pointer_of(name), title, topic.description)

    return Fix(f"add a line for {name} to {index}", apply)


def repair_head(name: str) -> Fix:
    """For frontmatter that is no YAML."""
    return _rewriting(name, f"put the frontmatter of {name} right", lambda text: TopicFile.parse(text).repaired().text)


def give_type(name: str, kind: MemoryType) -> Fix:
    """For a file without a type whose name says it."""
    what = f"give {name} the type its name says, {kind}"
    return _rewriting(name, what, lambda text: TopicFile.parse(text).updated(type=kind).text)


def describe(name: str, line: str) -> Fix:
    """For a file without a description."""
    what = f"describe {name} by its first line"
    return _rewriting(name, what, lambda text: TopicFile.parse(text).updated(description=line[:150]).text)


def remove_file(name: str) -> Fix:
    """For a copy."""

    def apply(draft: Draft) -> None:
        draft[name] = None
        index = index_of(name)
        draft[index] = without_entry(draft.get(index) or "", pointer_of(name))

    return Fix(f"remove {name} and its line", apply)
