"""Text from others: however deep, large or torn it is, it is read or refused in one sentence; nothing falls over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reverie.agents.definition import read_definition
from reverie.instructions.rules import split_rule
from reverie.memory.frontmatter import split
from reverie.models.wire import read_input
from reverie.parsing import (
    MAX_DEPTH,
    MAX_YAML,
    RECORD_DEPTH,
    Unparsable,
    load_json,
    load_json_values,
    load_toml,
    load_yaml,
)
from reverie.storage.transcript.file import dump_record, parse_line, parse_record
from tests.waiting import LIMIT_S

N = 45_000
DEEP_YAML = {
    "keys": "? " * (N // 2),
    "lists": "- " * (N // 2),
    "square brackets": "[" * N,
    "curly brackets": "{" * N,
    "closed brackets": "[" * (N // 2) + "]" * (N // 2),
    "pairs": "{a: " * (N // 4),
    "indentation": "".join(" " * depth + "k:\n" for depth in range(280)),
    "keys in lists": "- ? " * (N // 4),
    "tags": "!a [" * (N // 4),
    "anchors": "".join(f"&a{number} [" for number in range(N // 8)),
}


@pytest.mark.parametrize("name", DEEP_YAML)
def test_deep_yaml_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(Unparsable, match=f"^nested deeper than {MAX_DEPTH} levels$") as caught:
        load_yaml(DEEP_YAML[name])
    assert caught.value.line


@pytest.mark.parametrize("name", DEEP_YAML)
def test_a_deep_head_does_not_end_the_process(tmp_path: Path, name: str) -> None:
    """In a process of its own for one of them: an overflow of the C stack ends it without a traceback."""
    text = f"---\nname: a\ndescription: d\nx:\n {DEEP_YAML[name]}\n---\nThe body.\n"
    head = split(text)
    assert head.text == text and head.problems and head.values["name"] == "a"
    split_rule(text)
    (tmp_path / "a.md").write_text(text)
    assert read_definition(tmp_path / "a.md")
    if name == "keys":
        code = "import sys; from reverie.memory.frontmatter import split; print(split(sys.stdin.read()).problems)"
        done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0 and "nested deeper" in done.stdout


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("&a [*a, *a]", "alias 'a' does not stand for a text"),
        ("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]", "alias 'a' does not stand for a text"),
        ("a: &a " + "x" * 1000 + "\nb: [" + "*a, " * 1000 + "]", "aliases stand for more than"),
        ("x" * (MAX_YAML + 1), "larger than"),
        ("--- a\n--- b\n", "second document"),
        ("[a]: b", "a key is a list"),
        ("a: \ud800", "surrogate"),
    ],
)
def test_other_yaml_that_is_not_read(text: str, why: str) -> None:
    with pytest.raises(Unparsable, match=why):
        load_yaml(text)


def test_yaml_is_read_as_text() -> None:
    given = "a: 1\nb: [yes, 2024-01-01]\nc:\n  d: ~\ne: &x t\nf: *x\n<<: {g: !!python/object:os.system h}\n"
    assert load_yaml(given) == {
        "a": "1",
        "b": ["yes", "2024-01-01"],
        "c": {"d": "~"},
        "e": "t",
        "f": "t",
        "<<": {"g": "h"},
    }
    assert load_yaml("") is None


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 2_000, 500_000])
@pytest.mark.parametrize("unit", [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")], ids=["list", "object", "both"])
def test_deep_json_is_refused(depth: int, unit: tuple[str, str]) -> None:
    text = unit[0] * depth + "1" + unit[1] * depth
    for given in (text, text.encode(), unit[0] * depth):
        with pytest.raises(Unparsable):
            load_json(given)


def test_brackets_in_text_are_not_depth() -> None:
    assert load_json('{"a": "' + "[" * 10_000 + '"}') == {"a": "[" * 10_000}
    assert load_json("[" + "[]," * 10_000 + "[]]")
    assert load_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert list(load_json_values('{"a": 1} {"b": 2}')) == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("text", [b"\xff", "{", "", "1" * 5_000, "nul", "[1,]"])
def test_whatever_is_not_json_is_one_error(text: str | bytes) -> None:
    with pytest.raises(Unparsable):
        load_json(text)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5_000, "a" + ".a" * 5_000 + " = 1", "a = " + "9" * 5_000, "x" * 300_000]
)
def test_whatever_is_not_toml_is_one_error(text: str) -> None:
    with pytest.raises(Unparsable):
        load_toml(text)


def test_what_a_model_sent_can_be_read_back_from_the_transcript() -> None:
    """The deepest input we take in is inside a record that is still read."""
    deepest = '{"a":' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}"
    call = {"type": "tool_use", "id": "t", "name": "X", "input": read_input(deepest)}
    record = {"type": "assistant", "uuid": "u", "message": {"role": "assistant", "content": [call]}}
    line = dump_record(parse_record(record))
    assert parse_line(line)[0].stored() == record
    assert "_unparsed" in str(read_input('{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}"))
    assert RECORD_DEPTH >= MAX_DEPTH + 10
