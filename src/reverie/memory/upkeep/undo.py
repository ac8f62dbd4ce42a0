"""Plans how to reverse one version, or to bring a file back, given the present files. Later changes of other lines
stay; if a later change touched the same lines, nothing is undone and the user sees which versions conflict."""

from __future__ import annotations

from collections.abc import Callable

from reverie.errors import UserError
from reverie.memory.index import entry_of, with_entry
from reverie.memory.taxonomy import index_of, is_index, is_topic, pointer_of
from reverie.memory.topic_file import TopicFile, decode, encode
from reverie.storage.history.merge import merge
from reverie.storage.history.versions import FileChange, History, Version

ReadNow = Callable[[str], bytes | None]


class UndoConflict(UserError):
    """Later changes touched the same lines of the files `names`."""

    def __init__(self, message: str, names: tuple[str, ...]) -> None:
        super().__init__(message)
        self.names = names


def plan_undo(history: History, version: Version, now: ReadNow) -> dict[str, bytes | None]:
    """The writes that reverse exactly this version."""
    writes: dict[str, bytes | None] = {}
    stuck: list[str] = []
    for change in version.files:
        try:
            writes[change.name] = _reverse(history, change, now(change.name))
        except UndoConflict:
            stuck.append(change.name)
    if stuck:
        later = _later(history, version, stuck)
        raise UndoConflict(
            f"Version {version.short} cannot be undone: {', '.join(stuck)} changed again in the same place "
            f"(version {', '.join(later) or 'unknown'}); undo that first, or restore the file as it was.",
            tuple(stuck),
        )
    return writes


def _reverse(history: History, change: FileChange, now: bytes | None) -> bytes | None:
    before = None if change.before is None else history.read(change.before)
    after = None if change.after is None else history.read(change.after)
    if now == after:
        return before
    if now == before:
        return now
    index = is_index(change.name)  # a missing index is an empty one
    if not index and (before is None or after is None or now is None):
        raise UndoConflict("", (change.name,))
    merged = merge(decode(after or b""), decode(now or b""), decode(before or b""), both_insert=index)
    if merged is None:
        raise UndoConflict("", (change.name,))
    return None if index and before is None and not merged.strip() else encode(merged)


def _later(history: History, version: Version, names: list[str]) -> list[str]:
    found: list[str] = []
    for other in history.log():
        if other.id == version.id:
            break
        if any(change.name in names for change in other.files):
            found.append(other.short)
    return found


def plan_restore(history: History, name: str, spec: str | None, now: ReadNow) -> tuple[dict[str, bytes | None], str]:
    """The writes that bring a file back, and the version it comes from. Without `spec`: as it was before it was removed
    or, if it exists, before its latest change."""
    if spec is not None:
        version = history.find(spec).id
        data = history.show(name, version)
    else:
        version, data = _last_other(history, name, now(name))
    writes: dict[str, bytes | None] = {name: data}
    if is_topic(name):
        index = index_of(name)
        text = decode(now(index) or b"")
        if entry_of(text, pointer_of(name)) is None:
            title, hook = _old_line(history, version, name) or _line(data, name)
            writes[index] = encode(with_entry(text, pointer_of(name), title, hook))
    return writes, version


def _last_other(history: History, name: str, now: bytes | None) -> tuple[str, bytes]:
    seen = False
    for version in history.log(name):
        seen = True
        after = next(change.after for change in version.files if change.name == name)
        if after is not None and (data := history.read(after)) != now:
            return version.id, data
    if seen:
        raise UserError(f"{name} has never changed; there is nothing to restore.")
    raise UserError(f"No version has {name!r}; `reverie memory log` shows the files of each version.")


def _old_line(history: History, version: str, name: str) -> tuple[str, str] | None:
    """Title and hook of the file in the index of that version."""
    content = history.files(version).get(index_of(name))
    if content is None:
        return None
    entry = entry_of(decode(history.read(content)), pointer_of(name))
    return (entry.title, entry.hook) if entry else None


def _line(data: bytes, name: str) -> tuple[str, str]:
    topic = TopicFile.parse(data)
    return topic.name or pointer_of(name).removesuffix(".md"), topic.description
