"""Permission rules as people write them in settings: `Edit`, `Write(src/**)`, `Bash(git status:*)`.

`find_covering_rule` is for rules that allow: it must be certain that the whole call is covered. `find_applying_rule` is
for rules that deny or ask: it must find every part that it can see. The rules are guards, not a sandbox.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from reverie.errors import UserError
from reverie.permissions.path_glob import compile_glob, split_literal
from reverie.permissions.rules import ToolCall
from reverie.quick import dataclass

_RULE = re.compile(r"([A-Za-z_*][\w*-]*)(?:\((.*)\))?", re.DOTALL)
_PATH_KEYS = {"Read": "file_path", "Write": "file_path", "Edit": "file_path", "Grep": "path", "Glob": "path"}
# A rule for Edit applies to every tool that changes a file, a rule for Read to every tool that reads one.
_ALSO = {"Edit": frozenset({"Edit", "Write"}), "Read": frozenset({"Read", "Grep", "Glob"})}


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """One parsed rule: the name of a tool (with `*` for any) and, for Bash and the file tools, a pattern."""

    tool: str
    pattern: str | None = None

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"


def parse_rule(text: str) -> PermissionRule:
    """Parses one rule; raises UserError that says what to write instead."""
    found = _RULE.fullmatch(text.strip())
    if not found:
        raise UserError(
            f"The permission rule {text!r} cannot be read: write a tool's name, or a name and a pattern, "
            "as in Edit, Write(src/**) or Bash(git status:*)."
        )
    tool, pattern = found[1], found[2]
    if pattern is None:
        return PermissionRule(tool)
    if not pattern.strip():
        raise UserError(f"The permission rule {text!r} has an empty pattern: write {tool} alone to mean every call.")
    if tool != "Bash" and tool not in _PATH_KEYS:
        known = ", ".join(["Bash", *_PATH_KEYS])
        raise UserError(f"The permission rule {text!r} has a pattern, which only {known} have: write {tool} alone.")
    if tool != "Bash":
        try:
            compile_glob(pattern)
        except ValueError as error:
            raise UserError(f"The permission rule {text!r} cannot be used: {error}.") from error
    return PermissionRule(tool, pattern)


_BLANKS = " \t\n"
"""What a shell drops at the ends of a command; other white space is a part of a word."""


def find_covering_rule(call: ToolCall, rules: Iterable[PermissionRule]) -> PermissionRule | None:
    """Returns a rule that covers the whole call, or None. Several Bash rules together may cover one command."""
    return _find_rule(call, rules, _cover_command, all)


def find_applying_rule(call: ToolCall, rules: Iterable[PermissionRule]) -> PermissionRule | None:
    """Returns the first rule that applies to the call or to any part of it, or None."""
    return _find_rule(call, rules, _find_in_command, any)


def _find_rule(
    call: ToolCall,
    rules: Iterable[PermissionRule],
    find_for_command: Callable[[str, list[PermissionRule]], PermissionRule | None],
    combine: Callable[[Iterable[bool]], bool],
) -> PermissionRule | None:
    fitting = [rule for rule in rules if _is_for_tool(rule, call.tool)]
    for rule in fitting:
        if rule.pattern is None:
            return rule
    if call.tool == "Bash":
        return find_for_command(str(call.input.get("command", "")), fitting)
    paths = list_paths(call) if fitting else ()
    for rule in fitting:
        if paths and combine(_path_matches(rule.pattern or "", path, call.cwd) for path in paths):
            return rule
    return None


def is_wide(rule: PermissionRule) -> bool:
    """Whether a pattern is for many calls: a prefix of a command, or a glob. `Bash(*)` is for all of them."""
    if rule.pattern is None:
        return False
    return bool(_read_prefix(rule.pattern)) if rule.tool == "Bash" else glob.has_magic(rule.pattern)


def list_paths(call: ToolCall) -> tuple[Path, ...]:
    """The path that a file tool names: absolute as written, then with links resolved. Empty for other tools."""
    key = _PATH_KEYS.get(call.tool)
    if key is None:
        return ()
    given = str(call.input.get(key) or "")
    if call.tool == "Glob" and (folder := split_literal(str(call.input.get("pattern", "")))[0]):
        given = str(Path(given) / _expand_home(folder))
    written = Path(os.path.normpath(call.cwd / _expand_home(given)))
    if "\0" in given:
        return (written,)  # such a file cannot exist; the tool reports it
    real = Path(os.path.realpath(call.cwd / _expand_home(given)))
    return (written,) if written == real else (written, real)


def make_rule(call: ToolCall) -> str | None:
    """Returns the narrowest rule that allows this call in future; None if no rule can express it."""
    if call.tool == "Bash":
        command = str(call.input.get("command", "")).strip(_BLANKS)
        return None if not command or _read_prefix(command) is not None else f"Bash({command})"
    if call.tool in _PATH_KEYS:
        seen = list_paths(call)
        path = seen[-1]
        if len(seen) > 1 or "{" in str(path):
            return None  # the file has two names, or a name that a pattern cannot express
        name = f"./{path.relative_to(call.cwd)}" if path.is_relative_to(call.cwd) else str(path)
        return f"{call.tool}({glob.escape(name)})"
    return call.tool


def _is_for_tool(rule: PermissionRule, tool: str) -> bool:
    """`mcp__server` means every tool of this server; a longer name is a tool, never the start of another one's name."""
    is_server = _names_server(rule.tool) and fnmatchcase(tool, f"{rule.tool}__*")
    return is_server or tool in _ALSO.get(rule.tool, ()) or fnmatchcase(tool, rule.tool)


