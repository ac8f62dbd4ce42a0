"""The working set after a compaction: the files read last, from disk again, within their budgets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from reverie.layers.base import EffectResult, ReadFile
from reverie.layers.l4_compaction.by_code.operations import operations
from reverie.layers.l4_compaction.numbers import CompactionNumbers
from reverie.layers.l4_compaction.summary import PACKAGE
from reverie.models.tokens import JSON_BYTES, PROSE_BYTES, estimate_text, is_json_file
from reverie.prompts import render
from reverie.storage.view import Entry
from reverie.types import Block, Origin, TextBlock

_TOUCHED = ("read", "edit", "write")


def files_read_last(
    said: Sequence[Entry],
    visible: Sequence[Entry],
    cwd: Path,
    numbers: CompactionNumbers,
    leave_out: Callable[[Path], bool],
) -> list[ReadFile]:
    """What to read again: the last files that were read or written, but for those whose content is still in view."""
    in_view = {cwd / o.target for o in operations(visible) if o.kind == "read" and o.ok}
    found = dict[Path, None]()
    for operation in reversed(operations(said)):
        path = cwd / operation.target
        if operation.kind in _TOUCHED and operation.ok and operation.target and path not in found:
            found[path] = None
    chosen = [path for path in found if path not in in_view and not leave_out(path)][: numbers.restore_files]
    return [ReadFile(path, numbers.restore_file_tokens * PROSE_BYTES + 1) for path in chosen]


def restored(
    wanted: Sequence[ReadFile], results: Sequence[EffectResult], numbers: CompactionNumbers
) -> tuple[Block, ...]:
    """The files as they are shown, newest first, until the budget is used up; what could not be read is left out."""
    blocks, left = list[Block](), numbers.restore_tokens
    for effect, result in zip(wanted, results, strict=True):
        if not result.ok or not result.text.strip():
            continue
        is_json = is_json_file(str(effect.path))
        room = min(left, numbers.restore_file_tokens)
        text, cut = _within(result.text, room * (JSON_BYTES if is_json else PROSE_BYTES))
        if not text:
            break
        left -= estimate_text(text, is_json=is_json)
        note = " (its beginning only: Read the rest when you need it)" if cut else ""
        shown = render(PACKAGE, "restored.md", {"path": str(effect.path), "cut": note, "text": text})
        blocks.append(TextBlock(shown, Origin.TOOL))
    return tuple(blocks)


def _within(text: str, most: int) -> tuple[str, bool]:
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return text, False
    cut = raw[:most].decode("utf-8", "ignore")
    newline = cut.rfind("\n")
    return (cut[:newline] if newline > len(cut) // 2 else cut), True
