"""The three-way merge of two copies of some files: the changes for each side, from the last common state. Plain data
in, plain data out. A changed index is merged line by line; of a topic file that both changed both versions stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from reverie.memory.index import entry_of, with_entry
from reverie.memory.sharing.shared_files import Files
from reverie.memory.taxonomy import INDEX, is_index
from reverie.memory.topic_file import TopicFile, decode, encode
from reverie.quick import dataclass
from reverie.text.patterns import late

_OTHER = late(r"_other_version_[0-9]+$")


@dataclass(frozen=True, slots=True)
class Merge:
    """The changes for each side; None removes a file."""

    here: dict[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    there: dict[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    merged: tuple[str, ...] = ()
    kept_both: Mapping[str, str] = field(default_factory=dict[str, str])
    """Topic files that both sides had changed: theirs keeps the name, ours gets the other one."""


def three_way(base: Files, ours: Files, theirs: Files) -> Merge:
    """The changes that make both sides the same and lose nobody's change. Pure."""
    merge = Merge()
    merged, kept_both = list[str](), dict[str, str]()
    for name in sorted({*base, *ours, *theirs}):
        before, our, their = base.get(name), ours.get(name), theirs.get(name)
        if our == their:
            continue
        if our == before:
            merge.here[name] = their
        elif their == before:
            merge.there[name] = our
        elif our is None:  # a change wins over a removal, so that no new text is lost
            merge.here[name] = their
        elif their is None:
            merge.there[name] = our
        elif is_index(name):
            both = encode(_merge_lines(decode(before or b""), decode(our), decode(their)))
            merged.append(name)
            if both != our:
                merge.here[name] = both
            if both != their:
                merge.there[name] = both
        else:
            copy = _free_name(name, {*base, *ours, *theirs, *merge.here})
            kept_both[name] = copy
            merge.here[name] = their
            merge.here[copy] = merge.there[copy] = our
    if any(INDEX in side for side in (base, ours, theirs)):
        _list_survivors(merge, ours, theirs)
    return Merge(merge.here, merge.there, tuple(merged), kept_both)


def _list_survivors(merge: Merge, ours: Files, theirs: Files) -> None:
    """Adds the index line of a file that a removal did not win over, or that is a second version."""
    after = apply(ours, merge.here)
    index = before = decode(after.get(INDEX, b""))
    for name, data in {**merge.there, **merge.here}.items():
        if data is not None and not is_index(name) and entry_of(index, name) is None:
            topic = TopicFile.parse(data)
            index = with_entry(index, name, topic.name or name.removesuffix(".md"), topic.description)
    if index != before:
        for changes, side in ((merge.here, ours), (merge.there, theirs)):
            changes.pop(INDEX, None)
            if side.get(INDEX) != encode(index):
                changes[INDEX] = encode(index)


def _merge_lines(base: str, ours: str, theirs: str) -> str:
    """Their lines without those we removed, then the lines we added, in their order."""
    known, own, other = set(base.splitlines()), ours.splitlines(), theirs.splitlines()
    removed, there = known - set(own), set(other)
    kept = [line for line in other if line not in removed or not line.strip()]
    added = [line for line in own if line.strip() and line not in known and line not in there]
    return "".join(f"{line}\n" for line in (*kept, *added))


def _free_name(name: str, taken: set[str]) -> str:
    stem = _OTHER.sub("", name.removesuffix(".md"))
    return next(made for number in range(1, 10_000) if (made := f"{stem}_other_version_{number}.md") not in taken)


def apply(files: Files, changes: Mapping[str, bytes | None]) -> Files:
    """The files after these changes."""
    after = {**files, **changes}
    return {name: data for name, data in after.items() if data is not None}


def common_files(ours: Files, theirs: Files, base: Files) -> dict[str, bytes]:
    """The files both sides agree on; for a file that was held back, the last common version."""
    common: dict[str, bytes] = {}
    for name in {*ours, *theirs, *base}:
        agreed = ours.get(name) if ours.get(name) == theirs.get(name) else base.get(name)
        if agreed is not None:
            common[name] = agreed
    return common
