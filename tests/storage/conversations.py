"""Makes records as sessions write them, for tests of order and view."""

from __future__ import annotations

from pathlib import Path

from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Block, Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock

HEADER = SessionHeader(model="scripted:test", system=("You help.",), tools=({"name": "Read"},), date="2026-01-02")


def new_log(path: Path | None = None, session_id: str = "s") -> SessionLog:
    return SessionLog(path, session_id, cwd=Path("/p"), version="0")


def person(text: str) -> Message:
    return Message("user", (TextBlock(text, Origin.TYPED),), plain=True)


def answer(message_id: str, *blocks: Block, prompt: int = 0, output: int = 10) -> Message:
    usage = {"input_tokens": prompt, "output_tokens": output}
    return Message("assistant", blocks, fields={"id": message_id, "usage": usage})


def says(text: str) -> TextBlock:
    return TextBlock(text, Origin.MODEL)


def call(call_id: str, name: str = "Read") -> ToolUseBlock:
    return ToolUseBlock(call_id, name, {"file_path": "a"})


def result(call_id: str, text: str = "ok") -> Message:
    return Message("user", (ToolResultBlock(call_id, text),))
