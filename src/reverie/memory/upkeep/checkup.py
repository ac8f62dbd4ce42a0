"""Looks the memory directory over: what points nowhere, stands twice, is out of date, too long, broken, or secret.

Every finding says what is wrong and where; those with one right answer carry a fix, and all chosen fixes land as one
version. It judges form, not worth: merging and rewording is for dreaming and for people. Looking changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from reverie.errors import ReverieError
from reverie.memory.changes import Change, WriteInfo
from reverie.memory.directory import Document, MemoryDirectory
from reverie.memory.index import LINE_CHARACTERS, entries, linked_files, load_index
from reverie.memory.references import RepoFiles, named_files
from reverie.memory.taxonomy import INDEX, TEAM, MemoryType, index_of, pointer_of
from reverie.memory.topic_file import TopicFile
from reverie.memory.upkeep.checkup_fixes import (
    Draft,
    Fix,
    add_line,
    describe,
    drop_line,
    drop_pointer,
    give_type,
    remove_file,
    repair_head,
    shorten_line,
    unlink_prose,
)
from reverie.storage.history.versions import Version
from reverie.text.sameness import COPIED, likeness
from reverie.text.words import content_terms

_FEWEST_WORDS = 8
_LENIENCE = 20  # the limit of a line is a rule of thumb
_RAREST = 8


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
class Finding:
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
) -> tuple[Finding, ...]:
    """Everything found, by file. `repo` is where named files are looked for; without it none is stale."""
    documents: dict[str, Document] = {}
    found: list[Finding] = []
    for entry in directory.list():
        try:
            documents[entry.name] = directory.read(entry.name)
        except ReverieError as error:
            found.append(Finding(Problem.UNREADABLE, entry.name, str(error)))
    indexes = {name: directory.read(name).text for name in (INDEX, f"{TEAM}/{INDEX}") if directory.exists(name)}
    topics = {name: document.topic for name, document in documents.items()}
    for name, text in indexes.items():
        found += _index_findings(name, text, topics)
    found += _orphans(topics, indexes)
    repo_files = RepoFiles(repo) if repo else None
    for name, topic in topics.items():
        found += _file_findings(name, topic)
        if repo_files:
            found += _stale(name, topic.text, repo_files)
    found += _duplicates(documents, topics, indexes)
    if secrets:
        for name, text in ({name: topic.text for name, topic in topics.items()} | indexes).items():
            kinds = ", ".join(dict.fromkeys(secrets(text)))
            if kinds:
                message = f"holds what looks like a secret ({kinds}); `reverie memory purge` takes it out everywhere"
                found.append(Finding(Problem.SECRET, name, message))
    return tuple(sorted(found, key=lambda finding: (finding.file, finding.line or 0, finding.problem)))


def apply_fixes(directory: MemoryDirectory, findings: Iterable[Finding], info: WriteInfo) -> Version | None:
    """Carries out the fixes of these findings as one version; None if there is nothing to do.

    `ChangedUnderneath` if a file has changed since this began; then nothing is fixed.
    """
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
    return directory.transaction(changes, info) if changes else None


def _index_findings(name: str, text: str, topics: dict[str, TopicFile]) -> Iterator[Finding]:
    folder = name.removesuffix(INDEX)
    seen: set[str] = set()
    for entry in entries(text):
        target = folder + entry.file
        if target not in topics:
            fix = drop_pointer(name, entry.file)
            yield Finding(Problem.DEAD_POINTER, name, f"points to {target}, which is not there", entry.line, fix)
        elif entry.file in seen:
            fix = drop_line(name, entry)
            yield Finding(Problem.DOUBLE_POINTER, name, f"lists {target} a second time", entry.line, fix)
        elif len(entry.text) > LINE_CHARACTERS + _LENIENCE:
            message = f"has {len(entry.text)} characters for {target}; {LINE_CHARACTERS} are enough"
            fix = shorten_line(name, entry, target)
            yield Finding(Problem.LONG_LINE, name, message, entry.line, fix)
        seen.add(entry.file)
    for file in sorted(linked_files(text) - seen):
        if folder + file not in topics:
            fix = unlink_prose(name, file)
            yield Finding(Problem.DEAD_POINTER, name, f"links to {folder}{file}, which is not there", None, fix)
    loaded = load_index(text)
    if loaded.fired:
        message = f"is over its limit of {loaded.fired} ({loaded.lines:,} lines, {loaded.bytes:,} bytes)"
        yield Finding(Problem.INDEX_TOO_LARGE, name, f"{message}: the model does not see its end")


def _orphans(topics: dict[str, TopicFile], indexes: dict[str, str]) -> Iterator[Finding]:
    linked = {index: linked_files(text) for index, text in indexes.items()}
    for name, topic in topics.items():
        index = index_of(name)
        if pointer_of(name) not in linked.get(index, frozenset()):
            fix = add_line(index, name, topic)
            yield Finding(Problem.ORPHAN, name, f"is not listed in {index}", None, fix)


def _file_findings(name: str, topic: TopicFile) -> Iterator[Finding]:
    if topic.front.problems:
        repaired = topic.repaired()
        fix = None if repaired.front.problems else repair_head(name)
        yield Finding(Problem.BROKEN_FRONTMATTER, name, "; ".join(topic.front.problems), None, fix)
    if topic.type is None:
        kind = MemoryType.read(name.rpartition("/")[2].partition("_")[0])
        fix = give_type(name, kind) if kind else None
        written = topic.fields.get("type")
        message = f"has the type {written[:40]!r}, which is none" if written else "has no type"
        yield Finding(Problem.NO_TYPE, name, message, None, fix)
    if not topic.description:
        first = next((line.strip(" #*-\t\r") for line in topic.body.split("\n") if line.strip(" #*-\t\r")), "")
        fix = describe(name, first) if first else None
        yield Finding(
            Problem.NO_DESCRIPTION, name, "has no description, so recall finds it by its words alone", None, fix
        )


def _stale(name: str, text: str, repo_files: RepoFiles) -> Iterator[Finding]:
    for missing in repo_files.missing(named_files(text)):
        line = text[: text.index(missing)].count("\n") + 1
        yield Finding(Problem.STALE_REFERENCE, name, f"names `{missing}`, which the repository does not have", line)


def _duplicates(
    documents: dict[str, Document], topics: dict[str, TopicFile], indexes: dict[str, str]
) -> Iterator[Finding]:
    by_body: dict[str, list[str]] = {}
    for name, topic in topics.items():
        body = " ".join(topic.body.split())
        if body:
            by_body.setdefault(body, []).append(name)
    copies: set[str] = set()
    linked = {index: linked_files(text) for index, text in indexes.items()}
    for names in by_body.values():
        # The one that is listed stays, then the older one; a copy in the team's folder is another scope, not a double.
        for scope in (True, False):
            own = [name for name in names if name.startswith(f"{TEAM}/") is scope]
            own.sort(
                key=lambda name: (pointer_of(name) not in linked.get(index_of(name), ()), documents[name].modified)
            )
            for copy in own[1:]:
                copies.add(copy)
                same = topics[copy].type == topics[own[0]].type
                fix = remove_file(copy) if same else None
                yield Finding(Problem.DUPLICATE, copy, f"says word for word what {own[0]} says", None, fix)
    texts = {name: f"{topic.description}\n{topic.body}" for name, topic in topics.items() if name not in copies}
    for one, other, share in near_doubles(texts):
        yield Finding(Problem.NEAR_DUPLICATE, one, f"shares {share:.0%} of its words with {other}; one of them may do")


def near_doubles(texts: dict[str, str]) -> Iterator[tuple[str, str, float]]:
    """Pairs of texts that share most of their words; each pair once. Compared only where they share a rare word."""
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
            share = likeness(own, words[other])
            if share >= COPIED:
                yield name, other, share
