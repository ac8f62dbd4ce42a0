"""Parses a command with a full bash grammar (tree-sitter) and accepts only node kinds that are known as harmless.

Every other kind, error or missing node refuses the command. Returns the tokens with their byte positions, which
`read_only` compares with those of our own parser (`words`). Never looks at what a word means.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from reverie.permissions.rules import NotReadOnly
from reverie.permissions.shell.words import HARMLESS_REDIRECT, PLAIN_VARIABLE, TokenSpan

if TYPE_CHECKING:
    from tree_sitter import Language, Node

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


def read_tree(source: bytes, *, wide: bool = False) -> tuple[TokenSpan, ...]:
    """Returns the tokens that the grammar finds; raises `NotReadOnly` for a node kind that is not allowed.

    `wide` means the same as for `words.read_words`.
    """
    root = parse(source)
    if root.has_error or root.type != "program":
        raise NotReadOnly("it does not parse as a complete command")
    spans: list[TokenSpan] = []
    _read_sequence(root, frozenset({";"}), spans, wide)
    _check_every_byte(source, spans)
    return tuple(spans)


def parse(source: bytes) -> Node:
    """Returns the root of the syntax tree."""
    from tree_sitter import Parser

    return Parser(_language()).parse(source).root_node


@cache
def _language() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _refuse(node: Node) -> NotReadOnly:
    return NotReadOnly(f"it holds {_NAMES.get(node.type, f'a construct that is not allowed ({node.type})')}")


def _read_sequence(node: Node, operators: frozenset[str], spans: list[TokenSpan], wide: bool) -> None:
    for child in node.children:
        if child.type in operators:
            spans.append(TokenSpan("operator", child.start_byte, child.end_byte))
        else:
            _read_statement(child, spans, wide)


def _read_statement(node: Node, spans: list[TokenSpan], wide: bool) -> None:
    match "" if node.is_missing else node.type:
        case "command":
            _read_command(node, spans, wide)
        case "pipeline":
            _read_sequence(node, frozenset({"|"}), spans, wide)
        case "list":
            _read_sequence(node, frozenset({"&&", "||"} if wide else {"&&"}), spans, wide)
        case "redirected_statement":
            body, *redirects = node.children
            _read_statement(body, spans, wide)
            for redirect in redirects:
                _read_redirect(redirect, spans, wide)
        case _:
            raise _refuse(node)


def _read_command(node: Node, spans: list[TokenSpan], wide: bool) -> None:
    name, *arguments = node.children
    if name.type != "command_name" or [child.type for child in name.children] != ["word"]:
        raise _refuse(name) if name.type != "command_name" else NotReadOnly("the program's name is not a plain word")
    spans.append(TokenSpan("word", name.start_byte, name.end_byte))
    for argument in arguments:
        _read_word(argument, spans, wide)


def _read_redirect(node: Node, spans: list[TokenSpan], wide: bool) -> None:
    if node.type != "file_redirect":
        raise _refuse(node)
    kinds = [child.type for child in node.children]
    size = 3 if kinds[0] == "file_descriptor" else 2
    if wide and len(kinds) >= size:
        end = node.children[size - 1].end_byte
        text = (node.text or b"")[: end - node.start_byte].decode("utf-8", "replace")
        allowed = HARMLESS_REDIRECT.fullmatch(text) is not None
    else:
        allowed = kinds[:3] == ["file_descriptor", ">", "word"]
    if not allowed:
        raise NotReadOnly("it redirects, and the only redirection allowed is 2>/dev/null")
    spans.append(TokenSpan("redirect", node.start_byte, node.children[size - 1].end_byte))
    for argument in node.children[size:]:  # the grammar puts arguments after a redirection into its node
        _read_word(argument, spans, wide)


def _read_word(node: Node, spans: list[TokenSpan], wide: bool) -> None:
    _check_word(node, wide)
    spans.append(TokenSpan("word", node.start_byte, node.end_byte))


def _check_word(node: Node, wide: bool) -> None:
    if node.is_missing or node.is_error:
        raise _refuse(node)
    if wide and _is_plain_variable(node):
        return
    if node.type in _LEAF_WORDS:
        if node.child_count:
            raise _refuse(node.children[0])
        return
    match node.type:
        case "string":
            for part in node.children:
                if (part.type not in _STRING_PARTS or part.child_count) and not (wide and _is_plain_variable(part)):
                    raise _refuse(part)
        case "concatenation":
            end = node.start_byte
            for part in node.children:
                if part.start_byte != end:
                    raise NotReadOnly("a word of it has a gap that the grammar does not explain")
                _check_word(part, wide)
                end = part.end_byte
        case _:
            raise _refuse(node)


def _is_plain_variable(node: Node) -> bool:
    text = (node.text or b"").decode("utf-8", "replace")
    return node.type == "simple_expansion" and not node.has_error and PLAIN_VARIABLE.fullmatch(text) is not None


def _check_every_byte(source: bytes, spans: list[TokenSpan]) -> None:
    end = 0
    for span in [*spans, TokenSpan("operator", len(source), len(source))]:
        if span.start < end or source[end : span.start].strip(b" \t"):
            raise NotReadOnly("part of it is not covered by the parsed commands")
        end = span.end
