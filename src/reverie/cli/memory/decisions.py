"""What waits for the user's decision, in the command line and the chat: items of the inbox and inferred statements, how
they are shown, and what yes and no do. Nothing is decided that was not shown."""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import TYPE_CHECKING, Any

from reverie.cli.memory.opening import version_json
from reverie.cli.output import Paint, one_line, wrap
from reverie.memory.age import age_words
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.gate.inbox import CONFLICT, Item
from reverie.memory.gate.review import MarkedStatement, confirm, describe_evidence, doubt, find_statement, reject
from reverie.quick import dataclass
from reverie.storage.history.versions import Version
from reverie.text.cutting import shorten
from reverie.types import Origin

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory

KEYS = {"y": "yes", "n": "no", "s": "skip", "q": "quit"}
_VERSION_KEYS = {"y": "this machine's", "n": "the other one", "b": "both", "s": "skip", "q": "quit"}
WHY = {
    "evidence": "you did not say this",
    "contradiction": "you confirmed something else",
    "removal": "it would take out what you said",
    CONFLICT: "it has two versions",
}
"""Why an item waits, as the end of a sentence."""
_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of a decision: a sentence, its result for a program, and the version, if it made one."""

    said: str
    result: dict[str, Any]
    version: Version | None = None


def item_lines(item: Item, memory: OpenedMemory, paint: Paint, *, whole: bool = False) -> Iterator[str]:
    """An item of the inbox: both statements of a question, with what they rest on and where the new one comes from."""
    why = item.reason if item.why == "evidence" and item.reason else WHY.get(item.why, item.why)
    about = paint.dim(f"{one_line(why)}, {item.time[:10]}")
    yield f"{paint.accent(item.id)}  {paint.bold(one_line(item.file))}  {about}"
    if item.why in ("contradiction", CONFLICT):
        yield from _hang(item.question)
    if item.why == CONFLICT:
        yield from _version_lines(item, memory, whole=whole)
        return
    for text in item.removes:
        yield from _hang(text, "now  ")
        if mark := memory.gate.marks.of(text):
            yield from (paint.dim(line) for line in _hang(describe_evidence(mark), "     "))
    for text in item.statements if item.why != "contradiction" or whole else ():
        yield from _hang(text, "new  " if item.removes else "-  ")
    if item.removes and not item.statements:
        yield from _hang("remove it", "new  ")
    for text in () if whole else item.other_lines():
        yield from _hang(text, "also ")
    foreign = [one for one in item.sources if not Origin.named(one.origin).is_users]
    for source in item.sources if whole else foreign[:2]:
        text = shorten(source.excerpt, _EXCERPT)
        yield from (paint.dim(line) for line in _hang(text, f"{source.origin}: "))
    if whole:
        yield ""
        yield from (f"          {one_line(line)}" for line in item.text.splitlines())


def keys_of(item: Item) -> dict[str, str]:
    """The keys that decide an item, each with what it means."""
    return _VERSION_KEYS if item.why == CONFLICT else KEYS


def _version_lines(item: Item, memory: OpenedMemory, *, whole: bool) -> Iterator[str]:
    """What only one version says, or both versions whole."""
    for label, name, only in (("here: ", item.other, item.statements), ("other: ", item.file, item.removes)):
        if whole:
            yield from _hang(name, label)
            text = memory.directory.read(name).text if memory.directory.exists(name) else "(It is gone.)"
            yield from (f"            {one_line(line)}" for line in text.splitlines())
        else:
            for text in only or ("(nothing more)",):
                yield from _hang(text, label)


def statement_lines(one: MarkedStatement, paint: Paint) -> Iterator[str]:
    """An inferred statement with what it rests on, and its age."""
    age = age_words(one.since, time())
    yield f"{paint.accent(one.id)}  {paint.bold(one_line(one.file))}  {paint.dim(age)}"
    yield from _hang(one.text)
    yield from (paint.dim(line) for line in _hang(one.evidence() or "nothing is known about its source"))


def _hang(text: str, first: str = "") -> list[str]:
    head, rest = f"          {first}", " " * (10 + len(first))
    return [(head if number == 0 else rest) + line for number, line in enumerate(wrap(text, len(head)))]


def decide_item(memory: OpenedMemory, item: Item, *, accepts: bool | None) -> Decided:
    """Accepts or rejects an item of the inbox. Of two versions, yes is the one of this machine, no the other one, and
    None keeps both."""
    if item.why == CONFLICT:
        return _decide_versions(memory, item, accepts)
    if not accepts:
        memory.inbox.reject(item.id)
        return Decided(f"Rejected {item.id}: {one_line(item.file)}.", {"rejected": item.id, "file": item.file})
    memory.require_on("nothing is accepted")
    version = memory.inbox.accept(item.id, memory.directory)
    result = {"accepted": item.id, "file": item.file, "version": version_json(version)}
    return Decided(f"Accepted {item.id}: {one_line(item.file)}, confirmed by you.", result, version)


def _decide_versions(memory: OpenedMemory, item: Item, own: bool | None) -> Decided:
    if own is None:
        memory.inbox.reject(item.id)
        both = {"kept": item.id, "file": item.file, "other": item.other}
        return Decided(f"Kept both: {one_line(item.file)} and {one_line(item.other)}.", both)
    memory.require_on("nothing is changed")
    version = memory.inbox.choose(item, memory.directory, own=own)
    result = {"accepted" if own else "rejected": item.id, "file": item.file, "version": version_json(version)}
    which = "the version of this machine" if own else "the other version"
    return Decided(f"{one_line(item.file)} is now {which}.", result, version)


def decide_statement(memory: OpenedMemory, id: str, verb: str, *, session: str = "", file: str = "") -> Decided:
    """`confirm` marks a statement as the user's, `reject` removes it, `doubt` makes it inferred again. `file`: the
    memory that has it, if it is known."""
    memory.require_on("nothing is changed")
    one = find_statement(memory.directory, id, file)
    info = WriteInfo(Writer.USER, f"Asked for with `reverie memory inferred {verb}`.", session)
    version = {"confirm": confirm, "reject": reject, "doubt": doubt}[verb](memory.directory, one, info)
    done = {"confirm": "confirmed", "reject": "rejected", "doubt": "doubted"}[verb]
    said = f"{done.capitalize()} {one.id}: {one_line(one.text)}"
    if verb == "confirm":
        said += f" (take back: reverie memory inferred doubt {one.id})"
    result = {done: one.id, "file": one.file, "statement": one.text, "version": version_json(version)}
    return Decided(said, result, version if verb == "reject" else None)
