"""Files that are obeyed because something obeyed leads to them, and names that are obeyed by class."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reverie.permissions.obeyed_links import is_reached_by_obeyed
from reverie.permissions.policy import PolicyMode, make_policy
from reverie.permissions.rules import Allow, Ask, ToolCall
from tests.work import cpu_limit


def writes(cwd: Path, path: str) -> str:
    decision = make_policy(PolicyMode.ACCEPT_EDITS)(
        ToolCall("id", "Write", {"file_path": path, "content": "x"}, False, cwd)
    )
    assert isinstance(decision, Allow | Ask)
    return "allow" if isinstance(decision, Allow) else "ask"


def put(root: Path, name: str, text: str = "") -> Path:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    return root / name


def link(root: Path, name: str, target: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).symlink_to(os.path.relpath(root / target, (root / name).parent))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    put(tmp_path, "work/src/app.py")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("name", "target", "written"),
    [
        ("GEMINI.md", "docs/gem.md", "docs/gem.md"),
        ("sub/AGENTS.md", "docs/gem.md", "docs/gem.md"),
        (".cursorrules", "docs/rules.txt", "docs/rules.txt"),
        (".envrc", "env/dev.sh", "env/dev.sh"),
        (".claude", "dotclaude", "dotclaude/settings.json"),
        (".claude/commands", "agent/commands", "agent/commands/new.md"),
        (".git/hooks/pre-commit", "scripts/pre-commit.sh", "scripts/pre-commit.sh"),
        (".git/hooks", "scripts", "scripts/pre-push"),
        ("sub/.git/hooks/pre-push", "scripts/push.sh", "scripts/push.sh"),
        (".github/workflows/main.yml", "ci/main.yml", "ci/main.yml"),
        (".github/workflows", "ci", "ci/new.yml"),
        (".github", "forge", "forge/workflows/new.yml"),
        (".vscode/tasks.json", "editor/tasks.json", "editor/tasks.json"),
        ("Makefile", "build/main.txt", "build/main.txt"),
        (".unknown-tool", "tool/start.lua", "tool/start.lua"),
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_what_an_obeyed_link_leads_to(work: Path, name: str, target: str, written: str, exists: bool) -> None:
    if exists:
        put(work, written)
    elif target != written:
        (work / target).mkdir(parents=True)
    link(work, name, target)
    assert writes(work, written) == "ask"
    assert writes(work, "src/app.py") == "allow"


def test_a_link_inside_a_folder_that_a_link_leads_to(work: Path) -> None:
    put(work, "texts/one.md")
    link(work, "dotclaude/rules/one.md", "texts/one.md")
    link(work, ".claude", "dotclaude")
    assert writes(work, "texts/one.md") == "ask"
    assert writes(work, "texts/two.md") == "allow"


def test_another_name_of_the_same_file(work: Path) -> None:
    (work / "GEMINI.md").hardlink_to(put(work, "docs/gem.md"))
    assert writes(work, "docs/gem.md") == "ask"


@pytest.mark.parametrize(
    ("config", "written"),
    [
        ("[core]\n\thooksPath = ops/checks\n", "ops/checks/pre-commit"),
        ('[core] hookspath = "./ops/checks" ; ours\n', "ops/checks/deep/x.sh"),
        ("[include]\n\tpath = ../ops/git.inc\n", "ops/git.inc"),
        ("[alias]\n\tst = !ops/st.sh now\n", "ops/st.sh"),
        ("[core]\n\tfsmonitor = ops/st.sh\n", "ops/st.sh"),
    ],
)
def test_what_the_configuration_of_git_names(work: Path, config: str, written: str) -> None:
    put(work, ".git/config", config)
    put(work, "ops/st.sh")
    assert writes(work, written) == "ask"
    assert writes(work, "ops/other.py") == "allow"


def test_hooks_path_of_the_user_and_scripts_that_hooks_call(work: Path) -> None:
    put(work, ".git/HEAD")
    put(work, "tools/check.sh")
    put(work, "tools/other.sh")
    put(work, ".git/hooks/pre-push", '#!/bin/sh\nexec "$(git rev-parse --show-toplevel)"/tools/check.sh "$@"\n')
    put(work.parent, "home/.gitconfig", "[core]\n\thooksPath = team\n")
    assert [writes(work, name) for name in ("team/pre-commit", "tools/check.sh")] == ["ask", "ask"]
    assert writes(work, "tools/other.sh") == "allow"


@pytest.mark.parametrize(
    ("files", "written"),
    [
        ({"Makefile": "include top.inc\n", "top.inc": "-include nested.inc\n"}, "nested.inc"),
        ({"sub/Makefile": "include ../shared/rules.inc\n"}, "shared/rules.inc"),
        ({"Makefile": "include a/top.inc\n", "a/top.inc": "include b/deep.inc\n"}, "b/deep.inc"),
        ({"sub/Makefile": "RULES := ../shared\ninclude $(RULES)/x.inc\n"}, "shared/x.inc"),
        ({"sub/Makefile": "include $(TOP)/shared/x.inc\n", "shared/x.inc": "include shared/y.inc"}, "shared/y.inc"),
        ({"Makefile": "include $(shell cat list)\n"}, "anything.txt"),
        ({"Makefile": "$(eval include x.inc)\n"}, "x.inc"),
        ({"Makefile": "all:\n\t$(MAKE) -f other.txt\n", "other.txt": "include x.inc\n"}, "x.inc"),
        ({"BSDmakefile": '.include "x.inc"\n'}, "x.inc"),
        ({"justfile": "import 'jobs/more.txt'\n"}, "jobs/more.txt"),
        ({"AGENTS.md": "see @docs/style.md\n"}, "docs/style.md"),
        ({"AGENTS.md": "Read (@docs/style.md), please.\n"}, "docs/style.md"),
        ({"sub/CLAUDE.md": "@../rules/more.md\n", "rules/more.md": "- @deep/last.txt.\n"}, "rules/deep/last.txt"),
        ({".cursor/rules/a.mdc": "@docs/style.md\n"}, "docs/style.md"),
        ({".claude/settings.json": '{"hooks": [{"command": "\\"$CLAUDE_PROJECT_DIR\\"/ops/x.sh"}]}'}, "ops/x.sh"),
        ({".mcp.json": '{"command": "python", "args": ["ops/x.sh"]}'}, "ops/x.sh"),
        ({".envrc": "source_env ops/x.sh\n"}, "ops/x.sh"),
        ({".gitlab-ci.yml": "include:\n  - local: /ci/more.yml\n", "ci/more.yml": ""}, "ci/more.yml"),
        ({".github/workflows/a.yml": "steps:\n  - uses: ./ci/setup\n"}, "ci/setup/action.yml"),
    ],
)
def test_what_an_obeyed_text_includes(work: Path, files: dict[str, str], written: str) -> None:
    put(work, "ops/x.sh")
    for name, text in files.items():
        put(work, name, text)
    assert writes(work, written) == "ask"
    if "anything" not in written:
        assert writes(work, "src/app.py") == "allow"


def test_a_working_folder_deep_in_the_project(work: Path) -> None:
    put(work, ".git/HEAD")
    put(work, "AGENTS.md", "@sub/docs/style.md")
    put(work, "Makefile", "include sub/rules.inc")
    (work / ".github/workflows").mkdir(parents=True)
    put(work, "sub/a.py")
    assert [writes(work / "sub", name) for name in ("docs/style.md", "rules.inc", "a.py")] == ["ask", "ask", "allow"]
    assert writes(work / ".github", "workflows/new.yml") == "ask"


def test_ordinary_projects_are_not_asked_about(work: Path) -> None:
    put(work, "Makefile", "OBJECTS = a.o\n-include $(OBJECTS:.o=.d)\n-include $(wildcard local/*.inc)\n")
    put(work, "AGENTS.md", "Mail me@example.org, use @dataclass and `@app.route`.\n")
    put(work, ".github/workflows/ci.yml", "run: python src/app.py\n")
    put(work, ".pre-commit-config.yaml", "args: [-c, pyproject.toml]\n")
    put(work, ".vscode/settings.json", '{"python.testing.pytestArgs": ["tests"]}')
    put(work, "pyproject.toml")
    link(work, "latest", "src")
    link(work, ".gopath/src/work", ".")
    free = ("src/app.py", "pyproject.toml", "docs/new.md", "README.md", "CHANGELOG.md", "local.txt", "tests/test_a.py")
    assert {name: writes(work, name) for name in free} == dict.fromkeys(free, "allow")
    assert [writes(work, name) for name in ("a.d", "local/x.inc")] == ["ask", "ask"]


def test_a_project_too_large_to_look_through_is_asked_about(work: Path) -> None:
    for number in range(30):
        put(work, f"src/{number}.py")
    assert is_reached_by_obeyed([work / "src/app.py"], work, most=10)
    assert not is_reached_by_obeyed([work / "src/app.py"], work, most=100)


def test_texts_made_to_be_slow(work: Path) -> None:
    put(work, "Makefile", "A = $(A) $(A)\ninclude $(A)\n" + "include x.inc\n" * 20_000)
    put(work, "AGENTS.md", "@" * 200_000 + " @a" * 50_000)
    put(work, ".envrc", "$(" * 100_000)
    with cpu_limit(3):
        writes(work, "src/app.py")


@pytest.mark.parametrize(
    "path",
    [
        *(".rules", ".goosehints", "WARP.md", "CRUSH.md", "x/crush.md", ".trae/rules/a.md", ".augment/x", "SKILL.md"),
        *(".github/chatmodes/a.chatmode.md", ".git-hooks/pre-commit", ".simple-git-hooks.json", ".hg/hgrc", "GROK.md"),
        *("BSDmakefile", "_vimrc", ".vim/x.vim", ".vimrc.local", ".local.vimrc", ".theia/tasks.json", ".helix/a.toml"),
        *(".ghci", ".ocamlinit", ".iex.exs", ".octaverc", ".ipython/a.py", ".julia/a.jl", ".zuul.yaml", "src/.newtool"),
        *("codemagic.yaml", ".eslintrc.js", ".pylintrc", ".cargo/config.toml", ".yarn/plugins/x.js", "a/.some/deep/x"),
    ],
)
def test_names_that_are_obeyed_by_class(work: Path, path: str) -> None:
    assert writes(work, path) == "ask"


@pytest.mark.parametrize(
    "path",
    [
        *(".gitignore", "a/.gitattributes", ".dockerignore", ".editorconfig", ".env.example", ".changeset/a.md"),
        *("README.md", "CONTRIBUTING.md", "LICENSE.md", "docs/GROK.md", "TODO.md", "notes.md", "src/Config.md"),
        *(".github/ISSUE_TEMPLATE/bug.md", ".github/CODEOWNERS", ".github/PULL_REQUEST_TEMPLATE.md"),
    ],
)
def test_names_that_are_not(work: Path, path: str) -> None:
    assert writes(work, path) == "allow"
