"""Checks the memory directory: dead pointers, duplicates, outdated, over-long or broken files, secrets. A finding with
one right answer carries a fix, and all chosen fixes become one version. A fix never loses text: what leaves the index
goes into the file. It judges form, not worth; checking changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path

from reverie.errors import ReverieError
from reverie.memory.changes import Change, WriteInfo
from reverie.memory.directory import Document, MemoryDirectory
from reverie.memory.index import (
    LINE_CHARACTERS,
    IndexEntry,
    entries,
    index_line,
    linked_files,
    load_index,
    unlink,
    with_entry,
    without_entry,
)
from reverie.memory.references import RepoFiles, named_files
from reverie.memory.taxonomy import INDEX, TEAM, MemoryType, index_of, pointer_of
from reverie.memory.topic_file import TopicFile
from reverie.quick import dataclass
from reverie.storage.history.versions import Version
from reverie.text.folding import fold_text
from reverie.text.sameness import COPIED, similarity
from reverie.text.words import content_terms

_FEWEST_WORDS = 8
_LENIENCE = 20  # the limit of a line is a rule of thumb
_RAREST = 8
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


Draft = dict[str, str | None]
"""The texts of all files while fixes are applied; None is a removed file."""


@dataclass(frozen=True, slots=True)
class Fix:
    """How to put a finding right. `what` is the end of the sentence `This would …`."""

    what: str
    apply: Callable[[Draft], None]


class Problem(StrEnum):
    """What can be wrong."""

    DEAD_POINTER = "dead pointer"
    ORPHAN = "orphan"
    DOUBLE_POINTER = "double pointer"
    LONG_LINE = "over-long line"
    INDEX_TOO_LARGE = "index too large"
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near-duplicate"
    STALE_REFERENCE = "stale reference"
    BROKEN_FRONTMATTER = "broken frontmatter"
    NO_TYPE = "no type"
    NO_DESCRIPTION = "no description"
    SECRET = "secret"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One thing that is wrong."""

    problem: Problem
    file: str
    message: str
    line: int | None = None
    fix: Fix | None = None


SecretCheck = Callable[[str], Sequence[str]]
"""Names the kinds of secrets in a text, never the secrets."""


def check(
    directory: MemoryDirectory, *, repo: Path | None = None, secrets: SecretCheck | None = None
) -> tuple[CheckFinding, ...]:
    """Everything found, by file. `repo` is where named files are looked for; without it no reference is stale."""
    documents: dict[str, Document] = {}
    found: list[CheckFinding] = []
    for entry in directory.list():
        try:
            documents[entry.name] = directory.read(entry.name)
        except ReverieError as error:
            found.append(CheckFinding(Problem.UNREADABLE, entry.name, str(error)))
    indexes = {name: directory.read(name).text for name in (INDEX, f"{TEAM}/{INDEX}") if directory.exists(name)}
    topics = {name: document.topic for name, document in documents.items()}
    for name, text in indexes.items():
        found += _index_findings(name, text, topics)
    found += _orphans(topics, indexes)
    repo_files = RepoFiles(repo, directory.root) if repo else None
    for name, topic in topics.items():
        found += _file_findings(name, topic)
        if repo_files:
            for missing in repo_files.missing(named_files(topic.text)):
                line = topic.text[: topic.text.index(missing)].count("\n") + 1
                message = f"names `{missing}`, which the repository does not have"
                found.append(CheckFinding(Problem.STALE_REFERENCE, name, message, line))
    found += _duplicates(documents, topics, indexes)
    if secrets:
        for name, text in ({name: topic.text for name, topic in topics.items()} | indexes).items():
            kinds = ", ".join(dict.fromkeys(secrets(text)))
            if kinds:
                message = f"holds what looks like a secret ({kinds}); `reverie memory purge` removes it everywhere"
                found.append(CheckFinding(Problem.SECRET, name, message))
    return tuple(sorted(found, key=lambda finding: (finding.file, finding.line or 0, finding.problem)))


