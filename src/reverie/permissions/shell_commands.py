"""Finds the simple commands in a shell command, for permission rules such as `Bash(git status:*)`.

`plain_commands` returns them only if nothing else can run (for rules that allow). `all_commands` returns every command
that it can find, at any depth (for rules that deny or ask). Nothing is run or expanded.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from reverie.quick import dataclass

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_JOINERS = frozenset({"&&", "||", ";", "|"})
# Text that may run a command, or that two parsers may read differently. It is refused even in quotes: that only costs
# a question.
_UNSAFE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f`]|\$(?![A-Za-z_])|[<>=]\(")
# Programs that run another program from their arguments, and programs that read commands from an argument.
_WRAPPERS = frozenset(
    {"sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "time", "xargs", "command", "builtin", "exec"}
    | {"setsid", "stdbuf", "chroot", "find", "parallel", "watch"}
)
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "eval"})
_MAX_DEPTH = 4
_MOST_PARSED = 16_384  # characters: the time of the grammar grows with the square on text that is not shell
_MOST_PLAIN = 4 * _MOST_PARSED  # for text that has only words and joiners
_REDIRECTS_OR_GROUPS = re.compile(r"[<>()]")
_WRAPPED = 64  # how many words after the name of a wrapper may begin the program it runs
# The grammar looks up the character after `{` or `{1..` in a table of 256 entries: beyond ASCII it can end the process.
_READS_BEYOND = re.compile(r"\{[\d.]*[^\x00-\x7f]")
# Where a command may begin in a text that is too long to parse: once without quotes, once with quotes as breaks.
_BREAKS = re.compile(r"[\n;&|(){}`]|\$\(")
_BREAKS_AND_QUOTES = re.compile(r"[\n;&|(){}`\"']|\$\(")
_QUOTING = str.maketrans("", "", "\"'\\")


@dataclass(frozen=True, slots=True)
class FoundCommand:
    """One program and its arguments; None for a word that only the shell can expand. `text` is as written."""

    words: tuple[str | None, ...]
    text: str
    piped: bool = False


def plain_commands(command: str) -> tuple[FoundCommand, ...] | None:
    """Returns everything the command runs, or None if it is more than simple commands with `&&`, `||`, `;` and `|`.

    Redirections to /dev/null and between streams (`2>&1`) are fine. Assignments, substitutions, subshells, line breaks,
    background jobs and comments give None.
    """
    source = command.strip(" \t\n")
    if len(source) > _MOST_PARSED and (len(source) > _MOST_PLAIN or _REDIRECTS_OR_GROUPS.search(source)):
        return None
    # Invisible characters (no-break space, line separator) end a word for the grammar, but not for bash.
    if (
        not source
        or _UNSAFE.search(source)
        or _READS_BEYOND.search(source)
        or not source.replace("\t", " ").isprintable()
    ):
        return None
    by_lexer = _find_joiners(source)
    if by_lexer is None or not _JOINERS.issuperset(by_lexer):
        return None
    root = parse(source.encode("utf-8", "replace"))  # a lone surrogate becomes `?`
    collected = None if root.has_error else _collect(root)
    if collected is None:
        return None
    found, joiners = collected
    if by_lexer != joiners or not _covers(root, source.encode()):
        return None
    piped = [False, *(joiner == "|" for joiner in joiners)]
    return tuple(FoundCommand(one.words, one.text, behind) for one, behind in zip(found, piped, strict=False))


def all_commands(command: str, depth: int = 0) -> Iterator[FoundCommand]:
    """Yields every simple command it finds: in substitutions and subshells, after `sudo`, in `bash -c '…'`.

    Text that is too long, or that the grammar cannot read, is split roughly: that yields more than would run.
    """
    if len(command) > _MOST_PARSED or _READS_BEYOND.search(command):
        yield from _split_roughly(command)
        return
    for node in _walk(parse(command.encode("utf-8", "replace"))):
        if node.type != "command":
            continue
        words = tuple(_literal(child) for child in _word_nodes(node))
        yield FoundCommand(words, _text(node))
        program = (words[0] or "").rsplit("/", 1)[-1] if words else ""
        if program in _WRAPPERS:
            for start in range(1, min(len(words), _WRAPPED)):
                yield FoundCommand(words[start:], _text(node))
        if (program in _SHELLS or program in _WRAPPERS) and depth < _MAX_DEPTH:
            for word in words[1:]:
                if word and " " in word:
                    yield from all_commands(word, depth + 1)


def parse(source: bytes) -> Node:
    """Returns the root of the syntax tree, by a full bash grammar."""
    from tree_sitter import Parser

    return Parser(_language()).parse(source).root_node


@cache
def _language() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _split_roughly(command: str) -> Iterator[FoundCommand]:
    for breaks in (_BREAKS, _BREAKS_AND_QUOTES):
        for piece in breaks.split(command):
            words = tuple(piece.translate(_QUOTING).split())
            if not words:
                continue
            yield FoundCommand(words, piece)
            if words[0].rsplit("/", 1)[-1] in _WRAPPERS | _SHELLS:
                for start in range(1, min(len(words), _WRAPPED)):
                    yield FoundCommand(words[start : start + _WRAPPED], piece)


def _walk(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(one.children))


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _collect(root: Node) -> tuple[list[FoundCommand], list[str]] | None:
    """Returns commands and joiners in order; None if there is anything else. No recursion: `a && b && …` nests."""
    found: list[FoundCommand] = []
    joiners: list[str] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "redirected_statement" and all(map(_writes_no_file, node.children[1:])):
            node = node.children[0]
        if node.type in ("program", "pipeline", "list"):
            waiting.extend(reversed(node.children))
        elif node.type in _JOINERS and not node.is_missing:
            joiners.append(node.type)
        elif node.type == "command" and _is_plain_command(node):
            found.append(FoundCommand(tuple(_literal(word) for word in _word_nodes(node)), _text(node)))
        else:
            return None
    return (found, joiners) if found else None


def _is_plain_command(node: Node) -> bool:
    words = _word_nodes(node)
    return len(words) == node.child_count and all(_is_plain_word(word) for word in words)


def _word_nodes(node: Node) -> list[Node]:
    """The words of a command, its name first, without assignments and redirections."""
    kept: list[Node] = []
    for child in node.children:
        if child.type == "command_name":
            kept.extend(child.children[:1])
        elif child.type not in ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect"):
            kept.append(child)
    return kept


def _is_plain_word(node: Node) -> bool:
    match node.type:
        case "word" | "number" | "raw_string":
            return node.child_count == 0
        case "string":
            return all(
                part.type in ('"', "string_content") or _is_plain_variable(part)
                for part in node.children
                if not part.is_missing
            )
        case "simple_expansion":
            return _is_plain_variable(node)
        case "concatenation":
            return all(_is_plain_word(part) for part in node.children)
        case _:
            return False


def _is_plain_variable(node: Node) -> bool:
    return node.type == "simple_expansion" and [child.type for child in node.children] == ["$", "variable_name"]


def _writes_no_file(node: Node) -> bool:
    if node.type != "file_redirect":
        return False
    parts = [child for child in node.children if child.type != "file_descriptor"]
    if len(parts) != 2:
        return False
    operator, target = parts
    if operator.type in (">", ">>", "&>", "&>>"):
        return _text(target) == "/dev/null"
    return operator.type == ">&" and _text(target) in ("1", "2")


def _literal(node: Node) -> str | None:
    text = _text(node)
    match node.type:
        case "word" | "number":
            return re.sub(r"\\(.)", r"\1", text)
        case "raw_string":
            return text[1:-1]
        case "string":
            if any(part.type not in ('"', "string_content") for part in node.children):
                return None
            return re.sub(r'\\([$`"\\])', r"\1", text[1:-1])
        case "concatenation":
            parts = [_literal(part) for part in node.children]
            return None if None in parts else "".join(part for part in parts if part is not None)
        case _:
            return None


def _covers(root: Node, source: bytes) -> bool:
    """Whether every byte that is not blank belongs to a token of the grammar."""
    end = 0
    for leaf in (node for node in _walk(root) if not node.child_count):
        if source[end : leaf.start_byte].strip(b" \t"):
            return False
        end = max(end, leaf.end_byte)
    return not source[end:].strip(b" \t")


def _find_joiners(source: str) -> list[str] | None:
    """The joiners that a second, simpler parser finds; if the two differ, the quotes were read wrongly."""
    lexer = shlex.shlex(source, posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    lexer.whitespace = " \t"
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    return [token for token in tokens if token and set(token) <= set(";&|")]
