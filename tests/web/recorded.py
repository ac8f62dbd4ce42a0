"""A recorded session with everything that the reader shows, written with the log that sessions use."""

from __future__ import annotations

import base64
from pathlib import Path

from reverie.paths import slug
from reverie.storage.transcript.records import Clears, CompactBoundary, Pin, Rewind, SessionHeader, Surfaced, Survival
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import (
    ImageBlock,
    JsonObject,
    Message,
    Origin,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

ID = "0d1c2b3a-0000-4000-8000-000000000001"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HOSTILE = "<script>alert(1)</script><svg onload=alert(2)>\u202egnp.exe\u2066 </pre></details>"
_MODEL = "claude-sonnet-4-5"


def user(*blocks: str | TextBlock | ToolResultBlock | ImageBlock) -> Message:
    return Message("user", tuple(TextBlock(one, Origin.TYPED) if isinstance(one, str) else one for one in blocks))


def answer(name: str, *blocks: str | ThinkingBlock | ToolUseBlock, tokens: int = 1_000) -> Message:
    usage: JsonObject = {"input_tokens": 10, "cache_read_input_tokens": tokens, "output_tokens": 50}
    shown = tuple(TextBlock(one, Origin.MODEL) if isinstance(one, str) else one for one in blocks)
    return Message("assistant", shown, fields={"id": name, "model": _MODEL, "usage": usage})


def result(call: str, text: str, **more: bool) -> Message:
    return Message("user", (ToolResultBlock(call, text, origin=Origin.TOOL, **more),))


def open_log(home: Path, cwd: Path, id: str = ID) -> SessionLog:
    project = home / "projects" / slug(cwd)
    project.mkdir(parents=True, exist_ok=True)
    log = SessionLog(project / f"{id}.jsonl", id, cwd=cwd, version="1", home=home, git_branch="main")
    log.append(SessionHeader(model=f"anthropic:{_MODEL}", system=("You help.",), tools=()))
    return log


def write_session(home: Path, cwd: Path, *, title: str = "Why does the lamp blink?") -> Path:
    """Writes it and returns the transcript."""
    log = open_log(home, cwd)
    folder = home / "projects" / slug(cwd) / ID
    log.append_message(user(title, ImageBlock({"type": "base64", "data": base64.b64encode(PNG).decode()})))
    log.append(Surfaced(("lamp.md",), 120))
    svg = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(3)'/>").decode()
    log.append_message(user(ImageBlock({"type": "base64", "media_type": "image/svg+xml", "data": svg})))
    log.append_message(
        answer("m1", ThinkingBlock("I look at the code first."), ToolUseBlock("c1", "Read", {"file_path": "/lamp.py"}))
    )
    log.append_message(result("c1", f"def blink():\n    pass  # {HOSTILE}\n" + "line\n" * 1_000))
    log.append_message(answer("m2", ToolUseBlock("c2", "Bash", {"command": "cat big.log"})))
    log.append_message(result("c2", "<persisted-output>\nbeginning of the log\n</persisted-output>"), keptBytes=9_000)
    (folder / "tool-results").mkdir(parents=True)
    (folder / "tool-results" / "c2.txt").write_text("the whole log\n" + "x" * 200_000 + "\nthe end of the log")
    log.append(Clears("economic", {"c1": "[cleared]"}, 900))
    log.append(Pin("p1", "Never touch the mains."))
    log.append_message(user(TextBlock("<hook-text>\nHook says hello.\n</hook-text>", Origin.HOOK)), isMeta=True)
    log.append_message(answer("m3", ToolUseBlock("c3", "Agent", {"description": "Look", "prompt": "Find the fuse"})))
    _write_agent(folder, cwd)
    log.append_message(result("c3", "The fuse is in the cellar."), toolUseResult={"agent": "agent-a1b2"})
    first = log.append_message(
        answer("m4", "The lamp blinks because of **the fuse**.\n\n```py\nblink()\n```\n- one\n- two")
    )
    log.append_message(user("Left behind: paint it red."))
    log.append_message(answer("m5", "Painted."))
    assert first.uuid is not None
    log.append(Rewind(first.uuid))
    log.append_message(user("Then replace the fuse."))
    boundary = log.append(CompactBoundary("auto", 150_000, log.head, writer="notes"))
    summary = Message("user", (TextBlock("Summary: the fuse must be replaced.", Origin.SUMMARY),))
    log.append_message(summary, compactOf=boundary.uuid, isCompactSummary=True)
    survival = Survival(
        boundary.uuid or "", "notes", 150_000, 9_000, {"paths": 1}, {"paths": 2}, {"paths": ["gone.py"]}
    )
    log.append(survival, compactOf=boundary.uuid)
    log.append_message(answer("m6", f"Done. {HOSTILE}", tokens=9_000))
    log.close()
    return home / "projects" / slug(cwd) / f"{ID}.jsonl"


def _write_agent(folder: Path, cwd: Path) -> None:
    (folder / "subagents").mkdir(parents=True)
    log = SessionLog(folder / "subagents" / "agent-a1b2.jsonl", ID, cwd=cwd, version="1", agent_id="agent-a1b2")
    log.append_message(user("Find the fuse"))
    log.append_message(answer("a1", "It is in the cellar, behind the shelf."))
    log.close()
