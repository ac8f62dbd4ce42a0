"""Conversations of callers for the tests of the wires, all accepted by their API, and their way through a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from reverie.library.wires import wire_named, with_unique_calls
from reverie.models.base import Request
from reverie.storage.transcript.file import dump_record, parse_line
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import View

Item = dict[str, Any]
Items = list[Item]
PNG = "data:image/png;base64,iVBORw0KGgo="

said = st.text(min_size=1, max_size=12).filter(lambda text: bool(text.strip()))
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
more = st.dictionaries(st.sampled_from(["metadata", "vendor_field", "x"]), anything, max_size=1)
"""Fields that nobody knows."""
_styles: list[dict[str, Any]] = [{}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"indent": 1}]
arguments = st.one_of(
    st.tuples(st.dictionaries(st.text(max_size=3), anything, max_size=2), st.sampled_from(_styles)).map(
        lambda made: json.dumps(made[0], **made[1])
    ),
    st.sampled_from(["", "{}", "[1, 2]", "not json", '{"a": 1.0, "a": 2}', '{"_unparsed": "x"}']),
)


def parts(text_type: str, *others: Item) -> st.SearchStrategy[Items]:
    """Parts of a content: at least one text, blank texts too."""
    text = st.builds(lambda text, rest: {"type": text_type, "text": text, **rest}, st.text(max_size=6), more)
    first = st.builds(lambda text: {"type": text_type, "text": text}, said)
    rest = st.lists(text | st.sampled_from([dict(one) for one in others]) if others else text, max_size=3)
    return st.builds(lambda one, some: [*some, one], first, rest)


def log_of(wire: str, items: object) -> SessionLog:
    """A log with one record per message of the caller."""
    log = SessionLog(None, "s", cwd=Path("/"), version="1")
    for given in wire_named(wire).read_messages(items):
        log.append_message(with_unique_calls(log.view, given.message))
    return log


def written(
    wire: str, items: object, *, system: object = None, tools: object = None, view: View | None = None, **more: Any
) -> Item:
    """The body for these items after a way through the transcript, as after a restart."""
    converter = wire_named(wire)
    log = log_of(wire, items)
    again = View.of(record for one in log.records for record in parse_line(dump_record(one)))
    given = converter.read_system(system, items)
    shown = (view or again).messages()
    model = "claude-sonnet-4-5" if wire == "messages" else "gpt-5"
    request = Request(model, given.texts, converter.read_tools(tools), shown, 100, **more)
    if view is None:
        assert shown == log.view.messages(), "a restart changes what is sent"
    return converter.write_body(request, {}, given.form)


def as_bytes(value: object) -> str:
    """JSON with the order of keys."""
    return json.dumps(value)
