"""Lines of keys in every layout TOML allows, and files nobody should have to read."""

from __future__ import annotations

import contextlib
import os
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.errors import SettingsError
from reverie.parsing import MAX_TOML
from reverie.settings.toml_file import KeyPath, TomlFile, find_key_lines
from tests.counts import count
from tests.work import cpu_limit

LAYOUTS: list[tuple[str, dict[KeyPath, int]]] = [
    ("a = 1\nb = 2", {("a",): 1, ("b",): 2}),
    ("\n# a = 0\n  a . b = 1 # c = 3", {("a",): 3, ("a", "b"): 3}),
    ('["x y".z]\n\n"q.r" = 1', {("x y",): 1, ("x y", "z"): 1, ("x y", "z", "q.r"): 3}),
    ("'lit\\e' = 1", {("lit\\e",): 1}),
    ('"\\u00e9\\n\\"" = 1', {('é\n"',): 1}),
    ("[a]\nb = 1\n[a.c]\nd = 1", {("a",): 1, ("a", "b"): 2, ("a", "c"): 3, ("a", "c", "d"): 4}),
    ("[a.c]\nd = 1\n[a]\nb = 1", {("a",): 3, ("a", "c"): 1, ("a", "b"): 4}),
    ("[[a]]\nb = 1\n\n[[a]]\nb = 2", {("a",): 1, ("a", 0, "b"): 2, ("a", 1): 4, ("a", 1, "b"): 5}),
    (
        "[[a]]\n[[a.b]]\nc = 1\n[[a.b]]\nc = 2\n[[a]]\n[a.d]\ne = 3",
        {("a", 0, "b", 0, "c"): 3, ("a", 0, "b", 1, "c"): 5, ("a", 1): 6, ("a", 1, "d", "e"): 8},
    ),
    ('a = """\nb = 1\n"""\nb = 2', {("b",): 4}),
    ("a = '''\nb = 1\n\\'''\nb = 2", {("b",): 4}),
    ('a = """x\\"""y"""\nb = 2', {("b",): 2}),
    ('a = """"x"""""\nb = 2', {("b",): 2}),
    ("a = [\n  1, # ]\n  '}',\n  [3,\n 4],\n]\nb = 2", {("a", 1): 3, ("a", 2): 4, ("a", 2, 1): 5, ("b",): 7}),
    ("a = {b = 1, c.d = [{e = 1}, {\nf = 2}]}", {("a", "c", "d", 0, "e"): 1}),
    ("a = [{b = 1},\n {b = 2}]", {("a", 0, "b"): 1, ("a", 1, "b"): 2}),
    ("a = 1979-05-27 07:32:00\nb = 2", {("b",): 2}),
    ("a = 1\r\n\r\nb = 2\r\n", {("a",): 1, ("b",): 3}),
    ("a = -inf\n[ b . c ]\nd=+1_0\n", {("b", "c", "d"): 3}),
]


@pytest.mark.parametrize(("text", "lines"), LAYOUTS, ids=[repr(text[:30]) for text, _ in LAYOUTS])
def test_every_layout(text: str, lines: dict[KeyPath, int]) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        pytest.skip("a newer TOML than this Python reads")
    found = find_key_lines(text)
    assert {path: found[path] for path in lines} == lines


