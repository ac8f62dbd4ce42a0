"""The directive of the notes' writer, and its permission: to edit one file."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from reverie.layers.l3_session_notes.sections import outline, over_limit
from reverie.layers.l3_session_notes.trigger import NoteNumbers
from reverie.permissions.rules import Allow, Decision, Deny, ToolCall
from reverie.prompts import fill, render

_PACKAGE = "reverie.layers.l3_session_notes"
TEMPLATE = "template.md"


def default_template() -> str:
    """Returns our ten sections."""
    return render(_PACKAGE, TEMPLATE) + "\n"


def template_or_default(given: str | None) -> tuple[str, str | None]:
    """Returns the user's template if it is usable, else ours; and why theirs is not."""
    if given is None:
        return default_template(), None
    sections = outline(given)
    headings = [section.heading for section in sections]
    if not headings:
        return default_template(), "it has no heading (a line that begins with `# `)"
    if len(set(headings)) != len(headings):
        return default_template(), "two of its headings are the same"
    return given, None


def directive(
    notes: str,
    path: Path,
    template: str,
    numbers: NoteNumbers,
    *,
    prompt: str | None = None,
    instructions: str = "",
) -> str:
    """Returns the directive of the fork. `prompt` is the user's own wording; the limits are added to both."""
    values = {"currentNotes": notes.rstrip(), "notesPath": str(path)}
    asked = fill(prompt, values).rstrip() if prompt is not None else render(_PACKAGE, "update.md", values)
    limits = {"section": f"{numbers.section_tokens:,}", "total": f"{numbers.total_tokens:,}"}
    parts = [asked, render(_PACKAGE, "limits.md", limits)]
    too_long = over_limit(notes, template, section_tokens=numbers.section_tokens, total_tokens=numbers.total_tokens)
    if too_long:
        parts.append(render(_PACKAGE, "over_limit.md", {"sections": "\n".join(too_long)}))
    if instructions.strip():
        parts.append(instructions.strip())
    return "\n\n".join(parts)


def only_edit(path: Path) -> Callable[[ToolCall], Awaitable[Decision]]:
    """Allows Edit of this file only and refuses everything else with a reason."""
    real = os.path.realpath(path)

    async def decide(call: ToolCall) -> Decision:
        named = str(call.input.get("file_path", ""))
        if call.tool != "Edit":
            return Deny(f"only Edit may be used here, and only on {path}")
        if os.path.realpath(call.cwd / named) != real:
            return Deny(f"only {path} may be edited here")
        return Allow()

    return decide
