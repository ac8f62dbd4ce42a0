"""Shows rules with `paths:` to the model when it touches such a file: next to the result, once.

The conversation itself says which rules were shown, so a rule that is out of view is shown again. The prefix never
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path

from reverie.instructions import ConditionalRule, Instructions
from reverie.layers.base import Companion
from reverie.origins import escape_tags
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.storage.transcript.view import View
from reverie.tools.base import ToolOutput
from reverie.types import Block, Origin, TextBlock, ToolUseBlock

FILE_TOOLS = ("Read", "Edit", "Write")
MAX_CHARACTERS = 40_000
"""A longer rule is cut, with a note that says where the rest is."""


@dataclass(eq=False)
class RuleAttachments(Companion):
    """The rules of one session. `load` is called once, when the first file is touched; `is_on` at each use."""

    load: Callable[[], Instructions]
    view: Callable[[], View]
    cwd: Path
    is_on: Callable[[], bool]
    _instructions: Instructions | None = field(default=None, init=False)
    _round: str | None = field(default=None, init=False)
    _this_round: set[str] = field(default_factory=set[str], init=False)

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """Returns the rules for the touched file that are not in view yet."""
        if output.is_error or call.name not in FILE_TOOLS or not self.is_on():
            return ()
        path = _find_path(call, self.cwd)
        if path is None:
            return ()
        if self._instructions is None:
            self._instructions = self.load()
        rules = self._instructions.matching_rules(path)
        texts = [text for text in map(_attachment, rules) if not self._is_shown(text)] if rules else []
        self._this_round.update(texts)
        return [TextBlock(text, Origin.CODE) for text in texts]

    def _is_shown(self, text: str) -> bool:
        entries = self.view().entries
        current = next((entry.uuid for entry in reversed(entries) if entry.message.role == "assistant"), None)
        if current != self._round:  # rules of earlier rounds are in the conversation by now
            self._round, self._this_round = current, set()
        return text in self._this_round or any(
            isinstance(block, TextBlock) and block.text == text for entry in entries for block in entry.message.content
        )


def _find_path(call: ToolUseBlock, cwd: Path) -> Path | None:
    if not isinstance(call.input, dict):
        return None
    given: object = call.input.get("file_path")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(given, str) or not given or "\0" in given:
        return None
    return cwd / Path(given).expanduser()


def _attachment(rule: ConditionalRule) -> str:
    if len(rule.text) > MAX_CHARACTERS:
        note = f"\n\n[Cut after {MAX_CHARACTERS:,} characters; read {rule.path} for the rest.]"
        rule = replace(rule, text=rule.text[:MAX_CHARACTERS] + note)
    return render("reverie.context", "rule.md", {"path": escape_tags(str(rule.path)), "text": escape_tags(rule.text)})
