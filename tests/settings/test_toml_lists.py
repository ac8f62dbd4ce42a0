"""Adding to a list in a TOML file, and removing from it, keeps what people wrote around it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.settings.toml_lists import add_to_list, remove_from_list

TEXTS = [
    "",
    "# mine\n",
    '[model]\nname = "x"  # why\n',
    "[permissions]\n# nothing yet\n",
    "[permissions]",
    '[permissions]\nmode = "ask"\n\n[model]\nname = "x"\n',
    "[permissions]\nallow = []\n",
    '[permissions]\nallow = ["Read"]  # all\ndeny = ["Bash(rm:*)"]\n',
    '[permissions]\nallow = [\n  "Read", # one\n  # two\n  "Edit" # three\n]\n',
    '[permissions]\nallow = [\n    "Read",\n    "Edit", # last\n]\n',
    '[permissions]\nallow = ["Read",\n  "Edit"]\n[model]\nname = "é"\n',
    'permissions.allow = ["Read"]\n[model]\nname = "x"\n',
    'permissions.mode = "ask"\n[model]\nname = "x"\n',
    '["permissions"]\nallow = [ "Read", ]\n',
]


@pytest.mark.parametrize("text", TEXTS)
@given(rule=st.text(min_size=1, max_size=12).filter(lambda one: "\r" not in one and one.isprintable()))
def test_what_is_added_is_there_and_can_be_removed(text: str, rule: str) -> None:
    after = add_to_list(text, "permissions", "allow", rule)
    before = tomllib.loads(text)
    expected = before.get("permissions", {}).get("allow", [])
    assert tomllib.loads(after)["permissions"]["allow"] == [*expected, *([rule] if rule not in expected else [])]
    lines = [line.strip() for line in after.splitlines()]
    comments = [line.split("#")[1] for line in text.splitlines() if "#" in line]
    assert all(any(line.endswith(f"#{comment}") for line in lines) for comment in comments)
    assert add_to_list(after, "permissions", "allow", rule) == after
    if rule not in expected:
        gone = tomllib.loads(remove_from_list(after, "permissions", "allow", rule))
        assert gone["permissions"].pop("allow") == expected
        before.setdefault("permissions", {}).pop("allow", None)
        assert gone == before


def test_comments_stay_where_they_are() -> None:
    text = '[permissions]\nallow = [\n  "Read", # one\n  # two\n  "Edit" # three\n]\n'
    after = add_to_list(text, "permissions", "allow", "Write")
    assert after == '[permissions]\nallow = [\n  "Read", # one\n  # two\n  "Edit", # three\n  "Write",\n]\n'
    assert remove_from_list(after, "permissions", "allow", "Write") == text.replace('"Edit"', '"Edit",')


def test_a_form_that_cannot_be_changed_is_refused() -> None:
    with pytest.raises(UserError, match="by hand"):
        add_to_list('permissions = { mode = "ask" }\n', "permissions", "allow", "Read")
    with pytest.raises(UserError):
        add_to_list("[permissions\n", "permissions", "allow", "Read")
