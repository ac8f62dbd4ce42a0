"""Rules with `paths:` wait until such a file is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.instructions.rules import gitignore, split_rule
from tests.instructions.conftest import Load, texts, write


@pytest.mark.parametrize(
    ("head", "patterns"),
    [
        ('paths: "src/**/*.{ts,tsx}"', ("src/**/*.{ts,tsx}",)),
        ("paths: **/*.py", ("**/*.py",)),
        ('paths: src/*.py, "lib/{a,b}.c" # why', ("src/*.py", "lib/{a,b}.c")),
        ('paths: "a/*, b/*"', ("a/*", "b/*")),
        ("paths: [\"a b/*.py\", 'c', [ab].md]", ("a b/*.py", "c", "[ab].md")),
        ('paths:\n  - "src/**/*.ts"\n  - **/*.tsx # why\nother: 1', ("src/**/*.ts", "**/*.tsx")),
        ("name: x\npaths:\n- a\n\n- b\n", ("a", "b")),
        ("paths: [\n  'a',\n  b\n]\nother: x", ("a", "b")),
        ("paths:", ()),
        ("name: x", ()),
    ],
)
def test_ways_to_write_paths(head: str, patterns: tuple[str, ...]) -> None:
    assert split_rule(f"---\n{head}\n---\n\nBody.\n") == (patterns, "Body.\n")


@given(st.text(max_size=200))
def test_heads_never_raise(text: str) -> None:
    split_rule(f"---\npaths: {text}\n---\nbody")
    split_rule(f"---\n{text}\n---\nbody")
    split_rule(text)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", "deep/er/b.py"], ["a.pyc", "a.ts"]),
        ("src/**", ["src/a", "src/b/c.ts"], ["lib/src/a", "src"]),
        ("src/*.ts", ["src/a.ts"], ["src/b/c.ts", "x/src/a.ts"]),
        ("/top.md", ["top.md"], ["sub/top.md"]),
        ("**/{api,web}/*.{ts,tsx}", ["x/api/a.ts", "web/b.tsx"], ["x/other/a.ts", "api/a.js"]),
        ("docs/", ["docs/a.md", "x/docs/b/c.md"], ["docs.md"]),
        ("./src/a.c", ["src/a.c"], ["src/b.c"]),
        ("{unclosed", [], ["a"]),
        ("{a,b}" * 20, [], ["a"]),
    ],
)
def test_matching(load: Load, repo: Path, pattern: str, yes: list[str], no: list[str]) -> None:
    write(repo / ".claude/rules/r.md", f"---\npaths:\n  - '{pattern}'\n---\nCareful.\n")
    found = load()
    assert found.files == () and len(found.conditional_rules) == 1
    for name in yes:
        assert [rule.text for rule in found.matching_rules(repo / name)] == ["Careful."], name
    for name in no:
        assert found.matching_rules(repo / name) == [], name


def test_several_patterns_and_an_exception(load: Load, repo: Path) -> None:
    write(repo / ".claude/rules/r.md", "---\npaths: '*.py, !tests/**'\n---\nCareful.\n")
    found = load()
    assert found.matching_rules(repo / "a.py") and not found.matching_rules(repo / "tests/a.py")


def test_patterns_start_at_the_folder_of_the_rules(load: Load, repo: Path, user_home: Path) -> None:
    write(repo / "sub/.reverie/rules/r.md", "---\npaths: /a.py\n---\nSub.\n")
    write(user_home / ".reverie/rules/r.md", "---\npaths: /a.py\n---\nUser.\n")
    found = load(repo / "sub")
    assert [rule.text for rule in found.matching_rules(repo / "sub/a.py")] == ["Sub."]
    assert [rule.text for rule in found.matching_rules(repo / "a.py")] == ["User."]
    assert found.matching_rules(Path("/elsewhere/a.py")) == []


def test_touched_through_a_link(load: Load, repo: Path, tmp_path: Path) -> None:
    write(repo / ".claude/rules/r.md", "---\npaths: src/*.py\n---\nCareful.\n")
    write(repo / "src/a.py", "")
    (tmp_path / "way").symlink_to(repo)
    assert load().matching_rules(tmp_path / "way" / "src" / "a.py")
    assert load().matching_rules(repo / "x" / ".." / "src" / "a.py")


def test_shown_ones_are_left_out_and_order_is_kept(load: Load, repo: Path) -> None:
    for name in "abc":
        write(repo / f".claude/rules/{name}.md", f"---\npaths: '*.py'\n---\nRule {name}.\n")
    found = load()
    rules = found.matching_rules(repo / "x.py")
    assert [rule.text for rule in rules] == ["Rule a.", "Rule b.", "Rule c."]
    assert found.matching_rules(repo / "x.py", {rule.path for rule in rules[:2]}) == rules[2:]


def test_rules_include_and_do_not_repeat_what_is_shown(load: Load, repo: Path) -> None:
    write(repo / "shown.md", "SHOWN")
    write(repo / "style.md", "STYLE")
    write(repo / "AGENTS.md", "@shown.md")
    for name in "ab":
        write(
            repo / f".claude/rules/{name}.md", "---\npaths: '*.py'\n---\n@../../style.md\n@../../shown.md\n<!-- c -->\n"
        )
    found = load()
    assert texts(found) == ["SHOWN"]
    assert [rule.text for rule in found.matching_rules(repo / "x.py")] == ["STYLE", "STYLE"]


def test_a_rule_that_a_file_includes_is_shown_at_once(load: Load, repo: Path) -> None:
    write(repo / ".claude/rules/a.md", "---\npaths: '*.py'\n---\nRule a.\n")
    write(repo / "sub/AGENTS.md", "@../.claude/rules/a.md")
    found = load(repo / "sub")
    assert "Rule a." in texts(found)[0] and found.conditional_rules == ()


def test_a_broken_head_still_counts(load: Load, repo: Path) -> None:
    write(repo / ".claude/rules/a.md", "---\npaths: [*.py\nname: {{{\n---\nRule a.\n")
    assert [rule.text for rule in load().matching_rules(repo / "x.py")] == ["Rule a."]


@pytest.mark.parametrize("pattern", ["a[>- ]b", "[z-a]/**", "x[b-a]"])
def test_a_range_that_runs_backwards_matches_nothing(pattern: str) -> None:
    spec = gitignore((pattern, "*.md"))
    assert spec.match_file("a.md") and not spec.match_file("ab")
