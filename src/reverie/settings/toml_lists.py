"""Adds an item to a list in a TOML text, or removes it, and keeps everything else as it is written.

Comments, order and spacing stay. The result is parsed again: if it does not say exactly what was wanted, it is refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from reverie.errors import UserError
from reverie.parsing import Unparsable, load_toml

if TYPE_CHECKING:
    from tree_sitter import Node


def add_to_list(text: str, section: str, key: str, item: str) -> str:
    """Returns the text with `item` at the end of the list `section.key`; unchanged if it is there already."""
    items = _items(text, section, key)
    if item in items:
        return text
    raw = text.encode()
    found = _find_list(raw, section, key)
    if found is not None:
        changed = _insert(raw, found, _quote(item))
    else:
        changed = _add_list(raw, section, key, _quote(item))
    return _checked(text, changed.decode(), section, key, [*items, item])


def remove_from_list(text: str, section: str, key: str, item: str) -> str:
    """Returns the text without `item` in the list; unchanged if it is not there."""
    items = _items(text, section, key)
    if item not in items:
        return text
    raw = text.encode()
    found = _find_list(raw, section, key)
    values = _values(found) if found is not None else []
    for value in reversed(values):
        if _read(value) == item:
            raw = _cut(raw, value)
    return _checked(text, raw.decode(), section, key, [one for one in items if one != item])


def _items(text: str, section: str, key: str) -> list[str]:
    try:
        table: Any = load_toml(text).get(section, {})
    except Unparsable as error:
        raise UserError(f"The settings file cannot be changed: {error}.") from error
    found: object = cast("dict[str, object]", table).get(key) if isinstance(table, dict) else None
    return [str(one) for one in cast("list[object]", found)] if isinstance(found, list) else []


def _checked(before: str, after: str, section: str, key: str, wanted: list[str]) -> str:
    """Returns the new text if it says the same as before, with the wanted list."""
    expected = load_toml(before)
    expected.setdefault(section, {})[key] = wanted
    try:
        said = load_toml(after)
    except Unparsable:
        said = {}
    if said != expected:
        raise UserError(f"The file writes [{section}] in a form that cannot be changed safely: edit `{key}` by hand.")
    return after


def _quote(item: str) -> str:
    return json.dumps(item, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parse(raw: bytes) -> Node:
    import tree_sitter_toml
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_toml.language())).parse(raw).root_node


def _find_list(raw: bytes, section: str, key: str) -> Node | None:
    for table in _parse(raw).named_children:
        if table.type == "pair":
            if _name(table) == f"{section}.{key}":
                return _array(table)
        elif table.type == "table" and _name(table) == section:
            for pair in table.named_children:
                if pair.type == "pair" and _name(pair) == key:
                    return _array(pair)
    return None


def _name(node: Node) -> str:
    """The key of a pair or the name of a table, without quotes and blanks."""
    written = (node.named_children[0].text or b"").decode()
    return "".join(written.split()).replace('"', "").replace("'", "")


def _array(pair: Node) -> Node | None:
    return next((child for child in pair.named_children if child.type == "array"), None)


def _values(array: Node) -> list[Node]:
    return [child for child in array.named_children if child.type != "comment"]


def _read(value: Node) -> object:
    return load_toml(f"x = {(value.text or b'').decode()}")["x"]


def _insert(raw: bytes, array: Node, item: str) -> bytes:
    end = array.end_byte - 1  # the closing bracket
    values = _values(array)
    if not values:
        return raw[:end] + item.encode() + raw[end:]
    last = values[-1]
    comma = next((one for one in array.children if one.type == "," and one.start_byte >= last.end_byte), None)
    line = raw.rfind(b"\n", 0, end) + 1
    if line > last.end_byte and not raw[line:end].strip():  # the bracket has its own line
        start = raw.rfind(b"\n", 0, last.start_byte) + 1
        indent = raw[start : len(raw[: last.start_byte])]
        indent = indent if not indent.strip() else b"    "
        raw = raw[:line] + indent + item.encode() + b",\n" + raw[line:]
        return raw if comma is not None else raw[: last.end_byte] + b"," + raw[last.end_byte :]
    at = comma.end_byte if comma is not None else last.end_byte
    return raw[:at] + (b" " if comma is not None else b", ") + item.encode() + raw[at:]


def _add_list(raw: bytes, section: str, key: str, item: str) -> bytes:
    root = _parse(raw)
    for node in root.named_children:
        if node.type == "table" and _name(node) == section:
            line = raw.find(b"\n", node.start_byte)
            if line < 0:
                raw, line = raw + b"\n", len(raw)
            return raw[: line + 1] + f"{key} = [{item}]\n".encode() + raw[line + 1 :]
        if node.type == "pair" and _name(node).startswith(f"{section}."):
            return raw[: node.start_byte] + f"{section}.{key} = [{item}]\n".encode() + raw[node.start_byte :]
    gap = b"" if not raw.strip() else b"\n" if raw.endswith(b"\n") else b"\n\n"
    return raw + gap + f"[{section}]\n{key} = [\n    {item},\n]\n".encode()


def _cut(raw: bytes, value: Node) -> bytes:
    """Removes a value with its comma; its line too, if nothing else is on it."""
    start, end = value.start_byte, value.end_byte
    after = value.next_sibling
    while after is not None and after.type == "comment":
        after = after.next_sibling
    if after is not None and after.type == ",":
        end = after.end_byte if not raw[end : after.start_byte].strip() else end
    first, line_end = raw.rfind(b"\n", 0, start) + 1, raw.find(b"\n", end)
    if line_end >= 0 and not raw[first:start].strip() and not raw[end:line_end].strip():
        return raw[:first] + raw[line_end + 1 :]
    while raw[end : end + 1] == b" ":
        end += 1
    return raw[:start] + raw[end:]
