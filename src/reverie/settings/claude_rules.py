"""Turns permission rules of Claude Code into rules of ours, where both mean the same.

A rule that allows never becomes wider: what cannot be expressed is left out. A rule that denies or asks never becomes
narrower: what cannot be expressed asks about every call of the tool. Either way one sentence says so.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from reverie.quick import dataclass

MODES = {"default": "ask", "acceptEdits": "accept_edits", "plan": "read_only"}
"""`bypassPermissions` and others are not taken over: the user says here, and only here, that nothing is asked."""
_RULE = re.compile(r"([A-Za-z_*][\w*-]*)(?:\((.*)\))?", re.DOTALL)
_FILE_TOOLS = frozenset({"Read", "Write", "Edit", "Grep", "Glob"})
_RENAMED = {"MultiEdit": "Edit", "NotebookEdit": "Edit", "Task": "Agent", "LS": "Glob"}
_NOT_HERE = frozenset(
    {"WebFetch", "WebSearch", "Skill", "SlashCommand", "TodoWrite", "KillShell", "BashOutput", "ExitPlanMode"}
)
_LONGEST = 1_000
_MOST_CHOICES = 200
_SHOWN = 3
_LONGEST_SHOWN = 60


@dataclass(slots=True)
class RuleReader:
    """Reads rules one by one. `project`: where a path with one `/` at its beginning starts."""

    project: Path
    rules: dict[str, list[str]] = field(default_factory=lambda: {"allow": [], "ask": [], "deny": []}, init=False)
    _left_out: list[str] = field(default_factory=list[str], init=False)
    _widened: list[str] = field(default_factory=list[str], init=False)

    def read(self, kind: str, given: object) -> None:
        """Adds one rule of a list (`allow`, `ask` or `deny`)."""
        found = _RULE.fullmatch(given.strip()) if isinstance(given, str) and is_plain(given) else None
        if found is None or not isinstance(given, str):
            self._left_out.append(f"{kind} {_cut(given)}")
            return
        tool, pattern = _RENAMED.get(found[1], found[1]), found[2]
        if kind == "allow" and found[1] in ("NotebookEdit", "LS"):
            return  # these tools do not exist here, and a rule for them must not allow another one
        if pattern is None or _means_all(tool, pattern, allows=kind == "allow"):
            self.rules[kind].append(tool)
            return
        exact = list(self._translate(tool, pattern.strip(), allows=kind == "allow"))
        if exact:
            self.rules[kind] += exact
        elif kind == "allow":
            if tool not in _NOT_HERE:
                self._left_out.append(f"{kind} {_cut(given)}")
        else:
            self.rules["ask"].append(tool)
            if tool not in _NOT_HERE:
                self._widened.append(f"{kind} {_cut(given)}")

    def _translate(self, tool: str, pattern: str, *, allows: bool) -> Iterator[str]:
        """Yields our rules that together mean the same; nothing if there are none."""
        if tool == "Bash":
            fixed = pattern[:-2] if pattern.endswith((":*", " *")) else pattern
            if not allows and fixed.strip("* "):
                yield f"Bash({pattern})"
                return
            if fixed.endswith("*") and fixed[:-1].strip() and not fixed[-2].isspace():  # `npm*`: the whole word only
                fixed, pattern = fixed[:-1], f"{fixed[:-1]}:*"
            if "*" not in fixed and fixed.strip():
                yield f"Bash({pattern})"
        elif tool in _FILE_TOOLS and not pattern.startswith("!") and not (allows and "{" in pattern):
            path = self._path(pattern)
            if path is not None:
                yield f"{tool}({path})"
                if not allows and not path.endswith(("/", "*")):  # the name of a folder means everything in it
                    yield f"{tool}({path if '/' in path else f'**/{path}'}/**)"

    def _path(self, pattern: str) -> str | None:
        """The pattern in our form: `//x` is absolute, `/x` starts at the project; others are the same."""
        if pattern.count("{") > 1 or pattern.count(",") > _MOST_CHOICES or "{" in str(self.project):
            return None
        if pattern.startswith("//"):
            return pattern[1:]
        return glob.escape(str(self.project)) + pattern if pattern.startswith("/") else pattern

    def problems(self) -> Iterator[str]:
        """Yields one sentence per kind of problem."""
        if self._left_out:
            yield f"permission rules that cannot be read or expressed here are left out: {_list(self._left_out)}"
        if self._widened:
            yield f"permission rules that cannot be expressed here ask about more calls: {_list(self._widened)}"


def is_plain(text: str) -> bool:
    """Whether the text can be a rule at all."""
    return len(text) <= _LONGEST and re.search("[\0\ud800-\udfff]", text) is None


def _means_all(tool: str, pattern: str, *, allows: bool) -> bool:
    """Whether the pattern means every call of the tool. `Read(*)` allows files below the working folder only."""
    if allows:
        return pattern == "*" and tool not in _FILE_TOOLS
    return pattern.strip() in ("", "*", "**", "**/*")


def split_rules(text: str) -> list[str]:
    """Splits a list such as `Read, Bash(git add:*)` at commas and blanks outside brackets."""
    found, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth == 0 and (char == "," or char.isspace()):
            found.append("")
        else:
            found[-1] += char
    return [rule for rule in found if rule]


def _cut(given: object) -> str:
    text = str(given).strip()
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


def _list(rules: list[str]) -> str:
    more = f" and {len(rules) - _SHOWN} more" if len(rules) > _SHOWN else ""
    return ", ".join(rules[:_SHOWN]) + more
