"""Keeps what repeats a statement of a memory in step with it: the name, the description, the line of the index.

If a write replaces the statement that they repeat, code replaces them too, for every writer. What the writer changed
in the same write stays, and so does what the body still says. Texts in, texts out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from reverie.memory.index import entry_of, follow_change
from reverie.memory.note import DESCRIPTION_CHARACTERS, title_of
from reverie.memory.taxonomy import index_of, is_topic, pointer_of
from reverie.memory.topic_file import TopicFile, decode, encode
from reverie.text.cutting import shorten
from reverie.text.folding import fold_text
from reverie.text.sameness import denies, share
from reverie.text.sentences import statements, strip_marks
from reverie.text.words import content_terms

_ABOUT: Final = 0.25
"""The share of its words that a line must have from a statement to be about it."""


def follow_body(before: TopicFile, after: TopicFile) -> TopicFile:
    """The memory with a name and a description that fit its new body, where the writer left the old ones."""
    name = description = None
    if after.name == before.name and (now := find_news(after.name, before, after)):
        name = title_of(now)
    if after.description == before.description and (now := find_news(after.description, before, after)):
        description = shorten(now, DESCRIPTION_CHARACTERS)
    return after.with_changes(name=name, description=description) if name or description else after


def follow_topic(index: str, stood: str, name: str, before: bytes | None, data: bytes, hook: str = "") -> str:
    """The index after a topic file changed. `stood` is the index before: a line that is new in this change stays."""
    file, topic = pointer_of(name), TopicFile.parse(data)
    after = topic.name, topic.description
    if before is None:
        return follow_change(index, file, None, after, hook)
    old, own, was = TopicFile.parse(before), entry_of(index, file), entry_of(stood, file)
    if own and was and own.text == was.text and not hook and find_news(f"{own.title} {own.hook}", old, topic):
        hook = topic.description
    return follow_change(index, file, (old.name, old.description), after, hook)


def follow_found(
    was: Mapping[str, bytes], read: Callable[[str], bytes | None], *, keep_index: bool
) -> dict[str, bytes]:
    """What must follow after somebody changed files without us: the new heads and indexes. `was` has what these files
    said before. A line that has gone from the index stays away, and a text with a secret is not repeated."""
    from reverie.memory.secrets.scan import find_secrets

    followed = dict[str, bytes]()
    for name, before in was.items():
        data = read(name)
        if not is_topic(name) or data is None:
            continue
        topic = follow_body(TopicFile.parse(before), TopicFile.parse(data))
        if find_secrets(f"{topic.name}\n{topic.description}"):
            continue
        followed[name] = encode(topic.text)
        index = index_of(name)
        now = read(index) or b""
        text = decode(followed.get(index, now))
        if keep_index and entry_of(text, pointer_of(name)):
            stood = decode(was.get(index, now))
            followed[index] = encode(follow_topic(text, stood, name, before, followed[name]))
    return followed


def find_news(said: str, before: TopicFile, after: TopicFile) -> str:
    """The statement that a line about this memory should state now, because what it states was replaced; empty if the
    line still fits."""
    terms = content_terms(said)
    if before.body == after.body or not terms:
        return ""
    old, new = ([strip_marks(one) for one in statements(topic.body)] for topic in (before, after))
    known, there = set(map(fold_text, old)), set(map(fold_text, new))
    stated = max(old, key=lambda one: share(terms, content_terms(one)), default="")
    about = terms & content_terms(stated)
    if not new or fold_text(stated) in there or len(about) < _ABOUT * len(terms):
        return ""
    fresh = [one for one in new if fold_text(one) not in known]
    if fresh and fold_text(stated) in fold_text(fresh[0]):
        return ""  # it says the same and more
    # A statement that is quoted below its news ("Until May: …") is not what the memory says now.
    valid = [one for one in new if fold_text(stated) not in fold_text(one)]
    if not valid:
        return ""
    news = next((one for one in valid if one in fresh), valid[0])
    speaking = [one for one in valid if about & content_terms(one)]
    is_said = about <= frozenset[str]().union(*map(content_terms, valid))
    is_topic_only = " " not in said.strip()  # one word states nothing that could be denied
    is_turned = (
        bool(speaking) and not is_topic_only and all(denies(one, about) != denies(stated, about) for one in speaking)
    )
    return "" if is_said and not is_turned else news
