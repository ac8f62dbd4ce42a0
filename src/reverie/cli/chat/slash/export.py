"""`/export` in the chat: writes the conversation to a Markdown file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.cli.output import one_line
from reverie.cli.screen import printable
from reverie.cli.tool_lines import call_text, result_note
from reverie.errors import UserError
from reverie.origins import strip_tags
from reverie.storage.atomic import storage_error, write_atomic
from reverie.types import TextBlock, ToolUseBlock

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.session.session import Session


async def export(chat: Chat, rest: str) -> None:
    """/export [FILE]"""
    session = chat.session
    if not session.view.history:
        raise UserError("There is nothing to export yet.")
    path = session.places.cwd / Path(rest or f"reverie-{session.id[:8]}.md").expanduser()
    if path.is_dir():
        raise UserError(f"{path} is a folder; write the name of a file after /export.")
    if path.exists() and not (chat.can_ask and await chat.confirm(f"{path} exists. Replace it?")):
        raise UserError(f"{path} exists, and was not changed.")
    text = printable("\n\n".join(_parts(session))) + "\n"  # `cat` may show it
    try:
        await asyncio.to_thread(write_atomic, path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise storage_error(error, path, "write") from error
    chat.view.tell(f"Wrote {path}.")


def _parts(session: Session) -> Iterator[str]:
    """What the user and the model said, and one line per tool call."""
    history, cwd = session.view.history, session.places.cwd
    results = {one.tool_use_id: one for entry in history for one in entry.message.tool_results}
    yield f"# Session {session.id[:8]}"
    speaker = ""
    for entry in history:
        for block in entry.message.content:
            match block:
                case TextBlock() if not block.text.strip():
                    continue
                case TextBlock() if entry.message.role == "assistant":
                    now, text = "Reverie", block.text.strip()
                case TextBlock() if block.origin.is_given:
                    now, text = "You", strip_tags(block.text).strip()
                case ToolUseBlock():
                    result = results.get(block.id)
                    note = result_note(result.text, bool(result.is_error)) if result is not None else "no result"
                    now, text = "Reverie", f"- `{call_text(block.name, block.input, cwd)}`: {one_line(note)}"
                case _:
                    continue
            if now != speaker:
                yield f"## {now}"
            speaker = now
            yield text
