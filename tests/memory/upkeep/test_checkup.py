"""The check: finds what is wrong, says where, and its fixes land as one version that loses no word."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from reverie.memory.changes import ProposedWrite, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.references import RepoFiles, named_files
from reverie.memory.upkeep.checkup import CheckFinding, Problem, apply_fixes, check
from tests.shared_data import sources

BY = WriteInfo(Writer.USER, "check")


def accept(proposed: ProposedWrite) -> None:
    del proposed


def memory(tmp_path: Path, **files: str) -> MemoryDirectory:
    for name, text in files.items():
        path = tmp_path / "memory" / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return MemoryDirectory.open(tmp_path / "memory", gate=accept)


def head(name: str, body: str = "", kind: str = "user", description: str = "d") -> str:
    return f"---\nname: {name}\ndescription: {description}\ntype: {kind}\n---\n\n{body or f'Only {name} says this.'}\n"


def found(findings: tuple[CheckFinding, ...]) -> set[tuple[str, str]]:
    return {(finding.problem.value, finding.file) for finding in findings}


def test_a_tidy_directory_has_no_findings(tmp_path: Path) -> None:
    directory = memory(tmp_path, MEMORY="# Mine\n- [A](user_a.md) — d\n", user_a=head("A"))
    assert check(directory) == ()
    assert apply_fixes(directory, check(directory), BY) is None
    assert not directory.history.git_dir.exists(), "looking wrote something"


def test_pointers_and_files_are_made_to_agree(tmp_path: Path) -> None:
    directory = memory(
        tmp_path,
        MEMORY="# Mine\n- [A](user_a.md) — d\n- [Gone](gone.md) — x\n- [A again](user_a.md) — y\nSee [old](old.md).\n",
        user_a=head("A"),
        user_b=head("B"),
        team__project_c=head("C", kind="project"),
    )
    findings = check(directory)
    assert found(findings) == {
        ("dead pointer", "MEMORY.md"),
        ("double pointer", "MEMORY.md"),
        ("orphan", "user_b.md"),
        ("orphan", "team/project_c.md"),
    }
    assert [finding.line for finding in findings if finding.file == "MEMORY.md"] == [None, 3, 4]
    version = apply_fixes(directory, findings, BY)
    assert version is not None and [change.name for change in version.files] == ["MEMORY.md", "team/MEMORY.md"]
    assert directory.index() == "# Mine\n- [A](user_a.md) — d\n- [B](user_b.md) — d\nSee old.\n"
    assert directory.index(team=True) == "- [C](project_c.md) — d\n"
    assert check(directory) == ()
    directory.undo(version.id, BY)
    assert found(check(directory)) == found(findings)


def test_an_over_long_line_moves_its_words_into_the_file(tmp_path: Path) -> None:
    long = "word " * 60 + "the very end"
    directory = memory(tmp_path, MEMORY=f"- [A](user_a.md) — {long}\n", user_a=head("A"))
    findings = check(directory)
    assert found(findings) == {("over-long line", "MEMORY.md")}
    apply_fixes(directory, findings, BY)
    assert len(directory.index()) <= 152 and directory.index().endswith("…\n")
    assert directory.read("user_a.md").text == head("A") + f"\n{long}\n"


def test_heads_are_put_right(tmp_path: Path) -> None:
    directory = memory(
        tmp_path,
        MEMORY="- [A](feedback_a.md)\n- [B](b.md)\n- [C](c.md)\n",
        feedback_a="---\nname: A: the first\ndescription: d\n---\nOne statement.\n",
        b="Just prose here.\nAnd more.\n",
        c=head("C", kind="person"),
    )
    findings = check(directory)
    assert found(findings) == {
        ("broken frontmatter", "feedback_a.md"),
        ("no type", "feedback_a.md"),
        ("no type", "b.md"),
        ("no description", "b.md"),
        ("no type", "c.md"),
    }
    apply_fixes(directory, findings, BY)
    assert directory.read("feedback_a.md").text == (
        '---\nname: "A: the first"\ndescription: d\ntype: feedback\n---\nOne statement.\n'
    )
    assert directory.read("b.md").topic.description == "Just prose here."
    assert found(check(directory)) == {("no type", "b.md"), ("no type", "c.md")}


def test_doubles(tmp_path: Path) -> None:
    text = "Run the linter before every commit, because the build server rejects unformatted code without a word."
    directory = memory(
        tmp_path,
        MEMORY="- [A](user_a.md)\n- [B](user_b.md)\n- [N](user_n.md)\n",
        user_a=head("A", text),
        user_copy=head("Copy", text.replace("the linter", "the  linter")),
        user_n=head("N", text.replace("word", "single word")),
        user_b=head("B"),
        team__user_a=head("A", text),
        team__MEMORY="- [A](user_a.md)\n",
    )
    findings = check(directory)
    assert ("duplicate", "user_copy.md") in found(findings)
    assert ("duplicate", "team/user_a.md") not in found(findings), "the team's copy is another scope"
    assert any(finding.problem is Problem.NEAR_DUPLICATE and "user_n.md" in finding.message for finding in findings)
    apply_fixes(directory, [finding for finding in findings if finding.problem is Problem.DUPLICATE], BY)
    assert directory.names() == ["team/user_a.md", "user_a.md", "user_b.md", "user_n.md"]


def test_files_that_the_repository_lost(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (repo / "src" / "app").mkdir(parents=True)
    (repo / "src" / "app" / "main.py").write_text("")
    body = (
        "Start in `src/app/main.py`, also called `app/main.py:12` or `main.py`. Not `src/app/old.py`, nor `lost.ts`.\n"
        "Neither `https://x.org/a.py` nor `*.py` nor `value.method` nor `../up.py` counts, `src/gone/` does.\n"
    )
    directory = memory(tmp_path, MEMORY="- [A](user_a.md)\n", user_a=head("A", body))
    stale = [finding for finding in check(directory, repo=repo) if finding.problem is Problem.STALE_REFERENCE]
    assert {finding.message.split("`")[1] for finding in stale} == {"lost.ts", "src/app/old.py", "src/gone/"}
    assert all(finding.fix is None and finding.line in (7, 8) for finding in stale)
    assert check(directory) == ()
    assert RepoFiles(repo).missing(named_files(body)) == ("src/app/old.py", "lost.ts", "src/gone/")


def test_secrets_are_named_by_kind_and_never_shown(tmp_path: Path) -> None:
    directory = memory(
        tmp_path, MEMORY="- [A](user_a.md) — key-123\n", user_a=head("A", "the key is key-123"), user_b=head("B")
    )
    findings = check(directory, secrets=lambda text: ["API key"] * text.count("key-123"))
    secret = [finding for finding in findings if finding.problem is Problem.SECRET]
    assert {finding.file for finding in secret} == {"MEMORY.md", "user_a.md"}
    assert all("API key" in finding.message and "key-123" not in finding.message for finding in secret)


def test_an_index_beyond_its_limits(tmp_path: Path) -> None:
    lines = "".join(f"- [F{number}](user_f{number}.md)\n" for number in range(210))
    directory = memory(tmp_path, MEMORY=lines, **{f"user_f{number}": head(f"F{number}") for number in range(210)})
    assert found(check(directory)) == {("index too large", "MEMORY.md")}


@pytest.mark.parametrize(
    "folder",
    [
        *sources("memory-dir/.claude/memory"),
        *sources("dream-dev/04-index-repair/before"),
        *sources("recall-dev/memory")[1:],
    ],
)
def test_real_directories_are_clean_after_their_fixes(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder, tmp_path / "memory")
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)
    directory = MemoryDirectory.open(tmp_path / "memory", gate=accept)
    before = " ".join(directory.read(name).text for name in [*directory.names(), "MEMORY.md"])
    findings = check(directory)
    apply_fixes(directory, findings, BY)
    assert [finding for finding in check(directory) if finding.fix] == []
    after = " ".join(directory.read(name).text for name in [*directory.names(), "MEMORY.md"])
    dead = {
        finding.message for finding in findings if finding.problem in (Problem.DEAD_POINTER, Problem.DOUBLE_POINTER)
    }
    if not dead:
        assert set(before.split()) <= set(after.split())
