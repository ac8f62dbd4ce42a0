"""Permission rules as people write them in settings: `Edit`, `Write(src/**)`, `Bash(git status:*)`.

Two questions with opposite leanings: `covered` (do rules that allow speak for the whole call?) must be certain,
`touched` (does a rule that denies or asks apply to any part?) must miss nothing it can see. Guards, not a sandbox.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from reverie.errors import UserError
from reverie.permissions.path_glob import compile_glob, split_literal
from reverie.permissions.rules import ToolCall

_RULE = re.compile(r"([A-Za-z_*][\w*-]*)(?:\((.*)\))?", re.DOTALL)
_PATH_KEYS = {"Read": "file_path", "Write": "file_path", "Edit": "file_path", "Grep": "path", "Glob": "path"}
# A rule for Edit speaks for every change to a file, one for Read for every look into one.
_ALSO = {"Edit": frozenset({"Edit", "Write"}), "Read": frozenset({"Read", "Grep", "Glob"})}


@dataclass(frozen=True, slots=True)
class Rule:
    """One parsed rule: a tool's name (with `*` for any) and, for Bash and the file tools, what it is limited to."""

    tool: str
    pattern: str | None = None

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"


def parse_rule(text: str) -> Rule:
    """Reads one rule; raises UserError with a sentence that says what to write instead."""
    found = _RULE.fullmatch(text.strip())
    if not found:
        raise UserError(
            f"The permission rule {text!r} cannot be read: write a tool's name, or a name and a pattern, "
            "as in Edit, Write(src/**) or Bash(git status:*)."
        )
    tool, pattern = found[1], found[2]
    if pattern is None:
        return Rule(tool)
    if not pattern.strip():
        raise UserError(f"The permission rule {text!r} has an empty pattern: write {tool} alone to mean every call.")
    if tool != "Bash" and tool not in _PATH_KEYS:
        known = ", ".join(["Bash", *_PATH_KEYS])
        raise UserError(
            f"The permission rule {text!r} has a pattern, which only {known} understand: write {tool} alone."
        )
    if tool != "Bash":
        try:
            compile_glob(pattern)
        except ValueError as error:
            raise UserError(f"The permission rule {text!r} cannot be used: {error}.") from error
    return Rule(tool, pattern)


def covered(call: ToolCall, rules: Iterable[Rule]) -> Rule | None:
    """A rule that speaks for the whole call, or None. Several Bash rules may share the parts of one command."""
    fitting = [rule for rule in rules if _names(rule, call.tool)]
    for rule in fitting:
        if rule.pattern is None:
            return rule
    if call.tool == "Bash":
        return _command_covered(str(call.input.get("command", "")), fitting, call.cwd)
    seen = touched_paths(call)
    for rule in fitting:
        if seen and all(_path_matches(rule.pattern or "", path, call.cwd) for path in seen):
            return rule
    return None


def touched(call: ToolCall, rules: Iterable[Rule]) -> Rule | None:
    """The first rule that applies to the call or to any part of it, or None."""
    fitting = [rule for rule in rules if _names(rule, call.tool)]
    for rule in fitting:
        if rule.pattern is None:
            return rule
    if call.tool == "Bash":
        return _command_touched(str(call.input.get("command", "")), fitting)
    seen = touched_paths(call)
    for rule in fitting:
        if any(_path_matches(rule.pattern or "", path, call.cwd) for path in seen):
            return rule
    return None


def touched_paths(call: ToolCall) -> tuple[Path, ...]:
    """The path a file tool names: as written (made absolute), and where its symbolic links lead. Empty for others."""
    key = _PATH_KEYS.get(call.tool)
    if key is None:
        return ()
    given = str(call.input.get(key) or "")
    if call.tool == "Glob" and (folder := split_literal(str(call.input.get("pattern", "")))[0]):
        given = str(Path(given) / _home(folder))
    written = Path(os.path.normpath(call.cwd / _home(given)))
    if "\0" in given:
        return (written,)  # no such file can be: the tool says so
    real = Path(os.path.realpath(call.cwd / _home(given)))
    return (written,) if written == real else (written, real)


def rule_for(call: ToolCall) -> str | None:
    """The narrowest rule that would allow this call from now on; None if no rule can say it."""
    if call.tool == "Bash":
        command = str(call.input.get("command", "")).strip()
        return None if not command or _prefix(command) is not None else f"Bash({command})"
    if call.tool in _PATH_KEYS:
        seen = touched_paths(call)
        path = seen[-1]
        if len(seen) > 1 or "{" in str(path):
            return None  # two names for one file, or a name no pattern can spell
        name = f"./{path.relative_to(call.cwd)}" if path.is_relative_to(call.cwd) else str(path)
        return f"{call.tool}({glob.escape(name)})"
    return call.tool


def _names(rule: Rule, tool: str) -> bool:
    return tool in _ALSO.get(rule.tool, ()) or fnmatchcase(tool, rule.tool)


def _home(given: str) -> str:
    return os.path.expanduser(given)  # noqa: PTH111 (unlike Path's, it leaves an unknown user's name as it is)


def _path_matches(pattern: str, path: Path, cwd: Path) -> bool:
    """A relative pattern is meant from the working folder, and one without a slash at any depth below it."""
    folder, rest = split_literal(_home(pattern))
    matcher = compile_glob(rest, anchored="/" in pattern)
    for base in {Path(os.path.normpath(cwd / folder)), Path(os.path.realpath(cwd / folder))}:
        if path.is_relative_to(base) and matcher.matches(path.relative_to(base).as_posix()):
            return True
    return False


def _prefix(pattern: str) -> tuple[str, ...] | None:
    """The words a command must begin with, if the pattern ends in `:*` or ` *`; `*` alone is any command."""
    if pattern.strip() == "*":
        return ()
    for ending in (":*", " *"):
        if pattern.endswith(ending):
            return tuple(pattern.removesuffix(ending).split())
    return None


def _command_covered(command: str, rules: list[Rule], cwd: Path) -> Rule | None:
    from reverie.permissions.secret_reads import why_secret
    from reverie.permissions.shell.commands import plain_commands
    from reverie.permissions.shell.read_only import is_read_only_shell

    prefixes: list[tuple[Rule, tuple[str, ...]]] = []
    for rule in rules:
        words = _prefix(rule.pattern or "")
        if words == () or (words is None and (rule.pattern or "").strip() == command.strip()):
            return rule
        if words:
            prefixes.append((rule, words))
    parts = plain_commands(command) if prefixes else None
    speaking: Rule | None = None
    for part in parts or ():
        found = next((rule for rule, words in prefixes if part.words[: len(words)] == words), None)
        if found is None:  # a part that only reads needs no rule: `npm test | tail -20` is as allowed as `npm test`
            text = f"ls | {part.text}" if part.piped else part.text
            if not is_read_only_shell(text) or why_secret(text, cwd) is not None:
                return None
        speaking = speaking or found
    return speaking


def _command_touched(command: str, rules: list[Rule]) -> Rule | None:
    from reverie.permissions.shell.commands import all_commands

    parts = list(all_commands(command))
    for rule in rules:
        words = _prefix(rule.pattern or "")
        if words is None:
            if command.strip() == (rule.pattern or "").strip():
                return rule
            words = tuple((rule.pattern or "").split())
        for part in parts:
            program = (part.words[0] or "").rsplit("/", 1)[-1] if part.words else ""
            if part.words[: len(words)] == words or (program, *part.words[1 : len(words)]) == words:
                return rule
    return None
