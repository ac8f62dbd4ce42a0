"""The short strict list refuses every harmful command of the corpora, and few of those that only read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.permissions.strict_shell import anchor_globs, is_read_only_shell, reads_widely, why_not_read_only
from tests.permissions.shell_corpus import ALLOWED, LEFT_TO_A_QUESTION, REFUSED
from tests.shared_data import sources
from tests.work import cpu_limit

MOST_REFUSED = 0.15
"""The share of harmless commands that it may refuse: the sandbox makes up for it."""


def test_ordinary_reading_is_allowed() -> None:
    reasons = [(command, why, why_not_read_only(command)) for command, why in ALLOWED]
    assert [reason for reason in reasons if reason[2] is not None] == []


def test_everything_else_is_refused_in_one_sentence() -> None:
    reasons = [(command, why, why_not_read_only(command)) for command, why in (*REFUSED, *LEFT_TO_A_QUESTION)]
    assert [one for one in reasons if one[2] is None or is_read_only_shell(one[0])] == []
    told = [(command, reason) for command, _, reason in reasons if reason is not None]
    assert [
        one
        for one in told
        if not (one[1].startswith("The command is refused because ") and one[1].endswith("."))
        or "\n" in one[1]
        or len(one[1]) >= 250
    ] == []


def test_the_corpus_is_large_and_has_no_doubles() -> None:
    commands = [command for command, _ in (*ALLOWED, *LEFT_TO_A_QUESTION, *REFUSED)]
    assert len(commands) == len(set(commands)) >= 150


@pytest.mark.parametrize("file", sources("security/shell-dev.jsonl"))
def test_no_refused_command_of_the_measuring_data_passes_and_few_allowed_ones_are_lost(file: Path) -> None:
    cases = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    let_through = [case["command"] for case in cases if not case["allow"] and is_read_only_shell(case["command"])]
    lost = [case["command"] for case in cases if case["allow"] and not is_read_only_shell(case["command"])]
    assert not let_through
    assert len(lost) <= MOST_REFUSED * sum(case["allow"] for case in cases), lost


@pytest.mark.parametrize("file", sources("security/judgement-calls.jsonl"))
def test_open_cases_are_only_allowed_where_that_is_suggested(file: Path) -> None:
    lines = file.read_text("utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["corpus"] == "shell"]
    assert [case["command"] for case in cases if is_read_only_shell(case["command"]) and not case["suggest"]] == []


def test_a_glob_at_the_beginning_of_a_word_never_becomes_an_option() -> None:
    assert anchor_globs("tail *.5 | head -n 3 'a *.b'") == "tail ./*.5 | head -n 3 'a *.b'"


def test_a_glob_or_a_folder_may_open_what_is_not_named() -> None:
    assert reads_widely("grep -rn x .") and reads_widely("cat src/*") and reads_widely("ls; wc -l *.md")
    assert not reads_widely("grep -n x a.md | head -3")


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("rm -rf x", "rm is not one of"),
        ("find . -delete", "find -delete"),
        ("tail -f a", "tail -f"),
        ("ls > a", "> is not plain"),
        ("cat /dev/zero", "/dev/zero may lead to a device"),
        ("ls $HOME", "$HOME is not plain"),
        ("head -c 1T a", "1T"),
        ("cat", "cat would wait for input"),
    ],
)
def test_the_reason_names_what_is_wrong(command: str, names: str) -> None:
    assert names in (why_not_read_only(command) or "")


@pytest.mark.parametrize("joiner", ["\n", "\r", "&", "||", "|&", ";;", "\u2028", "\x85", "$(", "`", "<(", "\uff1b"])
def test_nothing_can_be_hung_onto_an_allowed_command(joiner: str) -> None:
    hung = [f"{command.rstrip()}{between}rm x" for command, _ in ALLOWED for between in (joiner, f" {joiner} ")]
    assert [command for command in hung if is_read_only_shell(command)] == []


@given(st.text(max_size=60))
def test_any_text_gets_an_answer(text: str) -> None:
    reason = why_not_read_only(text)
    assert reason is None or reason.endswith(".")


@given(
    st.lists(
        st.sampled_from([*"lscatfind -*?[]'\"\\$`!~{}()<>|&;#=/.2\n\t", "ls ", "2>/dev/null", "é", "и"]), max_size=40
    )
)
def test_any_shell_like_text_gets_an_answer(pieces: list[str]) -> None:
    reason = why_not_read_only("".join(pieces))
    assert reason is None or reason.endswith(".")


def test_a_single_quoted_argument_is_always_data() -> None:
    for char in map(chr, range(0x20, 0x7F)):
        if char != "'":
            assert is_read_only_shell(f"grep 'x{char}y' a.md"), char


def test_hard_input_is_answered_quickly() -> None:
    with cpu_limit(5):
        for nasty in (
            "'" * 8000,
            '"$(' * 2600,
            "ls " + "-a " * 2600,
            "ls " + "{" * 8000,
            "\\" * 8001,
            "grep " + "a{9}" * 2000,
        ):
            why_not_read_only(nasty)


def test_importing_the_package_does_not_load_the_parser() -> None:
    code = "import sys, reverie.permissions; sys.exit('tree_sitter' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("before", ["{", "echo {", "echo {1..", "rm x; {12"])
def test_no_character_behind_a_brace_ends_the_process(before: str) -> None:
    """The grammar's own scanner read far beyond a table; whether that crashed depended on what lay there."""
    code = (
        "import json, sys; from reverie.permissions.shell_commands import all_commands, plain_commands\n"
        f"for at in range(0xe000, 0x110000, 0x9d1): one = {before!r} + chr(at); plain_commands(one);"
        " found = list(all_commands(one))\n"
        "print(json.dumps([one.words for one in found]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    assert not before.startswith("rm") or ["rm", "x"] in json.loads(done.stdout)