def apply_fixes(directory: MemoryDirectory, findings: Iterable[CheckFinding], info: WriteInfo) -> Version | None:
    """Applies the fixes of these findings as one version; None if there is nothing to do. `ChangedUnderneath` if a file
    has changed since this began; then nothing is fixed."""
    fixes = [finding.fix for finding in findings if finding.fix]
    names = [*directory.names(), *(name for name in (INDEX, f"{TEAM}/{INDEX}") if directory.exists(name))]
    documents = {name: directory.read(name) for name in names}
    draft: Draft = {name: document.text for name, document in documents.items()}
    for fix in fixes:
        fix.apply(draft)
    changes = [
        Change(name, text, documents[name].digest if name in documents else None)
        for name, text in draft.items()
        if name not in documents or documents[name].text != text
    ]
    return directory.transaction(changes, info).version if changes else None


def _index_findings(name: str, text: str, topics: dict[str, TopicFile]) -> Iterator[CheckFinding]:
    folder = name.removesuffix(INDEX)
    seen: set[str] = set()
    for entry in entries(text):
        target = folder + entry.file
        if target not in topics:
            yield CheckFinding(
                Problem.DEAD_POINTER, name, f"points to {target}, which is missing", entry.line, _drop(name, entry)
            )
        elif entry.file in seen:
            fix = _drop_second(name, entry)
            yield CheckFinding(Problem.DOUBLE_POINTER, name, f"lists {target} a second time", entry.line, fix)
        elif len(entry.text) > LINE_CHARACTERS + _LENIENCE:
            message = f"has {len(entry.text)} characters for {target}; {LINE_CHARACTERS} are enough"
            fix = _shorten(name, entry, target)
            yield CheckFinding(Problem.LONG_LINE, name, message, entry.line, fix)
        seen.add(entry.file)
    for file in sorted(linked_files(text) - seen):
        if folder + file not in topics:
            fix = _rewrite(name, f"keep the words and drop the link to {file}", partial(unlink, file=file))
            yield CheckFinding(Problem.DEAD_POINTER, name, f"links to {folder}{file}, which is missing", None, fix)
    loaded = load_index(text)
    if loaded.fired:
        message = f"is over its limit of {loaded.fired} ({loaded.lines:,} lines, {loaded.bytes:,} bytes)"
        yield CheckFinding(Problem.INDEX_TOO_LARGE, name, f"{message}: the model does not see its end")


def _orphans(topics: dict[str, TopicFile], indexes: dict[str, str]) -> Iterator[CheckFinding]:
    linked = {index: linked_files(text) for index, text in indexes.items()}
    for name, topic in topics.items():
        index = index_of(name)
        if pointer_of(name) not in linked.get(index, frozenset()):
            fix = _add_line(index, name, topic)
            yield CheckFinding(Problem.ORPHAN, name, f"is not listed in {index}", None, fix)


def _file_findings(name: str, topic: TopicFile) -> Iterator[CheckFinding]:
    if topic.front.problems:
        repaired = topic.repair()
        fix = (
            None
            if repaired.front.problems
            else _change_topic(name, f"repair the frontmatter of {name}", TopicFile.repair)
        )
        yield CheckFinding(Problem.BROKEN_FRONTMATTER, name, "; ".join(topic.front.problems), None, fix)
    if topic.type is None:
        kind = MemoryType.read(name.rpartition("/")[2].partition("_")[0])
        what = f"give {name} the type in its name, {kind}"
        fix = _change_topic(name, what, lambda topic: topic.with_changes(type=kind)) if kind else None
        written = topic.fields.get("type")
        message = f"has the type {written[:40]!r}, which is unknown" if written else "has no type"
        yield CheckFinding(Problem.NO_TYPE, name, message, None, fix)
    if not topic.description:
        first = next((line.strip(" #*-\t\r") for line in topic.body.split("\n") if line.strip(" #*-\t\r")), "")
        what = f"describe {name} by its first line"
        fix = _change_topic(name, what, lambda topic: topic.with_changes(description=first[:150])) if first else None
        yield CheckFinding(
            Problem.NO_DESCRIPTION, name, "has no description, so recall finds it by its words alone", None, fix
        )