def _names_server(tool: str) -> bool:
    """Whether the name in a rule is that of an MCP server (`mcp__server`), not of one of its tools."""
    return tool.startswith("mcp__") and "__" not in tool.removeprefix("mcp__")


def _expand_home(given: str) -> str:
    return os.path.expanduser(given)  # noqa: PTH111 (unlike Path's, it keeps the name of an unknown user)


def _path_matches(pattern: str, path: Path, cwd: Path) -> bool:
    """A relative pattern starts at the working folder; a pattern without a slash matches at any depth below it."""
    folder, rest = split_literal(_expand_home(pattern))
    matcher = compile_glob(rest, anchored="/" in pattern)
    for base in {Path(os.path.normpath(cwd / folder)), Path(os.path.realpath(cwd / folder))}:
        if path.is_relative_to(base) and matcher.matches(path.relative_to(base).as_posix()):
            return True
    return False


def _read_prefix(pattern: str) -> tuple[str, ...] | None:
    """The first words of a matching command, if the pattern ends in `:*` or ` *`; `*` alone means any command."""
    if pattern.strip() == "*":
        return ()
    for ending in (":*", " *"):
        if pattern.endswith(ending):
            return tuple(pattern.removesuffix(ending).split())
    return None


def _read_wildcards(pattern: str) -> tuple[str, ...] | None:
    """The globs of a pattern with a `*` that is not only its end: `git * --force`, `curl*`; None for other patterns."""
    ending = pattern.endswith((":*", " *"))
    fixed = pattern[:-2] if ending else pattern
    if "*" not in fixed or not fixed.strip("* "):
        return None
    plain = fixed.replace("[", "[[]").replace("?", "[?]")
    return (plain, f"{plain} *") if ending else (plain,)


def _cover_command(command: str, rules: list[PermissionRule]) -> PermissionRule | None:
    from reverie.permissions.handed_on import does_more
    from reverie.permissions.shell_commands import plain_commands
    from reverie.permissions.strict_shell import is_read_only_shell, reads_widely

    prefixes: list[tuple[PermissionRule, tuple[str, ...]]] = []
    for rule in rules:
        words = _read_prefix(rule.pattern or "")
        if words == () or (words is None and (rule.pattern or "").strip(_BLANKS) == command.strip(_BLANKS)):
            return rule
        if words:
            prefixes.append((rule, words))
    parts = plain_commands(command) if prefixes else None
    speaking: PermissionRule | None = None
    for part in parts or ():
        fitting = ((rule, words) for rule, words in prefixes if part.words[: len(words)] == words)
        found = next((rule for rule, words in fitting if not does_more(part.words, len(words))), None)
        if found is None:  # a part that only reads does not need a rule: `npm test` also allows `npm test | tail -20`
            text = f"ls | {part.text}" if part.piped else part.text
            if not is_read_only_shell(text) or reads_widely(text):
                return None
        speaking = speaking or found
    return speaking


def _find_in_command(command: str, rules: list[PermissionRule]) -> PermissionRule | None:
    from reverie.permissions.shell_commands import all_commands

    parts = list(all_commands(command))
    for rule in rules:
        if (wild := _read_wildcards(rule.pattern or "")) is not None:
            texts = (
                command.strip(),
                *(one for part in parts for one in (part.text, " ".join(filter(None, part.words)))),
            )
            if any(fnmatchcase(text, one) for text in texts for one in wild):
                return rule
            continue
        words = _read_prefix(rule.pattern or "")
        if words is None:
            if command.strip(_BLANKS) == (rule.pattern or "").strip(_BLANKS):
                return rule
            words = tuple((rule.pattern or "").split())
        for part in parts:
            program = (part.words[0] or "").rsplit("/", 1)[-1] if part.words else ""
            if part.words[: len(words)] == words or (program, *part.words[1 : len(words)]) == words:
                return rule
    return None
