"""Write: writes a whole file, in one step or not at all.

An existing file may be replaced only after it was read completely, and only if it has not changed since.
"""

from __future__ import annotations

from dataclasses import replace

from reverie.errors import UserError
from reverie.tools.base import BuiltIn, ReadCache, ToolContext, ToolOutput
from reverie.tools.files import (
    Located,
    Snapshot,
    finish_in_thread,
    is_judged_by_disk,
    load_if_there,
    locate,
    locate_open,
    require_unchanged,
    store,
)
from reverie.tools.seen_files import describe_seen_file
from reverie.tools.text_form import TextForm, decode, encode, with_newlines
from reverie.types import JsonObject

_PROPERTIES: JsonObject = {
    "file_path": {"type": "string", "description": "The file to write"},
    "content": {"type": "string", "description": "The whole content of the file"},
}


class Write(BuiltIn, prompt="write.md", properties=_PROPERTIES, required=["file_path", "content"]):
    """The Write tool."""

    def _foresee(self, given: JsonObject, context: ToolContext) -> None:
        where = locate(given["file_path"], context)
        if is_judged_by_disk(where, context):
            _plan(where, given["content"], context.read_cache)

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        content: str = given["content"]
        known = context.read_cache
        where = await locate_open(given["file_path"], context)
        before, data, note = await finish_in_thread(lambda: _plan(where, content, known))
        saved = await store(where, data, before, context)
        existed = note is not None
        if saved.now is None:
            known.forget(where.key)
            return ToolOutput(saved.note or f"Removed {where.shown}.", structured={"filePath": where.shown})
        seen = saved.now.seen(partial=False, order=known.next_order())
        known.note(where.key, seen)
        if saved.note:
            return ToolOutput(saved.note, structured={"filePath": where.shown, **describe_seen_file(seen)})
        lines = content.count("\n") + bool(content and not content.endswith("\n"))
        size = f"{lines:,} {'line' if lines == 1 else 'lines'}{note or ''}"
        done = f"{'Replaced' if existed else 'Created'} {where.shown} ({size})."
        kind = "update" if existed else "create"
        return ToolOutput(done, structured={"type": kind, "filePath": where.shown, **describe_seen_file(seen)})


def _plan(where: Located, content: str, known: ReadCache) -> tuple[Snapshot | None, bytes, str | None]:
    """Returns the file that is replaced, what to write, and a note about its form (None if the file is new)."""
    before = load_if_there(where)
    if before is None:
        data, note = encode(content, TextForm()), None
    else:
        if before.data and require_unchanged(where, before, known).partial:
            raise UserError(
                f"Only a part of {where.shown} has been read, and Write replaces all of it: "
                "read the whole file, or change the part with Edit."
            )
        data, note = _encode_like(before, content)
    return before, data, note


def _encode_like(before: Snapshot, content: str) -> tuple[bytes, str]:
    try:
        _, form = decode(before.data)
    except UserError:
        return encode(content, TextForm()), ""  # it was not valid text, so there is no form to keep
    if form.newline == "\r\n" and "\r" not in content:
        content = with_newlines(content, form.newline)
        note = ", CRLF line ends kept"
    else:
        note = ""
    if form.mark:
        note += f", {form.encoding.upper()} mark kept"
    return encode(content, replace(form, valid=True)), note
