"""Changes of single keys: the value is right, and everything else keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reverie.connect.json_text import append_item, remove_items, remove_value, set_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(['"', "}", "\\", "[,:]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "plugins", "list"]), VALUES, max_size=4)
LAYOUTS = st.sampled_from(
    [{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}, {"indent": 1, "ensure_ascii": False}]
)


@given(OBJECTS, LAYOUTS, VALUES, st.sampled_from(["\n", "\r\n"]))
def test_a_key_that_is_set_and_removed_leaves_the_same_bytes(
    data: dict[str, Any], layout: dict[str, Any], value: Any, end: str
) -> None:
    data = {**data, "plugins": data["plugins"] if isinstance(data.get("plugins"), dict) else {"x": 1}}
    data["plugins"].pop("ours", None)
    text = f"{json.dumps(data, **layout)}\n".replace("\n", end)
    there = set_value(text, ("plugins", "ours"), value)
    assert json.loads(there) == {**data, "plugins": {**data["plugins"], "ours": value}}
    if data["plugins"]:
        assert remove_value(there, ("plugins", "ours")) == text
    more = set_value(text, ("new", "deep"), value)
    assert json.loads(more) == {**data, "new": {"deep": value}}
    assert remove_value(more, ("new",)) == text


@given(st.lists(VALUES, min_size=1, max_size=3), LAYOUTS, st.sampled_from([{"ours": 1}, {"ours": [{"b": 2}]}]))
def test_an_item_that_is_added_and_removed_leaves_the_same_bytes(
    items: list[Any], layout: dict[str, Any], item: Any
) -> None:
    text = json.dumps({"hooks": {"list": items}}, **layout)
    there = append_item(text, ("hooks", "list"), item)
    assert json.loads(there) == {"hooks": {"list": [*items, item]}}
    assert remove_items(there, ("hooks", "list"), lambda one: isinstance(one, dict) and "ours" in one) == text
