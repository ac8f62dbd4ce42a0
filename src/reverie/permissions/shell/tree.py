"""What a full bash grammar (tree-sitter) sees in a command: only node kinds known to be harmless, every byte covered.

Default deny: a kind not named here refuses the command, and so does any error or missing node. It yields the tokens
with their byte positions, which `shell` compares with the hand-written reading. Never looks at what a word means.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from reverie.permissions.rules import NotReadOnly
from reverie.permissions.shell.words import Span

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_STATEMENTS = frozenset({"command", "pipeline", "list", "redirected_statement"})
_LEAF_WORDS = frozenset({"word", "number", "raw_string", "==", "=~"})
_STRING_PARTS = frozenset({'"', "string_content", "$"})
_NAMES = {
    "subshell": "a subshell",
    "function_definition": "a function definition",
    "variable_assignment": "an assignment",
    "variable_assignments": "an assignment",
    "command_substitution": "a command substitution",
    "process_substitution": "a process substitution",
    "comment": "a comment",
    "heredoc_redirect": "a here-document",
    "herestring_redirect": "a here-string",
    "compound_statement": "a brace group",
    "negated_command": "a negation",
    "declaration_command": "a declaration",
    "&": "a background job",
    "||": "the joiner ||",
}


def read_tree(source: bytes) -> tuple[Span, ...]:
    """The tokens of a command by the grammar; raises `NotReadOnly` for anything beyond the allowed node kinds."""
    from tree_sitter import Parser

    root = Parser(_language()).parse(source).root_node
    if root.has_error or root.type != "program":
        raise NotReadOnly("it does not parse as a complete command")
    spans: list[Span] = []
    _sequence(root, frozenset({";"}), spans)
    _account_for_every_byte(source, spans)
    return tuple(spans)


@cache
def _language() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _refuse(node: Node) -> NotReadOnly:
    return NotReadOnly(f"it holds {_NAMES.get(node.type, f'a construct that is not allowed ({node.type})')}")


def _sequence(node: Node, operators: frozenset[str], spans: list[Span]) -> None:
    for child in node.children:
        if child.type in operators:
            spans.append(Span("operator", child.start_byte, child.end_byte))
        else:
            _statement(child, spans)


def _statement(node: Node, spans: list[Span]) -> None:
    if node.type not in _STATEMENTS or node.is_missing:
        raise _refuse(node)
    match node.type:
        case "command":
            _command(node, spans)
        case "pipeline":
            _sequence(node, frozenset({"|"}), spans)
        case "list":
            _sequence(node, frozenset({"&&"}), spans)
        case _:
            body, *redirects = node.children
            _statement(body, spans)
            for redirect in redirects:
                _redirect(redirect, spans)


def _command(node: Node, spans: list[Span]) -> None:
    name, *arguments = node.children
    if name.type != "command_name" or [child.type for child in name.children] != ["word"]:
        raise _refuse(name) if name.type != "command_name" else NotReadOnly("the program's name is not a plain word")
    spans.append(Span("word", name.start_byte, name.end_byte))
    for argument in arguments:
        _word(argument, spans)


def _redirect(node: Node, spans: list[Span]) -> None:
    if node.type != "file_redirect":
        raise _refuse(node)
    kinds = [child.type for child in node.children]
    if kinds[:3] != ["file_descriptor", ">", "word"]:
        raise NotReadOnly("it redirects, and the only redirection allowed is 2>/dev/null")
    spans.append(Span("redirect", node.start_byte, node.children[2].end_byte))
    for argument in node.children[3:]:  # the grammar hangs arguments behind a redirection under it
        _word(argument, spans)


def _word(node: Node, spans: list[Span]) -> None:
    _check_word(node)
    spans.append(Span("word", node.start_byte, node.end_byte))


def _check_word(node: Node) -> None:
    if node.is_missing or node.is_error:
        raise _refuse(node)
    if node.type in _LEAF_WORDS:
        if node.child_count:
            raise _refuse(node.children[0])
        return
    match node.type:
        case "string":
            for part in node.children:
                if part.type not in _STRING_PARTS or part.child_count:
                    raise _refuse(part)
        case "concatenation":
            end = node.start_byte
            for part in node.children:
                if part.start_byte != end:
                    raise NotReadOnly("a word of it has a gap that the grammar cannot account for")
                _check_word(part)
                end = part.end_byte
        case _:
            raise _refuse(node)


def _account_for_every_byte(source: bytes, spans: list[Span]) -> None:
    end = 0
    for span in [*spans, Span("operator", len(source), len(source))]:
        if span.start < end or source[end : span.start].strip(b" \t"):
            raise NotReadOnly("part of it is not covered by the parsed commands")
        end = span.end