def _duplicates(
    documents: dict[str, Document], topics: dict[str, TopicFile], indexes: dict[str, str]
) -> Iterator[CheckFinding]:
    by_body: dict[str, list[str]] = {}
    for name, topic in topics.items():
        body = " ".join(topic.body.split())
        if body:
            by_body.setdefault(body, []).append(name)
    copies: set[str] = set()
    linked = {index: linked_files(text) for index, text in indexes.items()}
    for names in by_body.values():
        # The listed file stays, then the older one; a copy in the team's folder is another scope, not a duplicate.
        for scope in (True, False):
            own = [name for name in names if name.startswith(f"{TEAM}/") is scope]
            own.sort(
                key=lambda name: (pointer_of(name) not in linked.get(index_of(name), ()), documents[name].modified)
            )
            for copy in own[1:]:
                copies.add(copy)
                same = topics[copy].type == topics[own[0]].type
                fix = _remove(copy) if same else None
                yield CheckFinding(Problem.DUPLICATE, copy, f"says word for word what {own[0]} says", None, fix)
    texts = {name: f"{topic.description}\n{topic.body}" for name, topic in topics.items() if name not in copies}
    for one, other, share in near_duplicates(texts):
        yield CheckFinding(
            Problem.NEAR_DUPLICATE, one, f"shares {share:.0%} of its words with {other}; one of them may be enough"
        )


def near_duplicates(texts: dict[str, str]) -> Iterator[tuple[str, str, float]]:
    """Each pair of texts that share most of their words once. Compared only where they share a rare word."""
    words = {name: content_terms(text) for name, text in texts.items()}
    where: dict[str, list[str]] = {}
    for name, own in words.items():
        for word in own:
            where.setdefault(word, []).append(name)
    for name, own in words.items():
        if len(own) < _FEWEST_WORDS:
            continue
        rarest = sorted((word for word in own if len(where[word]) > 1), key=lambda word: (len(where[word]), word))
        others = {other for word in rarest[:_RAREST] for other in where[word][:100] if other > name}
        for other in sorted(others):
            share = similarity(own, words[other])
            if share >= COPIED:
                yield name, other, share


def _rewrite(name: str, what: str, change: Callable[[str], str]) -> Fix:
    def apply(draft: Draft) -> None:
        text = draft.get(name)
        if text is not None:  # an earlier fix may have removed it
            draft[name] = change(text)

    return Fix(what, apply)


def _change_topic(name: str, what: str, change: Callable[[TopicFile], TopicFile]) -> Fix:
    return _rewrite(name, what, lambda text: change(TopicFile.parse(text)).text)


def _drop(index: str, entry: IndexEntry) -> Fix:
    what = f"take the line for {entry.file} out of {index}"
    return _rewrite(index, what, lambda text: without_entry(text, entry.file))


def _drop_second(index: str, entry: IndexEntry) -> Fix:
    def without(text: str) -> str:
        lines = _LINES.findall(text)
        same = [number for number, line in enumerate(lines) if line.rstrip("\r\n") == entry.text]
        if same:
            del lines[same[-1]]
        return "".join(lines)

    return _rewrite(index, f"take the second line for {entry.file} out of {index}", without)


def _shorten(index: str, entry: IndexEntry, target: str) -> Fix:
    """Moves the words of a long line into the file; the line keeps their beginning."""

    def apply(draft: Draft) -> None:
        text, listed = draft.get(target), draft.get(index)
        if text is None or listed is None:
            return
        topic = TopicFile.parse(text)
        if fold_text(entry.hook) not in fold_text(topic.text):
            draft[target] = topic.with_changes(body=f"{topic.body.rstrip()}\n\n{entry.hook}\n").text
        if len(index_line(entry.title, entry.file, entry.hook)) < len(entry.text):
            draft[index] = with_entry(listed, entry.file, entry.title, entry.hook)

    return Fix(f"shorten the line for {entry.file} and keep its words in {target}", apply)


def _add_line(index: str, name: str, topic: TopicFile) -> Fix:
    def apply(draft: Draft) -> None:
        if draft.get(name) is not None:
            title = topic.name or pointer_of(name).removesuffix(".md")
            draft[index] = with_entry(draft.get(index) or "", pointer_of(name), title, topic.description)

    return Fix(f"add a line for {name} to {index}", apply)


def _remove(name: str) -> Fix:
    def apply(draft: Draft) -> None:
        draft[name] = None
        index = index_of(name)
        draft[index] = without_entry(draft.get(index) or "", pointer_of(name))

    return Fix(f"remove {name} and its line", apply)
