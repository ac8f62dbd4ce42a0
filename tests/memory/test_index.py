"""The index: what a model is shown of it, and that one line can change without the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.memory.index import (
    LINE_CHARACTERS,
    Limit,
    entries,
    index_line,
    linked_files,
    load_index,
    unlink,
    with_entry,
    without_entry,
)
from tests.shared_data import sources

MINE = (
    "# My memory\r\n\r\nRead this first.\r\n\r\n## Work\r\n"
    "- [One](user_one.md) — first\r\n* [Two [b]](<feedback two.md>): second\r\n\r\n## Notes\r\n"
    "See [one](./user_one.md#top) and [the web](https://example.org/a.md).\r\n"
)


def test_a_short_index_is_only_trimmed() -> None:
    loaded = load_index("\n\n- [a](a.md) — b\n\n")
    assert (loaded.text, loaded.fired, loaded.lines) == ("- [a](a.md) — b", None, 1)
    assert load_index(" \n ").text == "" and load_index("").lines == 0


def test_exactly_at_the_limits_nothing_is_cut() -> None:
    lines = "\n".join("x" * 124 for _ in range(200))
    assert len(lines.encode()) == 24_999
    assert load_index(lines + "\n\n").fired is None
    assert load_index("y" * 25_000).text == "y" * 25_000


def test_too_many_lines() -> None:
    loaded = load_index("\n".join(f"- [{n}](f{n}.md) — x" for n in range(201)))
    body, _, warning = loaded.text.rpartition("\n\n")
    assert loaded.fired is Limit.LINES
    assert body.split("\n")[-1] == "- [199](f199.md) — x"
    assert "201 lines" in warning and "bytes" not in warning


def test_too_many_bytes_cut_at_the_last_newline() -> None:
    loaded = load_index("\n".join("é" * 100 for _ in range(150)))
    body, _, warning = loaded.text.rpartition("\n\n")
    assert loaded.fired is Limit.BYTES
    assert body == "\n".join("é" * 100 for _ in range(124))
    assert "too long" in warning and "lines and" not in warning


def test_a_newline_right_at_the_limit_counts() -> None:
    body = load_index("a" * 10 + "\n" + "b" * 10, max_bytes=10).text.rpartition("\n\n")[0]
    assert body == "a" * 10


def test_without_a_newline_it_is_cut_at_the_limit_but_not_inside_a_character() -> None:
    loaded = load_index("日" * 9_000)
    body = loaded.text.rpartition("\n\n")[0]
    assert body == "日" * 8_333
    assert loaded.fired is Limit.BYTES


def test_both_limits_are_judged_on_the_original() -> None:
    # Over both; after the cut to 200 lines the bytes are fine, and the warning still names both.
    text = "\n".join(["short"] * 200 + ["x" * 30_000])
    loaded = load_index(text)
    assert loaded.fired is Limit.BOTH
    assert loaded.text.rpartition("\n\n")[0] == "\n".join(["short"] * 200)
    assert "201 lines" in loaded.text and "31,200 bytes" in loaded.text


@given(st.text(alphabet="a日é\n\r ", max_size=300), st.integers(1, 20), st.integers(8, 200))
def test_what_is_shown_is_a_beginning_within_both_limits(text: str, max_lines: int, max_bytes: int) -> None:
    loaded = load_index(text, max_lines=max_lines, max_bytes=max_bytes)
    shown = loaded.text if loaded.fired is None else loaded.text.rpartition("\n\n")[0]
    assert text.strip().startswith(shown)
    assert shown.count("\n") < max_lines
    assert len(shown.encode()) <= max_bytes


def test_entries_are_lines_that_point_to_files() -> None:
    found = entries(MINE)
    assert [(entry.file, entry.title, entry.hook, entry.line) for entry in found] == [
        ("user_one.md", "One", "first", 6),
        ("feedback two.md", "Two [b]", "second", 7),
    ]
    assert linked_files(MINE) == {"user_one.md", "feedback two.md"}


def test_a_line_is_changed_in_place() -> None:
    after = with_entry(MINE, "feedback two.md", "Two", "other")
    assert after == MINE.replace("* [Two [b]](<feedback two.md>): second", "* [Two](feedback%20two.md) — other")
    assert entries(after)[1].file == "feedback two.md"


def test_a_line_is_added_behind_the_last_entry() -> None:
    new = "- [Three](project_three.md) — third\r\n"
    assert with_entry(MINE, "project_three.md", "Three", "third") == MINE.replace(": second\r\n", f": second\r\n{new}")


def test_a_line_is_added_to_nothing_and_to_prose() -> None:
    assert with_entry("", "a.md", "A", "b") == "- [A](a.md) — b\n"
    assert with_entry("# Mine", "a.md", "A", "b") == "# Mine\n\n- [A](a.md) — b\n"
    assert with_entry("- [B](b.md)", "a.md", "A", "") == "- [B](b.md)\n- [A](a.md)\n"


def test_a_line_is_removed_and_prose_is_left() -> None:
    after = without_entry(MINE, "user_one.md")
    assert after == MINE.replace("- [One](user_one.md) — first\r\n", "")
    assert unlink(after, "user_one.md") == after.replace("[one](./user_one.md#top)", "one")


names = st.text(alphabet="abc_ ()[]#%日é'\"", min_size=1, max_size=12).map(lambda stem: f"{stem.strip() or 'x'}.md")


@given(names, st.text(max_size=200), st.text(max_size=400), st.sampled_from([MINE, "", "# x\n", "- [q](q.md)\n"]))
def test_adding_and_removing_gives_back_what_was_there(file: str, title: str, hook: str, text: str) -> None:
    added = with_entry(text, file, title, hook)
    own = [entry for entry in entries(added) if entry.file == file]
    assert len(own) == 1
    assert [entry.text for entry in entries(added) if entry.file != file] == [entry.text for entry in entries(text)]
    assert with_entry(added, file, title, hook) == added
    assert without_entry(added, file).rstrip("\r\n") == text.rstrip("\r\n")


@given(st.text(max_size=60), st.text(max_size=300))
def test_lines_are_short_and_single(title: str, hook: str) -> None:
    line = index_line(title, "feedback_something.md", hook)
    assert "\n" not in line and "\r" not in line
    assert len(line) <= max(LINE_CHARACTERS, len(index_line(title, "feedback_something.md", "")))


@pytest.mark.parametrize(("folder", "files"), sources("memory-dir/.claude/memory", own=12, shared=19))
def test_a_real_index_keeps_every_other_line(folder: Path, files: int) -> None:
    text = (folder / "MEMORY.md").read_text()
    found = entries(text)
    assert len({entry.file for entry in found}) == files
    after = with_entry(text, "feedback_new.md", "New", "a rule")
    assert [line for line in after.splitlines() if line not in text.splitlines()] == [
        "- [New](feedback_new.md) — a rule"
    ]
    assert without_entry(after, "feedback_new.md") == text
    assert load_index(text).fired is None
