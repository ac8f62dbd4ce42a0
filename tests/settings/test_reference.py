"""The reference page is what the code says it is, and every setting is explained."""

from __future__ import annotations

from pathlib import Path

from reverie.flags import FLAGS
from reverie.settings.reference import format_toml, make_reference_page, to_json_value
from reverie.settings.schema import Settings, list_sections, list_settings
from reverie.settings.sections import HookCommand

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == make_reference_page(), "run: reverie settings --docs > docs/settings.md"


def test_everything_is_on_the_page() -> None:
    page = make_reference_page()
    for name in (*list_settings(), *FLAGS):
        assert f"| `{name}` |" in page
    assert str(Path.home()) not in page.replace("/etc/reverie", "")


def test_everything_is_explained() -> None:
    for key, setting in list_settings().items():
        assert setting.help.endswith("."), key
        assert setting.unit or type(setting.kind).__name__ not in ("Numeric", "Counts"), key
    for section in list_sections().values():
        assert section.__doc__


def test_no_variable_means_two_things() -> None:
    variables = [setting.env for setting in list_settings().values() if setting.env]
    assert len(variables) == len(set(variables))


def test_the_sections_shown_are_those_of_the_settings_object() -> None:
    settings = Settings()
    assert {key.split(".")[0] for key in list_settings()} == set(list_sections())
    assert all(isinstance(getattr(settings, name), section) for name, section in list_sections().items())


def test_values_are_written_as_in_a_file() -> None:
    assert format_toml(True) == "true"
    assert format_toml(200_000) == "200_000"
    assert format_toml(Path("/a b")) == '"/a b"'
    assert format_toml({"a b": 1, "c": 2}) == '{"a b" = 1, c = 2}'
    assert format_toml(("x", 'y"')) == '["x", "y\\""]'
    assert format_toml((HookCommand(command="x"),)) == '[{command = "x", matcher = "*", timeout_s = 60.0, wait = true}]'
    assert to_json_value((HookCommand(command="x"), Path("/y"))) == [
        {"command": "x", "matcher": "*", "timeout_s": 60.0, "wait": True},
        "/y",
    ]
