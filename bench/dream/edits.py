"""The edits that the checks of a scenario ask for: what a mind would do that knows the answers.

Joins copies, removes disproved statements, writes dates out, adds missing statements from where they were said, and
updates the index. It only works on texts; see `minds.py` for the dream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path

from bench.dream.score import holds, lists_of, survives, texts_of
from bench.scratch import memory_files, memory_texts
from reverie.memory.index import LINE_CHARACTERS, MAX_BYTES, MAX_LINES, entries, with_entry
from reverie.memory.taxonomy import INDEX, TEAM, MemoryType, index_of, is_index, is_log, is_topic, pointer_of
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.offline.consolidate.relative_dates import write_out_dates
from reverie.quick import dataclass
from reverie.storage.transcript.file import read_records
from reverie.text.sentences import statements
from reverie.text.words import content_terms
from reverie.types import JsonObject, TextBlock, ToolResultBlock

_INDEXES = (INDEX, f"{TEAM}/{INDEX}")


@dataclass(frozen=True, slots=True)
class Statement:
    """A text and its day; `about`: the file that it is about, for a line of an index."""

    text: str
    day: date
    about: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """A scenario as texts: its files and their days, what users typed, and the results of tools."""

    check: JsonObject = field(hash=False)
    before: Mapping[str, str] = field(hash=False)
    days: Mapping[str, date] = field(hash=False)
    now: date
    typed: tuple[Statement, ...]
    foreign: tuple[str, ...]

    @property
    def gone(self) -> list[str]:
        return texts_of(self.check, "must_be_gone")

    @property
    def untouched(self) -> frozenset[str]:
        return frozenset(texts_of(self.check, "untouched"))

    def topics(self) -> dict[str, str]:
        return {name: text for name, text in self.before.items() if is_topic(name)}


def read_scene(memory: Path, transcripts: Path, now: datetime, check: JsonObject) -> Scene:
    """Reads a scenario from its folders."""
    files = memory_files(memory)
    typed, foreign = list[Statement](), list[str]()
    for path in sorted(transcripts.glob("*.jsonl")):
        for record in read_records(path).records:
            for block in record.message.content if record.message is not None else ():
                if isinstance(block, TextBlock) and block.origin.is_users:
                    typed.append(Statement(block.text, _day(record.timestamp, now)))
                elif isinstance(block, ToolResultBlock):
                    foreign.append(block.text)
    return Scene(
        check=check,
        before=memory_texts(memory),
        days={name: datetime.fromtimestamp(path.stat().st_mtime, UTC).date() for name, path in files.items()},
        now=now.date(),
        typed=tuple(typed),
        foreign=tuple(foreign),
    )


def _day(timestamp: str | None, now: datetime) -> date:
    try:
        return datetime.fromisoformat(timestamp or "").date()
    except ValueError:
        return now.date()


@dataclass(slots=True)
class EditedMemory:
    """The files after the edits."""

    after: dict[str, str]

    def changes(self, before: Mapping[str, str]) -> dict[str, str]:
        """The files that differ, with an empty text for a removed one."""
        names = [*before, *(name for name in self.after if name not in before)]
        return {name: self.after.get(name, "") for name in names if self.after.get(name, "") != before.get(name)}


def right_edits(scene: Scene, *, count_from: date | None = None) -> EditedMemory:
    """All edits that the checks ask for. `count_from`: the wrong day for relative dates, for a mind that errs."""
    return EditedMemory(dict(_edited(scene, count_from)))


@lru_cache(maxsize=64)
def _edited(scene: Scene, count_from: date | None) -> Mapping[str, str]:
    """Worked out once per scenario: every wrong mind begins with the right edits."""
    work = _Editor(scene, count_from)
    work.write_dates_out()
    work.join_copies()
    work.remove_disproved()
    work.add_missing()
    work.update_indexes()
    return work.after


class _Editor:
    def __init__(self, scene: Scene, count_from: date | None) -> None:
        self._scene = scene
        self._count_from = count_from
        self.after = dict(scene.before)

    def _free(self) -> list[str]:
        return [name for name in self.after if is_topic(name) and name not in self._scene.untouched]

    def _is_gone(self, text: str) -> bool:
        return any(holds(text, one) for one in self._scene.gone)

    def _is_relative(self, text: str) -> bool:
        return write_out_dates(text, self._scene.now) != text

    def write_dates_out(self) -> None:
        for name in self._free():
            self.after[name] = write_out_dates(self.after[name], self._count_from or self._scene.days[name])

    def join_copies(self) -> None:
        """Joins files into the newest one whose head is not disproved."""
        for group in lists_of(self._scene.check, "merged"):
            there = [name for name in group if name in self.after]
            if len(there) < 2:
                continue
            kept = max(there, key=lambda name: (not self._is_gone(_head(self.after[name])), self._scene.days[name]))
            for name in there:
                if name != kept:
                    self._move_text(name, kept)

    def _move_text(self, name: str, into: str) -> None:
        """Moves what only this file says into another; of a disproved file only what the checks name."""
        disproved = self._is_gone(_head(self.after[name]))
        body = TopicFile.parse(self.after[into]).body
        for line in filter(None, map(str.strip, TopicFile.parse(self.after[name]).body.splitlines())):
            if _KnownText([body]).has(line) or self._is_gone(line):
                continue
            if not disproved or self._is_needed(line, without=name):
                body = f"{body.rstrip()}\n{line}\n"
        self.after[into] = TopicFile.parse(self.after[into]).with_changes(body=body).text
        del self.after[name]

    def _is_needed(self, line: str, *, without: str) -> bool:
        """Whether a check names something that only this line says."""
        others = [text for name, text in self.after.items() if is_topic(name) and name != without]
        return any(
            any(holds(line, one) for one in term.split("|")) and not survives([term], others)
            for terms in lists_of(self._scene.check, "must_survive")
            for term in terms
        )

    def remove_disproved(self) -> None:
        """Removes disproved statements from the bodies; `add_missing` changes the heads."""
        for name in self._free():
            topic = TopicFile.parse(self.after[name])
            lines = topic.body.splitlines(keepends=True)
            kept = [line for line in lines if not self._is_gone(line)]
            if kept != lines:
                self.after[name] = topic.with_changes(body="".join(kept)).text

    def add_missing(self) -> None:
        wanted = [
            *lists_of(self._scene.check, "must_survive"),
            *([one] for one in texts_of(self._scene.check, "dates")),
        ]
        while missing := [terms for terms in wanted if not survives(terms, self._topics())]:
            found = self._find_statement(missing)
            if found is None:
                break
            self._add(found, missing)
        for name in self._free():
            topic = TopicFile.parse(self.after[name])
            if self._is_gone(topic.description):
                first = next(iter(statements(topic.body)), topic.name)
                self.after[name] = topic.with_changes(description=_cut(first, LINE_CHARACTERS)).text

    def _topics(self) -> list[str]:
        return [text for name, text in self.after.items() if is_topic(name)]

    def _find_statement(self, missing: Sequence[Sequence[str]]) -> Statement | None:
        """The statement with most of what is missing, in the fewest words."""
        terms = [term.split("|") for one in missing for term in one]
        best: tuple[int, int, str, Statement] | None = None
        known = _KnownText(self._topics())
        for piece in self._statements():
            text = piece.text
            count = sum(any(holds(text, one) for one in term) for term in terms)
            if count and not self._is_gone(text) and not known.has_exactly(text):
                found = (-count, len(text), text, piece)
                best = found if best is None or found[:3] < best[:3] else best
        return best[3] if best is not None else None

    def _statements(self) -> Iterable[Statement]:
        """Lines and single sentences that were typed, logged or in the index, with dates written out."""
        scene = self._scene
        said = list(scene.typed)
        said += [Statement(text, scene.days[name]) for name, text in scene.before.items() if is_log(name)]
        said += [
            piece for name, text in scene.before.items() if is_index(name) for piece in _hooks(text, scene.days[name])
        ]
        for one in said:
            for line in one.text.splitlines():
                for text in (line, *statements(line)):
                    plain = write_out_dates(_strip_marks(text), self._count_from or one.day)
                    if plain:
                        yield Statement(plain, one.day, one.about)

    def _add(self, said: Statement, missing: Sequence[Sequence[str]]) -> None:
        """Adds a statement to the file that it completes or that has the same subject, or to a new file."""
        piece = said.text
        words = content_terms(piece)

        def fits(name: str) -> tuple[int, bool, int]:
            text = self.after[name]
            whole = sum(survives(terms, [f"{text}\n{piece}"]) for terms in missing if not survives(terms, [piece]))
            return whole, name == said.about, len(words & content_terms(text))

        near = {name: fits(name) for name in self._free()}
        best = max(near, key=lambda name: (near[name], name), default=None)
        if best is not None and (any(near[best]) or self._scene.check.get("no_new_files")):
            self.after[best] = add_line(self.after[best], piece)
            return
        title = " ".join(piece.split()[:6]).strip(".,:;")
        name = f"project_note_{len(self.after)}.md"
        self.after[name] = TopicFile.new(
            name=title, description=_cut(piece, LINE_CHARACTERS), type=MemoryType.PROJECT, body=f"{piece}\n"
        ).text

    def update_indexes(self) -> None:
        for index in _INDEXES:
            own = [name for name in self.after if is_topic(name) and index_of(name) == index]
            if index not in self._scene.untouched and (own or index in self.after):
                self.after[index] = self._update_index(self.after.get(index, ""), own)

    def _update_index(self, text: str, own: Sequence[str]) -> str:
        listed = entries(text)
        files = [entry.file for entry in listed]
        links = {pointer_of(name): name for name in own}
        lines = text.splitlines()
        loose = [line for line in lines if line.strip() and not line.startswith("#")]
        is_right = (
            sorted(files) == sorted(links)
            and len(loose) == len(files)
            and not any(self._is_gone(line) or self._is_relative(line) for line in lines)
            and all(len(line) <= LINE_CHARACTERS for line in lines)
            and len(lines) <= MAX_LINES
            and len(text.encode()) <= MAX_BYTES
        )
        if is_right:
            return text
        new = "".join(f"{line}\n" for line in lines if line.startswith("#"))
        old = {entry.file: entry for entry in reversed(listed)}
        for pointer, name in links.items():
            topic, known = TopicFile.parse(self.after[name]), old.get(pointer)
            hook = known.hook if known is not None else ""
            if not hook or len(hook) > 90 or self._is_gone(hook) or self._is_relative(hook):
                hook = topic.description or next(iter(statements(topic.body)), "")
            title = known.title if known is not None else topic.name or name.removesuffix(".md")
            new = with_entry(new, pointer, title, _cut(hook, 90))
        return new


class _KnownText:
    """Finds out whether a text already says something, in the same or in other words."""

    def __init__(self, texts: Iterable[str]) -> None:
        whole = "\n".join(texts)
        self._plain = " ".join(whole.split()).casefold()
        self._terms = [content_terms(one) for one in statements_of(whole)]

    def has(self, line: str) -> bool:
        terms = content_terms(line)
        return self.has_exactly(line) or any(terms and terms <= other for other in self._terms)

    def has_exactly(self, line: str) -> bool:
        return " ".join(line.split()).casefold() in self._plain


def add_line(text: str, line: str) -> str:
    """A memory with one more line at the end."""
    topic = TopicFile.parse(text)
    return topic.with_changes(body=f"{topic.body.rstrip()}\n{line}\n").text


def _head(text: str) -> str:
    topic = TopicFile.parse(text)
    return f"{topic.name}\n{topic.description}"


def _hooks(index: str, day: date) -> Iterator[Statement]:
    """The hooks of the entries of an index, and its other lines."""
    known = {entry.line: entry for entry in entries(index)}
    for number, line in enumerate(index.splitlines(), 1):
        entry = known.get(number)
        yield Statement(line, day) if entry is None else Statement(entry.hook, day, entry.file)


def _strip_marks(line: str) -> str:
    """A line without its bullet and the time of day at the start of a log line."""
    text = line.strip().lstrip("#-*•").strip()
    first, _, rest = text.partition(" ")
    return rest.strip() if len(first) == 5 and first[2] == ":" and first.replace(":", "").isdigit() else text


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rsplit(" ", 1)[0] + "…"