class Writer:
    """Writes a table in a layout that the draw decides, and remembers on which line each key landed."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.text = ""
        self.lines: dict[KeyPath, int] = {}

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def noise(self) -> None:
        self.text += self.draw(st.sampled_from(["", "", "\n", "# [x] k = '''\n", "   \t\n", "\r\n"]))

    def key(self, key: str) -> str:
        bare = key.isascii() and key.replace("-", "a").replace("_", "a").isalnum()
        styles = (
            [_basic(key)] + ([key] if bare else []) + ([f"'{key}'"] if "'" not in key and key.isprintable() else [])
        )
        return self.draw(st.sampled_from(styles))

    def table(self, data: dict[str, Any], path: KeyPath, header: str) -> None:
        later: list[tuple[str, Any]] = []
        for key, value in data.items():
            items = value if isinstance(value, list) else [value]
            has_tables = bool(items) and all(isinstance(item, dict) for item in items)
            if has_tables and self.draw(st.booleans()):
                later.append((key, value))
                continue
            self.noise()
            self.lines[(*path, key)] = self.line
            if isinstance(value, dict) and len(value) == 1 and self.draw(st.booleans()):
                ((inner, item),) = value.items()
                self.lines[(*path, key, inner)] = self.line
                self.text += f"{self.key(key)} . {self.key(inner)} = "
                self.value(item, (*path, key, inner))
            else:
                self.text += f"{self.key(key)} = "
                self.value(value, (*path, key))
            self.text += self.draw(st.sampled_from(["\n", "  # = [\n", "\r\n"]))
        for key, value in later:
            name = f"{header}.{self.key(key)}" if header else self.key(key)
            for index, item in enumerate(value if isinstance(value, list) else [value]):
                here: KeyPath = (*path, key, index) if isinstance(value, list) else (*path, key)
                self.noise()
                self.lines.setdefault((*path, key), self.line)
                self.lines[here] = self.line
                self.text += f"[[ {name} ]]\n" if isinstance(value, list) else f" [{name}]\n"
                self.table(item, here, name)

    def value(self, value: Any, path: KeyPath) -> None:
        match value:
            case bool():
                self.text += "true" if value else "false"
            case int():
                self.text += str(value)
            case str():
                long = '"""\n' + _basic(value)[1:-1].replace("\\n", "\n") + '"""'
                self.text += self.draw(st.sampled_from([_basic(value), long]))
            case list():
                self.text += "["
                for index, item in enumerate(value):
                    self.text += self.draw(st.sampled_from(["", " ", "\n  ", " # , ]\n"]))
                    self.lines[(*path, index)] = self.line
                    self.value(item, (*path, index))
                    self.text += ","
                self.text += "]"
            case _:
                self.text += "{"
                for index, (key, item) in enumerate(value.items()):
                    self.text += ", " if index else " "
                    self.lines[(*path, key)] = self.line
                    self.text += f"{self.key(key)} = "
                    self.value(item, (*path, key))
                self.text += "}"


def _basic(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return (
        '"' + "".join(char if char.isprintable() or char == "\n" else f"\\U{ord(char):08x}" for char in escaped) + '"'
    )


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_keys = st.one_of(st.sampled_from(["a", "b", "key", "x-y", "1"]), _texts)
_leaves = st.one_of(st.booleans(), st.integers(-99, 99), _texts)
_values = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(_keys, inner, max_size=3),
        st.lists(st.dictionaries(_keys, inner, max_size=2), min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> tuple[dict[str, Any], str, dict[KeyPath, int]]:
    data = draw(st.dictionaries(_keys, _values, max_size=5))
    writer = Writer(draw)
    writer.table(data, (), "")
    return data, writer.text, writer.lines


@pytest.mark.soak
@settings(max_examples=count(30, 3_000), deadline=None)
@given(documents())
def test_lines_are_right_whatever_the_layout(made: tuple[dict[str, Any], str, dict[KeyPath, int]]) -> None:
    data, text, lines = made
    assert tomllib.loads(text) == data, "the test wrote something else than it meant"
    found = find_key_lines(text)
    assert {path: found.get(path) for path in lines} == lines


@pytest.mark.soak
@settings(max_examples=count(30, 3_000), deadline=None)
@given(documents())
def test_every_key_has_a_line(made: tuple[dict[str, Any], str, dict[KeyPath, int]]) -> None:
    found = find_key_lines(made[1])

    def walk(value: Any, path: KeyPath) -> None:
        if path:
            assert path in found
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            walk(inner, (*path, key))

    walk(made[0], ())


# Files nobody should have to read.


def refusal(path: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        TomlFile.read(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)[len(str(path)) :]


def test_no_file_is_none(tmp_path: Path) -> None:
    assert TomlFile.read(tmp_path / "none.toml") is None
    (tmp_path / "file").touch()
    assert TomlFile.read(tmp_path / "file" / "settings.toml") is None
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    assert TomlFile.read(tmp_path / "dangling") is None


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbf[a]\r\nb = 1\r\n")
    file = TomlFile.read(path)
    assert file is not None and file.data == {"a": {"b": 1}}
    assert file.line(("a", "b")) == 2
    assert file.line(("a", "b", "deeper", 3)) == 2
    assert file.line(("elsewhere",)) == 1


def test_invalid_utf8_says_the_line(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"a = 1\nb = '\xff'\n")
    assert refusal(path) == ":2: not valid UTF-8 text; save the file as UTF-8."


def test_what_is_no_file_is_refused_and_nothing_blocks(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("folder", "pipe", "zero"):
        assert "not a regular file" in refusal(tmp_path / name)
    assert "cannot be read" in refusal(tmp_path / "loop")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.touch(mode=0)
    assert "Permission denied" in refusal(path)


def test_a_huge_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    with path.open("wb") as file:
        file.truncate(50_000_000_000)
    assert "larger than" in refusal(path)


DEEP = {
    "a dotted key": "a." * 60_000 + "b = 1",
    "a quoted one": "'a'." * 30_000 + "b = 1",
    "one with escapes": '"\\"" . ' * 20_000 + "b = 1",
    "a header": "\n[" + "a." * 60_000 + "b]",
    "arrays": "a = " + "[" * 100_000,
    "closed arrays": "a = " + "[" * 150 + "]" * 150,
    "inline tables": "a = " + "{a=" * 80_000,
    "tables in tables": "a = " + "{a.b.c.d = " * 60 + "1" + "}" * 60,
}


@pytest.mark.parametrize("name", DEEP)
def test_depth_is_refused_in_no_time(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(DEEP[name])
    with cpu_limit(5):
        assert "nested deeper than 64 levels" in refusal(path)


def test_checking_for_depth_takes_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    for unit in ('"\\"', "a", "a-", '"', "'", "a .\t", '""', '\\"'):
        path.write_text("x = 1 #" + unit * ((MAX_TOML - 10) // len(unit)))
        with cpu_limit(5), contextlib.suppress(SettingsError):
            TomlFile.read(path)


def test_a_number_of_many_digits_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("a = " + "9" * 10_000)
    assert "cannot be read" in refusal(path)


@pytest.mark.soak
@settings(max_examples=count(30, 3_000), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_end_in_values_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x.toml"
    path.write_bytes(raw)
    try:
        file = TomlFile.read(path)
    except SettingsError as error:
        assert str(error).startswith(str(path))
    else:
        assert file is not None
        file.line(("a",))


def test_a_file_being_rewritten_is_read_whole_or_refused(tmp_path: Path) -> None:
    """Readers race with a writer that replaces the file in one step: each sees the old text or the new."""
    path, fresh = tmp_path / "x.toml", tmp_path / "fresh"
    path.write_text("a = 0")
    done = threading.Event()

    def write() -> None:
        for number in range(count(200, 2_000)):
            fresh.write_text(f"a = {number}\n")
            fresh.replace(path)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = -1
    while not done.is_set():
        file = TomlFile.read(path)
        assert file is not None and file.data["a"] >= seen
        seen = file.data["a"]
    writer.join()
