"""Topic files: what is read, what is reported, and that nothing but the asked-for lines ever changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.memory.frontmatter import quote_scalar, split
from reverie.memory.taxonomy import MemoryType, Trust, file_name
from reverie.memory.topic_file import TopicFile, encode
from tests.counts import count
from tests.shared_data import sources

WITH_EVERYTHING = (
    "\ufeff---\r\n"
    "# written by hand\r\n"
    "name:   'It''s tests'   # short\r\n"
    "tags: [a, b]\r\n"
    "\r\n"
    'description: "Use real files: no mocks"\r\n'
    "type: feedback\r\n"
    "x-mine: >\r\n"
    "  folded\r\n"
    "  text\r\n"
    "# the end\r\n"
    "---\r\n"
    "\r\n"
    "Tests use real files.\r\n"
)


def changed_lines(before: str, after: str) -> list[str]:
    old, new = before.split("\n"), after.split("\n")
    return [line for line in new if line not in old]


def test_reads_every_form_of_value() -> None:
    topic = TopicFile.parse(WITH_EVERYTHING.encode())
    assert topic.name == "It's tests"
    assert topic.description == "Use real files: no mocks"
    assert topic.type is MemoryType.FEEDBACK
    assert topic.fields["tags"] == "a, b"
    assert topic.fields["x-mine"].strip() == "folded text"
    assert topic.body == "Tests use real files.\r\n"
    assert topic.problems == ()
    assert encode(topic.text) == WITH_EVERYTHING.encode()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"name": "Other"}, "name:   'Other'   # short\r"),
        ({"description": 'Say "no": always'}, 'description: "Say \\"no\\": always"\r'),
        ({"type": MemoryType.PROJECT}, "type: project\r"),
        ({"trust": Trust.CONFIRMED}, "trust: confirmed\r"),
        ({"fields": {"x-mine": "short"}}, "x-mine: short\r"),
        ({"fields": {"tags": "c"}}, "tags: c\r"),
    ],
)
def test_a_change_touches_only_its_line(change: dict[str, object], line: str) -> None:
    topic = TopicFile.parse(WITH_EVERYTHING)
    after = topic.with_changes(**change)  # type: ignore[arg-type]
    assert changed_lines(topic.text, after.text) == [line]
    assert after.text.startswith("\ufeff---\r\n# written by hand\r\n")
    assert after.text.endswith("# the end\r\n---\r\n\r\nTests use real files.\r\n")
    assert after.problems == ()
    assert after.with_changes(**change).text == after.text  # type: ignore[arg-type]


def test_a_field_is_taken_out_with_its_lines_only() -> None:
    topic = TopicFile.parse(WITH_EVERYTHING)
    after = topic.with_changes(fields={"x-mine": None})
    assert after.text == WITH_EVERYTHING.replace("x-mine: >\r\n  folded\r\n  text\r\n", "")


def test_a_new_body_keeps_the_head_and_the_line_ends() -> None:
    after = TopicFile.parse(WITH_EVERYTHING).with_changes(body="One.\nTwo.")
    assert after.text == WITH_EVERYTHING.replace("Tests use real files.\r\n", "One.\r\nTwo.\r\n")


def test_type_is_found_and_changed_inside_metadata() -> None:
    text = "---\nname: a\nmetadata: \n  node_type: memory\n  type: project  # here\n---\nb\n"
    topic = TopicFile.parse(text)
    assert topic.type is MemoryType.PROJECT
    assert topic.with_changes(type=MemoryType.USER).text == text.replace("type: project ", "type: user ")


def test_a_text_without_a_head_gets_one() -> None:
    topic = TopicFile.parse("Just words.\n")
    assert (topic.name, topic.type, topic.problems) == ("", None, ())
    after = topic.with_changes(name="Words", type=MemoryType.USER)
    assert after.text == "---\nname: Words\ntype: user\n---\n\nJust words.\n"


def test_new_reads_back() -> None:
    topic = TopicFile.new(
        name="A: b", description="c #d\nand e", type=MemoryType.PROJECT, body="Body", trust=Trust.INFERRED
    )
    assert (topic.name, topic.description) == ("A: b", "c #d and e")
    assert (topic.type, topic.trust) == (MemoryType.PROJECT, Trust.INFERRED)
    assert topic.text.endswith("trust: inferred\n---\n\nBody\n")
    assert yaml.safe_load(topic.text.split("---")[1])["name"] == "A: b"


@pytest.mark.parametrize(
    ("text", "name", "kind", "word"),
    [
        ("---\nname: n: m\ntype: user\n---\nb\n", "n: m", MemoryType.USER, "YAML"),
        ("---\nname: n\ntype: user\n\nno fence\n", "n", MemoryType.USER, "closing"),
        ("---\nname: n\ntype user\n---\nb\n", "n", MemoryType.USER, "YAML"),
        ("---\nname: @n\ntype: user\n---\nb\n", "@n", MemoryType.USER, "YAML"),
        ("---\nname: n\ntype: person\n---\nb\n", "n", None, "person"),
        ("---\nname: n\nname: m\n---\nb\n", "m", None, "twice"),
        ("---\n- a\n- b\n---\nb\n", "", None, "key: value"),
        ("---\nname: n\nx: " + "[" * 20_000 + "\n---\nb\n", "n", None, "nested"),
        ("---\nname: n\n\tx: 1\n---\nb\n", "n", None, "YAML"),
    ],
)
def test_a_broken_head_is_readable_and_reported(text: str, name: str, kind: MemoryType | None, word: str) -> None:
    topic = TopicFile.parse(text)
    assert encode(topic.text) == text.encode()
    assert topic.type is kind
    if name:
        assert topic.name.startswith(name)
    assert word in " ".join(topic.problems)


def test_a_long_value_of_a_key_that_is_there_many_times_is_written_once() -> None:
    text = "---\nname: a: b\n" + "key: v\n" * 2_000 + f"key: b: {'c' * 2_000}\n---\n\nBody.\n"
    repaired = TopicFile.parse(text).repair()
    assert not repaired.front.problems and repaired.body == "Body.\n"
    assert len(repaired.text) < len(text) and "c" * 2_000 in repaired.text


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: n: m\ndescription: 'x\ntype: user\n---\nb\n",
        "---\nname: Label\ndescription: needs 203 dpi: never 300\ntype reference\n\nBody stays.\n",
        "---\nname: `tick`\ntype: user\n---\nb\n",
    ],
)
def test_a_repaired_head_is_yaml_and_says_the_same(text: str) -> None:
    topic = TopicFile.parse(text)
    after = topic.repair()
    assert topic.problems and after.problems == ()
    assert (after.name, after.description, after.type) == (topic.name, topic.description, topic.type)
    assert after.body == topic.body
    assert yaml.safe_load("".join(after.front.lines))["name"] == topic.name


def test_a_rule_across_the_page_is_no_head() -> None:
    topic = TopicFile.parse("---\n\nSome prose.\n")
    assert topic.problems == () and topic.body == "---\n\nSome prose.\n"


def test_bytes_that_are_no_text_come_out_as_they_went_in() -> None:
    raw = b"---\nname: caf\xe9\ntype: user\n---\n\xff\xfe body\n"
    topic = TopicFile.parse(raw)
    assert encode(topic.text) == raw
    assert any("UTF-8" in problem for problem in topic.problems)
    assert encode(topic.with_changes(type=MemoryType.PROJECT).text) == raw.replace(b"user", b"project")


plain_line = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40)
keys = st.sampled_from(["name", "description", "type", "trust", "other", "x-y"])
field_line = st.builds(lambda key, value: f"{key}: {value}", keys, plain_line)
files = st.builds(
    lambda bom, fence, lines, close, body, end: bom + end.join([fence, *lines, *close, body]),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["---", "--- ", ""]),
    st.lists(st.one_of(field_line, plain_line, st.just(""), st.just("# c"), st.just("  indented")), max_size=8),
    st.sampled_from([["---"], []]),
    st.text(max_size=30),
    st.sampled_from(["\n", "\r\n"]),
)


@given(files)
def test_taking_apart_loses_nothing(text: str) -> None:
    assert split(text).text == text
    TopicFile.parse(text).repair()


@settings(max_examples=count(40, 3_000))
@given(files, keys, st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30))
def test_any_value_can_be_set_and_nothing_else_moves(text: str, key: str, value: str) -> None:
    before = split(text)
    value = " ".join(value.split())
    after = before.with_value(key, value)
    assert after.values.get(after.key_of(key)) == value
    assert after.body.lstrip("\r\n") == before.body.lstrip("\r\n")
    if before.present and before.after and not before.problems:
        kept = {k: v for k, v in before.values.items() if k != before.key_of(key)}
        assert {k: v for k, v in after.values.items() if k != after.key_of(key)} == kept
        assert len(set(before.lines) - set(after.lines)) <= max(1, len(before.lines) - len(after.lines) + 1)


@given(st.lists(field_line, max_size=5))
def test_the_fast_reading_agrees_with_yaml(lines: list[str]) -> None:
    found = split("\n".join(["---", *lines, "---", ""]))
    if found.problems or not found.lines:
        return
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # the two differ on tabs; ours is the one that is there
    loaded = yaml.load("".join(found.lines), Loader=loader)
    strings = {key: "" if value == "~" else value for key, value in (loaded or {}).items() if isinstance(value, str)}
    assert {key: found.values.get(key) for key in strings} == strings


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.sampled_from(["", "'", '"']))
def test_a_quoted_value_is_that_value_for_every_yaml_reader(value: str, style: str) -> None:
    loaded = yaml.safe_load(f"key: {quote_scalar(value, style)}\n")["key"]
    assert loaded == value


@pytest.mark.parametrize("folder", sources("memory-dir/.claude/memory"))
def test_real_files_survive_reading_and_one_change(folder: Path) -> None:
    for path in folder.glob("*_*.md"):
        raw = path.read_bytes()
        topic = TopicFile.parse(raw)
        assert encode(topic.text) == raw
        assert topic.type is not None and topic.name and topic.description and not topic.problems
        after = topic.with_changes(trust=Trust.CONFIRMED)
        assert len(changed_lines(topic.text, after.text)) == 1


@pytest.mark.parametrize(
    ("kind", "title", "name"),
    [
        (MemoryType.FEEDBACK, "No mocks, please!", "feedback_no_mocks_please.md"),
        (MemoryType.USER, "发货规则", "user_发货规则.md"),
        (MemoryType.USER, "../../etc/passwd", "user_etc_passwd.md"),
        (MemoryType.PROJECT, "project: the end", "project_the_end.md"),
        (None, "???", "memory.md"),
    ],
)
def test_file_names_begin_with_the_type(kind: MemoryType | None, title: str, name: str) -> None:
    assert file_name(kind, title) == name


def test_plain_heads_are_read_without_a_yaml_library() -> None:
    code = (
        "import sys; from reverie.memory.topic_file import TopicFile;"
        "t = TopicFile.parse(b'---\\nname: a\\ndescription: \"b: c\"\\ntype: user\\n---\\n');"
        "assert t.description == 'b: c'; print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
