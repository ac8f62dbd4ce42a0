"""The six commands of the API's memory tool over a memory directory: view, create, str_replace, insert, delete, rename.

`/memories` is the directory. Every write passes the gate as an agent's and becomes a version. The texts for the model
are those of the API; what the gate keeps for the user is added as a sentence. Blocking; `Memory` runs it in its thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from reverie.errors import UserError
from reverie.library.prepared import check_given
from reverie.memory.changes import Change, Evidence, WriteInfo, Writer
from reverie.memory.evidence import select_near
from reverie.memory.opening import OpenedMemory
from reverie.memory.taxonomy import INDEX, is_topic
from reverie.memory.tool_writes import write_by_tool
from reverie.memory.topic_file import TopicFile, encode
from reverie.permissions.memory_paths import PermissionRefused, check_memory_write
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.types import Origin

ROOT: Final = "/memories"
_DEPTH: Final = 2
_NEAR: Final = 2
"""Lines above and below a change that its answer shows."""


def run_command(memory: OpenedMemory, command: Mapping[str, Any], said: Sequence[str | Evidence]) -> str:
    """Carries out a command and returns the text for the model. `UserError` has the text of an error."""
    memory.require_on("the memory tool does nothing")
    check_given(command, Mapping, "command")
    evidence = tuple(one if isinstance(one, Evidence) else Evidence(Origin.ENTERED, one) for one in said)
    tool = _MemoryTool(memory, WriteInfo(Writer.AGENT, "Written with the memory tool.", evidence=evidence))
    commands: dict[str, Callable[[], str]] = {
        "view": lambda: tool.view(_text(command, "path"), command.get("view_range")),
        "create": lambda: tool.create(_text(command, "path"), _text(command, "file_text")),
        "str_replace": lambda: tool.replace(
            _text(command, "path"), _text(command, "old_str"), _text(command, "new_str", "")
        ),
        "insert": lambda: tool.insert(
            _text(command, "path"), command.get("insert_line"), _text(command, "insert_text")
        ),
        "delete": lambda: tool.delete(_text(command, "path")),
        "rename": lambda: tool.rename(_text(command, "old_path"), _text(command, "new_path")),
    }
    wanted = str(command.get("command"))
    if wanted not in commands:
        raise UserError(f"Unknown command {wanted[:40]!r}; there are {', '.join(commands)}.")
    return commands[wanted]()


def _text(command: Mapping[str, Any], name: str, default: str | None = None) -> str:
    found = command.get(name, default)
    if not isinstance(found, str):
        raise UserError(f"The command needs `{name}`, a text.")
    return found


@dataclass(frozen=True, slots=True)
class _MemoryTool:
    memory: OpenedMemory
    info: WriteInfo

    # -- reading ---------------------------------------------------------------------------------------------------

    def view(self, path: str, part: object) -> str:
        name = _name(path)
        files = self._files()
        if _file(name) in files:
            return self._view_file(path, _file(name), part)
        inside = [one for one in files if not name or one.startswith(f"{name}/")]
        if name and not inside:
            raise UserError(f"The path {path} does not exist. Please provide a valid path.")
        root, start = self.memory.directory.root, name.count("/") + 1 if name else 0
        sizes = {one: (root / one).stat().st_size for one in inside}
        shown = dict[str, int]()
        for one, size in sizes.items():
            parts = one.split("/")
            for depth, folder in enumerate(accumulate(parts[:-1], "{}/{}".format), 1):
                if start < depth <= start + _DEPTH:
                    shown[f"{folder}/"] = shown.get(f"{folder}/", 0) + size
            if len(parts) <= start + _DEPTH:
                shown[one] = size
        lines = [f"{_size(sum(sizes.values()))}\t{path}"]
        lines += [f"{_size(shown[one])}\t{ROOT}/{one}" for one in sorted(shown)]
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join([head, *lines])

    def _view_file(self, path: str, name: str, part: object) -> str:
        lines = self._read(name).split("\n")
        first, last = 1, len(lines)
        match part:
            case [int(begin), int(end)]:
                first, last = max(1, begin), last if end == -1 else min(end, last)
            case _:
                pass
        return f"Here's the content of {path} with line numbers:\n" + _numbered(lines, first, last)

    # -- writing ---------------------------------------------------------------------------------------------------

    def create(self, path: str, text: str) -> str:
        name = self._writable(path)
        if name in self._files():
            raise UserError(f"File {path} already exists")
        if not text.strip():
            raise UserError(f"File {path} was not created: a memory needs a text")
        stored, note = self._write(name, text, None)
        if stored is None:
            return f"File {path} was not created. {note}"
        return f"File created successfully at: {ROOT}/{stored}{note and f'. {note}'}"

    def replace(self, path: str, old: str, new: str) -> str:
        name, before = self._existing(path)
        places = [found.start() for found in re.finditer(f"(?={re.escape(old)})", before)] if old else []
        if not places:
            raise UserError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
        if len(places) > 1:
            at = ", ".join(str(before.count("\n", 0, place) + 1) for place in places)
            raise UserError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {at}. Please ensure "
                "it is unique"
            )
        after = before.replace(old, new)
        stored, note = self._write(name, after, before)
        if stored is None:
            return f"The memory file is empty now and was deleted. {note}".strip()
        lines, changed = self._read(stored).split("\n"), before.count("\n", 0, places[0]) + 1
        shown = _numbered(lines, max(1, changed - _NEAR), min(len(lines), changed + _NEAR))
        head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return f"{head}\n{shown}" + (f"\n{note}" if note else "")

    def insert(self, path: str, line: object, text: str) -> str:
        name, before = self._existing(path)
        lines = before.removesuffix("\n").split("\n")
        if not isinstance(line, int) or not 0 <= line <= len(lines):
            raise UserError(
                f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
            )
        lines.insert(line, text.rstrip("\n"))
        _, note = self._write(name, "\n".join(lines) + "\n", before)
        return f"The file {path} has been edited.{note and f' {note}'}"

    def delete(self, path: str) -> str:
        name = _name(path)
        if not name:
            raise UserError(f"Cannot delete the {ROOT} directory itself")
        gone = self._below(name)
        if not gone:
            raise UserError(f"The path {path} does not exist")
        notes = [self._remove(one) for one in gone]
        kept = [note for note in notes if note]
        if kept:
            return f"Not all of {path} was deleted. {' '.join(kept)}"
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        old, new = _name(old_path), _name(new_path)
        if not old:
            raise UserError(f"Cannot rename the {ROOT} directory itself")
        moved = self._below(old)
        if not moved:
            raise UserError(f"The path {old_path} does not exist")
        if self._below(new):
            raise UserError(f"The destination {new_path} already exists")
        is_file = moved == [_file(old)]
        names = {one: self._writable(f"{ROOT}/{new}" if is_file else f"{ROOT}/{new}{one[len(old) :]}") for one in moved}
        texts = {one: self.memory.directory.read(one).text for one in moved}
        changes = [Change(names[one], texts[one]) for one in moved] + [Change(one, None) for one in moved]
        info = self._info("\n".join(texts.values()))
        outcome = self.memory.directory.transaction(changes, info)
        return f"Successfully renamed {old_path} to {new_path}{outcome.note and f'. {outcome.note}'}"

    # -- files -----------------------------------------------------------------------------------------------------

    def _files(self) -> list[str]:
        directory = self.memory.directory
        return [*([INDEX] if directory.exists(INDEX) else []), *directory.names()]

    def _below(self, name: str) -> list[str]:
        """The file of this name, or all files of the folder."""
        files = [one for one in self._files() if one != INDEX]
        return [_file(name)] if _file(name) in files else [one for one in files if one.startswith(f"{name}/")]

    def _read(self, name: str) -> str:
        """The text below the head of a file: the model finds what it wrote."""
        found = self.memory.directory.read(name)
        return found.topic.body if is_topic(name) else found.text

    def _existing(self, path: str) -> tuple[str, str]:
        name = _name(path)
        if _file(name) not in self._files():
            is_folder = not name or self._below(name)
            wrong = "is not a file." if is_folder else "does not exist. Please provide a valid path."
            raise UserError(f"The path {path} {wrong}")
        return _file(name), self._read(_file(name))

    def _writable(self, path: str) -> str:
        root, name = self.memory.directory.root, _file(_name(path))
        try:
            return check_memory_write(f"{root}/{name}", root).relative_to(root).as_posix()
        except PermissionRefused:
            raise UserError(f"Path {path} cannot be used: give the name of a file in {ROOT}") from None

    def _info(self, text: str) -> WriteInfo:
        return WriteInfo(self.info.writer, self.info.why, evidence=select_near(self.info.evidence, text))

    def _write(self, name: str, text: str, before: str | None) -> tuple[str | None, str]:
        """Writes a file; returns the name that it has now, None if there is none, and what the model should know."""
        directory = self.memory.directory
        was = None if before is None else read_regular(directory.root / name)
        if was is not None and is_topic(name) and text.strip():
            text = TopicFile.parse(was).with_changes(body=text).text
        _, outcome = write_by_tool(directory, directory.root / name, encode(text), was, self.info)
        stored = outcome.name_of(name)
        return stored if directory.exists(stored) else None, outcome.note

    def _remove(self, name: str) -> str:
        stored, note = self._write(name, "", self._read(name))
        return (note or f"{name} stays.") if stored is not None else ""


def _name(path: str) -> str:
    """The path below the directory."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise UserError(f"Path must start with {ROOT}, got: {path}")
    parts = [part for part in path[len(ROOT) :].split("/") if part]
    if any(part.startswith(".") or "\\" in part or not part.isprintable() for part in parts):
        raise UserError(f"Path {path} would escape {ROOT} directory")
    return "/".join(parts)


def _file(name: str) -> str:
    """The name of a file: memories are `.md` files, and `notes.txt` is stored as `notes.txt.md`."""
    return name if name.endswith(".md") else f"{name}.md"


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in range(first, last + 1))


def _size(size: int) -> str:
    return f"{size}B" if size < 1_024 else f"{size / 1_024:.1f}K"
