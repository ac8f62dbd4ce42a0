"""A mistake in a file, a variable or an override is one sentence that says where it is and what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from reverie.errors import SettingsError
from reverie.settings import load_settings
from reverie.settings.kinds import Choice, Numeric, Switch, Text
from reverie.settings.schema import get_value, list_sections, list_settings
from tests.settings.conftest import Load

MISTAKES = [
    ('[model]\nnmae = "x"', 2, "unknown key `model.nmae`; did you mean `model.name`?"),
    ("\n\nfsync = true", 3, "unknown key `fsync`; did you mean `transcript.fsync`?"),
    ("[modle]\nname = 'x'", 1, "unknown key `modle`; did you mean `model`?"),
    ("model.parallel = 3", 1, "unknown key `model.parallel`; did you mean `tools.parallel`?"),
    (
        "# one\n[window]\n# two\nblocking_limit = 0",
        4,
        "`window.blocking_limit` is 0, but must be a whole number of 1 or more.",
    ),
    (
        "[window]\nautocompact_pct = 100.5",
        2,
        "`window.autocompact_pct` is 100.5, but must be a number over 0, at most 100.",
    ),
    ("[tools]\nparallel = true", 2, "`tools.parallel` is True, but must be a whole number of 1 or more."),
    ("[tools]\nparallel = 1e3", 2, "`tools.parallel` is 1000.0, but must be a whole number of 1 or more."),
    ("[tools]\nbash_timeout_s = nan", 2, "`tools.bash_timeout_s` is nan, but must be a number over 0."),
    ("[tools]\nbash_timeout_s = inf", 2, "`tools.bash_timeout_s` is inf, but must be a number over 0."),
    (f"[tools]\nbash_timeout_s = 1{'0' * 400}", 2, "but must be a number over 0."),
    ("model = 3", 1, "`model` is a section; write [model] and its settings below."),
    ("[[model]]\nname = 'x'", 1, "`model` is a section; write [model] and its settings below."),
    (
        '[permissions]\nmode = "aks"',
        2,
        "`permissions.mode` is 'aks', but must be one of ask, accept_edits, accept_all, read_only.",
    ),
    (
        'permissions.allow = [\n  "Read",\n  # why\n  3,\n]',
        4,
        "`permissions.allow[2]` is 3, but must be text in quotation marks, not empty.",
    ),
    ('permissions.allow = "Read"', 1, "`permissions.allow` is 'Read', but must be a list of texts."),
    (
        "[tool_results.limits]\nBash = 5\nGrep = -1",
        3,
        "`tool_results.limits.Grep` is -1, but must be a whole number over 0.",
    ),
    (
        '[[hooks.Stop]]\ncommand = "a"\n[[hooks.Stop]]\ncommnd = "b"',
        4,
        "unknown key `hooks.Stop[2].commnd`; did you mean `command`?",
    ),
    (
        '[[hooks.Stop]]\ncommand = "a"\n\n[[hooks.Stop]]\nmatcher = "b"',
        4,
        "`hooks.Stop[2]` is {'matcher': 'b'}, but must be a table with `command`.",
    ),
    ('[[hooks.Stop]]\ncommand = "  "', 2, "`hooks.Stop[1].command` is '  ', but must be text that is not empty."),
    ('[[hooks.Stop]]\ncommand = "a"\nmatcher = "("', 3, "must be a regular expression"),
    ('[[hooks.PreToolUs]]\ncommand = "a"', 1, "unknown key `hooks.PreToolUs`; did you mean `hooks.PreToolUse`?"),
    ('memory.path = "/x"', 1, "`memory.path` cannot be set in a file; set the variable REVERIE_MEMORY_PATH."),
    ("model.openai_api_key = 12345", 1, "`model.openai_api_key` is hidden, but must be text in quotation marks."),
    ('model.openai_base_url = "localhost:1"', 1, "must be an address that begins with http:// or https://."),
    ('[model]\nname = "a"\nname = "b"', 3, "not valid TOML: Cannot overwrite a value."),
    ('[model]\nname = "a', 2, "not valid TOML: "),
    ('[model]\nname = "\\u0000"', 2, "`model.name` is '\\x00', but must be text in quotation marks."),
    ('"\\u001b[2J" = 1', 1, "unknown key `\\u001b[2J`; "),
]


@pytest.mark.parametrize(("text", "line", "sentence"), MISTAKES, ids=[repr(text[:40]) for text, _, _ in MISTAKES])
def test_a_mistake_in_a_file_names_file_line_and_remedy(
    load: Load, home: Path, text: str, line: int, sentence: str
) -> None:
    file = home / "settings.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load()
    assert str(caught.value).startswith(f"{file}:{line}: ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("REVERIE_AUTOCOMPACT_PCT", "0", "a number over 0, at most 100"),
        ("REVERIE_AUTOCOMPACT_PCT", "half", "a number over 0, at most 100"),
        ("REVERIE_CONTEXT_WINDOW", "200k", "a whole number of 1 or more"),
        ("REVERIE_DISABLE_COMPACT", "perhaps", "true or false"),
        ("REVERIE_PERMISSION_MODE", "yolo", "one of ask"),
        ("ANTHROPIC_BASE_URL", "example.org", "begins with http:// or https://"),
    ],
)
def test_a_bad_variable_is_named(load: Load, name: str, value: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({name: value})
    assert str(caught.value).startswith(f"environment {name}: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("no", False)])
def test_switches_in_variables_are_words_or_digits(load: Load, text: str, value: bool) -> None:
    assert load({"REVERIE_DISABLE_COMPACT": text}).window.disable_compact is value


def test_an_empty_variable_says_nothing(load: Load) -> None:
    settings = load({"REVERIE_DISABLE_MEMORY": "", "REVERIE_HOME": "", "REVERIE_CONTEXT_WINDOW": ""})
    assert settings.memory.disable is None
    assert settings.window.context_window is None


def test_a_misspelt_variable_is_a_warning_and_a_strange_one_is_not(load: Load) -> None:
    warnings = load({"REVERIE_DISABLE_MEMROY": "1", "REVERIE_ZZZZ": "1", "REVERIE_FLAG_X": "1"}).warnings
    assert warnings == (
        "environment REVERIE_DISABLE_MEMROY: unknown variable, ignored; did you mean REVERIE_DISABLE_MEMORY?",
    )


def test_an_unknown_override_is_an_error_with_the_nearest_key(load: Load) -> None:
    with pytest.raises(SettingsError, match=r"command line: unknown key `modle.name`; did you mean `model.name`"):
        load(overrides={"modle.name": "x"})
    with pytest.raises(SettingsError, match=r"command line: `tools.parallel` is 'many'"):
        load(overrides={"tools.parallel": "many"})


@examples(deadline=None)
@given(st.data())
def test_one_wrong_letter_is_found_again(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    full = data.draw(st.sampled_from([key for key in list_settings() if len(key.split(".")[1]) >= 5]))
    section, key = full.split(".")
    at = data.draw(st.integers(1, len(key) - 1))
    wrong = key[:at] + "Q" + key[at + 1 :]
    home = tmp_path_factory.mktemp("home")
    (home / "settings.toml").write_text(f"[{section}]\n{wrong} = 1\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(home, env={"HOME": "/nowhere", "REVERIE_HOME": str(home)}, managed_dir=home / "none")
    assert f"unknown key `{section}.{wrong}`; did you mean `{section}." in str(caught.value)
    assert f"{home}/settings.toml:2: " in str(caught.value)


def _values(key: str) -> st.SearchStrategy[object]:
    match list_settings()[key].kind:
        case Switch():
            return st.booleans()
        case Numeric(whole=True, minimum=low):
            return st.integers(int(low), 10**12)
        case Numeric(minimum=low, maximum=high):
            return st.floats(low + 1e-3, min(high, 1e9))
        case Choice(options=options):
            return st.sampled_from(options)
        case Text(starts=()):
            return st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
        case _:
            return st.nothing()


@examples(deadline=None)
@given(st.data())
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    from reverie.settings.reference import format_toml

    keys = [key for key, setting in list_settings().items() if not setting.env_only and not _values(key).is_empty]
    chosen = data.draw(st.lists(st.sampled_from(keys), unique=True, max_size=12))
    wanted = {key: data.draw(_values(key)) for key in chosen}
    dotted = data.draw(st.booleans())
    lines: list[str] = []
    for section in list_sections():
        inside = {key: value for key, value in wanted.items() if key.startswith(f"{section}.")}
        if dotted:
            lines = [f"{key} = {format_toml(value)}" for key, value in inside.items()] + lines
        elif inside:
            lines += [f"[{section}]", *(f"{key.split('.')[1]} = {format_toml(value)}" for key, value in inside.items())]
    home = tmp_path_factory.mktemp("home")
    (home / "settings.toml").write_text("\n".join(lines), encoding="utf-8")
    settings = load_settings(home, env={"HOME": "/nowhere", "REVERIE_HOME": str(home)}, managed_dir=home / "none")
    for key, value in wanted.items():
        assert get_value(settings, key) == value
        (source,) = settings.sources[key]
        name = key if dotted else key.split(".")[1]
        line = int(str(source).rsplit(":", 1)[1])
        assert lines[line - 1].startswith(f"{name} = ")
