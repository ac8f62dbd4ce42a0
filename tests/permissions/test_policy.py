"""Policies and rules: what each mode answers, which rule wins, and that no rule can be stretched."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.permissions.path_glob import compile_glob
from reverie.permissions.patterns import find_applying_rule, find_covering_rule, make_rule, parse_rule
from reverie.permissions.policy import (
    Policy,
    PolicyMode,
    Rules,
    accept_all,
    headless,
    interactive,
    make_policy,
    read_only,
    with_rules,
)
from reverie.permissions.rules import Allow, Ask, Decision, Deny, ToolCall
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.tools.registry import make_builtin_tools
from tests.counts import count


def by_rules(mode: PolicyMode, rules: Rules = Rules(), *, can_ask: bool = True) -> Policy:  # noqa: B008 (frozen)
    """A policy where there is no sandbox, so that every command that no rule allows asks."""
    return make_policy(mode, rules, can_ask=can_ask, sandboxes=Sandboxes(wanted=False))


READS = {tool.name: tool.is_read_only for tool in make_builtin_tools()}


def call(tool: str, cwd: Path = Path("/work"), **given: Any) -> ToolCall:
    reads = READS[tool](given) if tool in READS else False
    return ToolCall("id", tool, given, reads, cwd)


def answer(policy: Policy, tool: str, cwd: Path = Path("/work"), **given: Any) -> str:
    return {Allow: "allow", Ask: "ask", Deny: "deny"}[type(policy(call(tool, cwd, **given)))]


def bash_allowed(command: str, *allow: str) -> bool:
    return find_covering_rule(call("Bash", command=command), [parse_rule(text) for text in allow]) is not None


# -- modes


@pytest.mark.parametrize(
    ("tool", "given", "ask", "accept_edits", "read_only_mode"),
    [
        ("Read", {"file_path": "a.py"}, "allow", "allow", "allow"),
        ("Read", {"file_path": "/etc/hosts"}, "allow", "allow", "allow"),
        ("Read", {"file_path": ".env"}, "ask", "ask", "ask"),
        ("Read", {"file_path": ".env.example"}, "allow", "allow", "allow"),
        ("Read", {"file_path": "~/.ssh/id_ed25519"}, "ask", "ask", "ask"),
        ("Read", {"file_path": "src/../.env"}, "ask", "ask", "ask"),
        ("Read", {"file_path": "/proc/self/environ"}, "ask", "ask", "ask"),
        ("Grep", {"pattern": "x"}, "allow", "allow", "allow"),
        ("Grep", {"pattern": "x", "path": "~/.aws/credentials"}, "ask", "ask", "ask"),
        ("Glob", {"pattern": "**/*.py"}, "allow", "allow", "allow"),
        ("Glob", {"pattern": "~/.ssh/*"}, "ask", "ask", "ask"),
        ("Bash", {"command": "ls -la | wc -l"}, "allow", "allow", "allow"),
        ("Bash", {"command": "cat ~/.ssh/id_rsa"}, "ask", "ask", "deny"),
        ("Bash", {"command": "cat '.env'"}, "ask", "ask", "deny"),
        ("Bash", {"command": "rm a"}, "ask", "ask", "deny"),
        ("Write", {"file_path": "a.py"}, "ask", "allow", "deny"),
        ("Edit", {"file_path": "src/a.py"}, "ask", "allow", "deny"),
        ("Edit", {"file_path": "../other/a.py"}, "ask", "ask", "deny"),
        ("Write", {"file_path": "/etc/passwd"}, "ask", "ask", "deny"),
        ("Write", {"file_path": ".git/hooks/pre-commit"}, "ask", "ask", "deny"),
        ("Write", {"file_path": ".Git/hooks/pre-commit"}, "ask", "ask", "deny"),
        ("Edit", {"file_path": ".reverie/settings.toml"}, "ask", "ask", "deny"),
        ("Agent", {"prompt": "x"}, "allow", "allow", "allow"),
        ("Agent", {"prompt": "x", "isolation": "worktree"}, "ask", "ask", "deny"),
        ("SendMessage", {"to": "ann", "message": "x"}, "allow", "allow", "allow"),
        ("mcp__x__y", {}, "ask", "ask", "deny"),
    ],
)
def test_modes(tool: str, given: dict[str, Any], ask: str, accept_edits: str, read_only_mode: str) -> None:
    assert answer(by_rules(PolicyMode.ASK), tool, **given) == ask
    assert answer(by_rules(PolicyMode.ACCEPT_EDITS), tool, **given) == accept_edits
    assert answer(by_rules(PolicyMode.READ_ONLY), tool, **given) == read_only_mode
    assert answer(by_rules(PolicyMode.ACCEPT_ALL), tool, **given) == "allow"
    for mode, expected in ((PolicyMode.ASK, ask), (PolicyMode.ACCEPT_EDITS, accept_edits)):
        assert answer(by_rules(mode, can_ask=False), tool, **given) == expected.replace("ask", "deny")


@pytest.mark.parametrize(
    "path",
    [
        *(
            "AGENTS.md",
            "docs/agents.md",
            "CLAUDE.md",
            "CLAUDE.local.md",
            ".claude/agents/a.md",
            ".reverie/settings.local.toml",
        ),
        *(".mcp.json", ".cursorrules", ".cursor/rules/a.mdc", ".github/copilot-instructions.md", "GEMINI.md"),
        *(".envrc", ".bashrc", "x/.zshenv", ".profile", "mise.toml", ".config/fish/config.fish", ".local/bin/ls"),
        *(".git/config", ".git/hooks/pre-push", ".githooks/pre-commit", ".husky/pre-commit", ".pre-commit-config.yaml"),
        *(".gitmodules", "lefthook.yml", ".vscode/tasks.json", ".VSCode/settings.json", ".idea/workspace.xml"),
        *("x.code-workspace", ".devcontainer/devcontainer.json", ".github/workflows/ci.yml", ".gitlab-ci.yml"),
        *(".circleci/config.yml", "Jenkinsfile", "azure-pipelines.yml", ".travis.yml", ".GITHUB/Workflows/x.yml"),
        *("Makefile", "sub/makefile", "rules.mk", "Makefile.am", "justfile", ".venv/bin/python", "node_modules/.bin/x"),
        *("build/rules.inc", "config/any.txt", "linked.md", "way/hooks/x", ".env", "tls.key"),
    ],
)
def test_what_is_obeyed_later_is_asked_about_in_accept_edits(tmp_path: Path, path: str) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "Makefile").write_text("all:\n\ttrue\n-include \\\n build/rules.inc config/$(KIND).txt # x\n")
    (tmp_path / "AGENTS.md").symlink_to("linked.md")
    (tmp_path / ".git").mkdir()
    (tmp_path / "way").symlink_to(".git")
    for tool in ("Write", "Edit"):
        assert answer(by_rules(PolicyMode.ACCEPT_EDITS), tool, tmp_path, file_path=path) == "ask"
        assert answer(by_rules(PolicyMode.ACCEPT_EDITS, can_ask=False), tool, tmp_path, file_path=path) == "deny"


@pytest.mark.parametrize(
    "path",
    [
        *("src/app.py", "package.json", "pyproject.toml", "setup.py", "tests/conftest.py", "README.md", "docs/git.md"),
        *(
            ".env.example",
            ".gitignore",
            ".editorconfig",
            "Dockerfile",
            "src/make.py",
            "build/other.inc",
            ".github/CODEOWNERS",
        ),
    ],
)
def test_what_an_agent_is_asked_to_edit_is_not_asked_about(tmp_path: Path, path: str) -> None:
    (tmp_path / "Makefile").write_text("include build/rules.inc\n")
    assert answer(by_rules(PolicyMode.ACCEPT_EDITS), "Write", tmp_path, file_path=path) == "allow"


@pytest.mark.parametrize(
    "path",
    [
        *("mcp_config.json", "sub/mcp_config.json", "tools/my-mcp-servers.json", "gemini-extension.json", "flake.nix"),
        *("Tiltfile", "deploy/Tiltfile", "Vagrantfile", "devbox.json", "devenv.nix", "plugin.json", "Procfile.dev"),
        *(
            "unheard-of.config.json",
            "Agentfile",
            "tool.toml",
            "tool.yaml",
            "tool.kdl",
            "tool.star",
            "toolrc",
            "x.json5",
        ),
        *("AGENT", "tool.conf", "tool.xml", "tool.properties", "tool.hcl", "tool.", "tool.md.toml"),
    ],
)
def test_new_configuration_is_asked_about_in_accept_edits(tmp_path: Path, path: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    policy = by_rules(PolicyMode.ACCEPT_EDITS)
    assert answer(policy, "Write", tmp_path, file_path=path) == "ask"
    assert answer(policy, "Write", tmp_path / "sub", file_path=f"../{path}") == "ask"
    assert answer(by_rules(PolicyMode.ACCEPT_EDITS, can_ask=False), "Write", tmp_path, file_path=path) == "deny"


@pytest.mark.parametrize("path", ["tool.toml", "toolrc", "data/new.json", "src/settings.yaml", "LICENSE", "run.sh"])
def test_configuration_of_the_project_is_edited_without_a_question(tmp_path: Path, path: str) -> None:
    for name in ("tool.toml", "toolrc"):
        (tmp_path / name).touch()
    assert answer(by_rules(PolicyMode.ACCEPT_EDITS), "Edit", tmp_path, file_path=path) == "allow"


def test_a_link_out_of_the_folder_is_outside(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret").mkdir()
    (work / "way").symlink_to(tmp_path / "secret")
    (work / "key").symlink_to("/root/.ssh/id_rsa")
    policy = by_rules(PolicyMode.ACCEPT_EDITS)
    assert answer(policy, "Write", work, file_path="way/x") == "ask"
    assert answer(policy, "Write", work, file_path="plain/x") == "allow"
    assert answer(policy, "Read", work, file_path="key") == "ask"
    assert answer(with_rules(Rules.parse(allow=["Write(**)"]), interactive), "Write", work, file_path="way/x") == "ask"
    denied = with_rules(Rules.parse(deny=[f"Write({tmp_path}/secret/**)"]), accept_all)
    assert answer(denied, "Write", work, file_path="way/x") == "deny"


def test_a_working_folder_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert answer(by_rules(PolicyMode.ACCEPT_EDITS), "Write", tmp_path / "link", file_path="a.py") == "allow"
    rules = with_rules(Rules.parse(allow=["Write(src/**)"]), interactive)
    assert answer(rules, "Write", tmp_path / "link", file_path="src/a") == "allow"


def test_reasons_are_sentences() -> None:
    for policy in (interactive, read_only, headless(interactive)):
        for made in (call("Write", file_path="a", content="x"), call("Bash", command="rm -r x"), call("mcp__x__y")):
            decision: Decision = policy(made)
            assert isinstance(decision, Ask | Deny) and decision.reason.endswith("."), decision


def test_headless_says_how_to_allow() -> None:
    decision = headless(interactive)(call("Bash", command="npm test"))
    assert isinstance(decision, Deny)
    assert "--allow 'Bash(npm test)'" in decision.reason and "permissions.allow" in decision.reason


# -- rules


def test_deny_beats_ask_beats_allow_beats_the_mode() -> None:
    rules = Rules.parse(allow=["Bash(git:*)"], ask=["Bash(git push:*)", "Read"], deny=["Bash(git reset:*)"])
    policy = with_rules(rules, interactive)
    assert answer(policy, "Bash", command="git reset --hard") == "deny"
    assert answer(policy, "Bash", command="git push") == "ask"
    assert answer(policy, "Bash", command="git fetch") == "allow"
    assert answer(policy, "Read", file_path="a") == "ask"
    answered = with_rules(rules.allowing({"Bash(git push)"}), interactive)
    assert answer(answered, "Bash", command="git push") == "allow", "who was asked is not asked again"
    assert answer(policy, "Write", file_path="a") == "ask"
    assert answer(with_rules(rules, accept_all), "Read", file_path="a") == "ask"
    assert answer(with_rules(rules, accept_all), "Bash", command="cd x && git reset --hard") == "deny"


def test_always_allow_adds_to_the_rules() -> None:
    rules = Rules.parse(deny=["Edit(secret/**)"])
    policy = by_rules(PolicyMode.ASK, rules.allowing(frozenset({"Edit", "Bash(npm test)"})))
    assert answer(policy, "Edit", file_path="a") == "allow"
    assert answer(policy, "Write", file_path="a") == "allow"
    assert answer(policy, "Edit", file_path="secret/a") == "deny"
    assert answer(policy, "Write", file_path="secret/a") == "deny"
    assert answer(policy, "Bash", command="npm test") == "allow"
    assert answer(policy, "Bash", command="npm test -- x") == "ask"


@pytest.mark.parametrize(
    ("rule", "path", "covers"),
    [
        ("Write(src/**)", "src/a/b.py", True),
        ("Write(src/**)", "srcs/a.py", False),
        ("Write(src/**)", "src/../a.py", False),
        ("Write(src/*)", "src/a/b.py", False),
        ("Write(*.md)", "docs/a.md", True),
        ("Write(*.md)", "/elsewhere/a.md", False),
        ("Write(./*.md)", "docs/a.md", False),
        ("Write(/etc/**)", "/etc/hosts", True),
        ("Write(//etc/**)", "/etc/hosts", True),
        ("Write(~/notes/**)", "~/notes/a", True),
        ("Write(**)", "any/where.py", True),
        ("Write(**)", "/out/side.py", False),
        ("Write(docs/{a,b}.md)", "docs/b.md", True),
        ("Write(docs/{a,b}.md)", "docs/c.md", False),
        ("Edit(src/**)", "src/a.py", True),
        ("Write", "/anything", True),
        ("*", "/anything", True),
        ("Wr*", "/anything", True),
        ("Read(src/**)", "src/a.py", False),
    ],
)
def test_path_rules(rule: str, path: str, covers: bool) -> None:
    made = call("Write", file_path=path)
    assert (find_covering_rule(made, [parse_rule(rule)]) is not None) is covers
    assert (find_applying_rule(made, [parse_rule(rule)]) is not None) is covers


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("git status", True),
        ("git status -s", True),
        ("git  status", True),
        ("git 'status'", True),
        ("git statusx", False),
        ("git", False),
        ("git -c core.pager=evil status", False),
        ("git status && git status -s", True),
        ("git status | tail -3", True),
        ("git status; ls -la", True),
        ("git status 2>&1 | head -5 || ls", True),
        ("git status > /dev/null 2>&1", True),
        ("git status && evil", False),
        ("git status & evil", False),
        ("git status; evil", False),
        ("git status | evil", False),
        ("git status |& evil", False),
        ("git status || evil", False),
        ("git status\nevil", False),
        ("git status\revil", False),
        ("git status $(evil)", False),
        ("git status `evil`", False),
        ("git status <(evil)", False),
        ('git status "$(evil)"', False),
        ("git status ${x:-$(evil)}", False),
        ("git status ${x@P}", False),
        ("git status $((a[$(evil)]))", False),
        ("git status > file", False),
        ("git status >> ~/.bashrc", False),
        ("git status > /dev/null evil", False),
        ("git status <<< x", False),
        ("PAGER=evil git status", False),
        ("(git status)", False),
        ("{ git status; }", False),
        ("! git status", False),
        ("git() { evil; }; git status", False),
        ("if git status; then evil; fi", False),
        ("git status # evil", False),
        ("git status \\\n evil", False),
        ("eval git status", False),
        ("/tmp/git status", False),
        ("$git status", False),
        ("", False),
        ("git status '", False),
        (" && ".join(["git status"] * 3_000), True),
    ],
)
def test_a_prefix_rule_cannot_be_stretched(command: str, allowed: bool) -> None:
    assert bash_allowed(command, "Bash(git status:*)") is allowed
    assert bash_allowed(command, "Bash(git status *)") is allowed


def test_other_forms_of_bash_rules() -> None:
    assert bash_allowed("make && make test > log", "Bash(make && make test > log)")
    assert not bash_allowed("make && make test > logs", "Bash(make && make test > log)")
    assert bash_allowed("anything $(at all)", "Bash(*)") and bash_allowed("anything", "Bash")
    assert bash_allowed("npm test && cargo build", "Bash(npm:*)", "Bash(cargo build:*)")
    assert not bash_allowed("ls", "Bash(git:*)")  # allowed by the mode, not by this rule


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x",
        "/bin/rm x",
        "cd x && rm y",
        "echo $(rm x)",
        "sudo -u root rm x",
        "bash -c 'cd x; rm y'",
        "find . -exec rm {} +",
        "ls | xargs rm",
        "for f in *; do rm $f; done",
        "'rm' x",
        "r\\m x",
        "A=1 rm x",
        "rm x > log",
        "if true; then rm x; fi",
        "(rm x)",
        "echo a\nrm x",
        "timeout 5 env A=1 rm x",
        "eval 'rm x'",
    ],
)
def test_a_deny_rule_finds_its_command(command: str) -> None:
    assert find_applying_rule(call("Bash", command=command), [parse_rule("Bash(rm:*)")])


@pytest.mark.parametrize("command", ["echo rm", "git rm x", "ls # rm x", "grep 'rm x' file", "rmdir x"])
def test_a_deny_rule_finds_nothing_else(command: str) -> None:
    assert not find_applying_rule(call("Bash", command=command), [parse_rule("Bash(rm:*)")])


def test_read_rules_cover_searches() -> None:
    rules = [parse_rule("Read(private/**)")]
    assert find_applying_rule(call("Grep", pattern="x", path="private/notes"), rules)
    assert find_applying_rule(call("Glob", pattern="private/notes/*.md"), rules)
    assert not find_applying_rule(call("Grep", pattern="private"), rules)


@pytest.mark.parametrize(
    "text", ["", "Bash(", "Bash()", "Bash( )", "(x)", "Agent(x)", "two words", "Write({a,b}{a,b})x"]
)
def test_a_rule_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UserError, match="permission rule"):
        parse_rule(text)


def test_a_rule_with_too_many_choices() -> None:
    with pytest.raises(UserError, match="256 patterns"):
        parse_rule("Write(" + "{a,b}" * 10 + ")")


@pytest.mark.parametrize(
    "made",
    [
        call("Bash", command="npm run (x) && echo ')'"),
        call("Write", file_path="src/a.py"),
        call("Edit", file_path="a[1]*?.py"),
        call("Write", file_path="/elsewhere/a b"),
        call("Agent", prompt="x"),
    ],
)
def test_the_suggested_rule_allows_the_call(made: ToolCall) -> None:
    text = make_rule(made)
    assert text and find_covering_rule(made, [parse_rule(text)])


def test_no_rule_is_suggested_that_would_allow_more() -> None:
    assert make_rule(call("Bash", command="ls *")) is None
    assert make_rule(call("Bash", command="echo a:*")) is None
    assert make_rule(call("Bash", command="*")) is None


@settings(max_examples=count(30, 2_000), deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "*", "**", "?"]), min_size=1, max_size=5),
    st.lists(st.sampled_from("ab"), min_size=1, max_size=5),
)
def test_globs_agree_with_a_plain_reading(pattern: list[str], path: list[str]) -> None:
    def plain(parts: list[str], names: list[str]) -> bool:
        if not parts:
            return not names
        if parts[0] == "**":
            last = len(parts) == 1  # at the end it stands for at least one name
            return any(plain(parts[1:], names[n:]) for n in range(last, len(names) + 1))
        return bool(names) and (parts[0] in ("*", "?", names[0])) and plain(parts[1:], names[1:])

    assert compile_glob("/".join(pattern), anchored=True).matches("/".join(path)) is plain(pattern, path)


_PIECES = [
    "say",
    "say",
    "say x",
    "evil",
    " ",
    " ",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "\n",
    "\r",
    "\t",
    "$(",
    "`",
    ")",
    "(",
    '"',
    "'",
    "\\",
]
_PIECES += [
    "#",
    "<",
    ">",
    ">>",
    "{",
    "}",
    "=",
    "$",
    "~",
    "!",
    "x=",
    "/dev/null",
    "2>&1",
    "2>",
    "$x",
    "${x}",
    "<<E",
    "*",
    "[",
    "]",
]
_PIECES += ["\u00a0", "\u2028", "$'", "if", "then", "do", "function", ":", "-", "<(", "&>", "@", "\x0b", "eval"]


@pytest.mark.soak
def test_whatever_a_prefix_rule_allows_runs_nothing_else(tmp_path: Path) -> None:
    """Random commands around an allowed program; those that are allowed really run, in a folder that is watched."""
    programs, scratch = tmp_path / "bin", tmp_path / "scratch"
    programs.mkdir()
    scratch.mkdir()
    for name, body in (("say", "exit 0"), ("evil", f"touch {tmp_path}/sprung")):
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    dice = random.Random(7)
    rule = [parse_rule("Bash(say:*)")]
    ran = 0
    environment = {"PATH": str(programs), "HOME": str(tmp_path)}
    bash = "/bin/bash"
    for _ in range(count(1_500, 60_000)):
        command = "say " + "".join(dice.choice(_PIECES) for _ in range(dice.randint(1, 8)))
        if not find_covering_rule(call("Bash", scratch, command=command), rule):
            continue
        ran += 1
        subprocess.run(
            [bash, "-c", command],
            cwd=scratch,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert not (tmp_path / "sprung").exists() and not list(scratch.iterdir()), repr(command)
    assert ran > count(50, 2_000), "too few were allowed for this to mean anything"
