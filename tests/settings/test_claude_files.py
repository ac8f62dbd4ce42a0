"""Settings files of Claude Code as they are: hooks and permissions, trust, and what is said about the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.permissions.patterns import find_applying_rule, find_covering_rule
from reverie.permissions.policy import Rules
from reverie.permissions.rules import ToolCall
from reverie.settings import Settings, load_settings
from reverie.settings.claude_rules import RuleReader, split_rules
from reverie.storage.trust_file import trust


def write(path: Path, data: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
    return path


def hook(command: str, **more: object) -> dict[str, object]:
    return {"type": "command", "command": command, **more}


def group(*handlers: object, matcher: object = None) -> dict[str, object]:
    return {"matcher": matcher, "hooks": list(handlers)}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def load(work: Path, **more: object) -> Settings:
    return load_settings(work, **more)  # type: ignore[arg-type]


def trust_all(work: Path) -> Settings:
    found = load(work)
    trust(found.places.home, [part for part in found.parts if part.can_be_trusted], work)
    return load(work)


def test_the_users_own_hooks_count_at_once_and_those_of_a_folder_only_with_trust(work: Path, own_home: Path) -> None:
    write(own_home / ".claude" / "settings.json", {"hooks": {"Stop": [group(hook("echo mine", timeout=7))]}})
    committed = write(
        work / ".claude" / "settings.json",
        {"hooks": {"PreToolUse": [group(hook("./check.sh", **{"async": True}), matcher="^Ba")]}},
    )
    (work / "check.sh").write_text("exit 0\n")
    found = load(work)
    assert [(one.command, one.timeout_s, one.matcher, one.folder) for one in found.hooks.Stop] == [
        ("echo mine", 7.0, "*", None)
    ]
    assert found.hooks.PreToolUse == ()
    [part] = found.parts
    assert (part.key, part.file, part.ignored) == (
        "hooks.PreToolUse",
        ".claude/settings.json",
        "you have not trusted this folder",
    )
    assert any("`hooks.PreToolUse` is ignored" in text for text in found.warnings)
    [one] = trust_all(work).hooks.PreToolUse
    assert (one.command, one.matcher, one.timeout_s, one.wait, one.folder) == (
        "./check.sh",
        ".*(?:^Ba).*",
        600.0,
        False,
        work,
    )
    (work / "check.sh").write_text("exit 1\n")
    assert load(work).hooks.PreToolUse == () and "has changed" in " ".join(load(work).warnings)
    committed.unlink()
    assert load(work).parts == ()


def test_a_program_with_arguments_becomes_one_line_of_the_shell(work: Path, own_home: Path) -> None:
    handler = hook("node", args=["${CLAUDE_PROJECT_DIR}/a b.js", "it's", ""])
    write(own_home / ".claude" / "settings.json", {"hooks": {"Stop": [group(handler)]}})
    assert load(work).hooks.Stop[0].command == "node \"${CLAUDE_PROJECT_DIR}\"'/a b.js' 'it'\"'\"'s' ''"


def test_what_has_no_meaning_here_is_named_once_and_the_rest_counts(work: Path, own_home: Path) -> None:
    path = write(
        own_home / ".claude" / "settings.json",
        {
            "hooks": {
                "Notification": [group(hook("beep"))],
                "Stop": [
                    group({"type": "http", "url": "http://127.0.0.1:1"}, hook("echo ok"), hook(""), 7),
                    group(hook("x"), matcher="("),
                    "odd",
                ],
                "PreToolUse": "odd",
            },
            "enabledPlugins": {"reverie@reverie": True},
            "permissions": {"defaultMode": "bypassPermissions", "allow": "Bash(ls:*)", "deny": [3, "Bash(", "\0"]},
        },
    )
    found = load(work)
    assert [one.command for one in found.hooks.Stop] == ["echo ok"]
    assert found.permissions.mode == "ask" and found.permissions.allow == ("Bash(ls:*)",)
    assert found.permissions.deny == ()
    said = "\n".join(found.warnings)
    for part in (
        "`Notification`",
        "type 'http'",
        "no usable command",
        "not a regular",
        "bypassPermissions",
        "deny '3'",
    ):
        assert said.count(part) == 1, (part, said)
    assert all(text.startswith(str(path)) for text in found.warnings)


@pytest.mark.parametrize("text", ["{", "[]", "", "\x00\xff", '{"hooks": []}', '{"permissions": 3}', "[" * 100_000])
def test_a_broken_file_never_ends_anything(work: Path, own_home: Path, text: str) -> None:
    write(own_home / ".claude" / "settings.json", text)
    found = load(work)
    assert len(found.warnings) == (0 if not text else 1) and found.hooks.Stop == ()


def test_switches_other_homes_and_files_that_switch_hooks_off(
    work: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"hooks": {"Stop": [group(hook("echo a"))]}, "permissions": {"deny": ["Bash(curl:*)"]}}
    write(own_home / ".claude" / "settings.json", data)
    off = load(work, overrides={"claude.hooks": False})
    assert off.hooks.Stop == () and off.permissions.deny == ("Bash(curl:*)",)
    assert load(work, overrides={"claude.permissions": False}).permissions.deny == ()
    other = write(own_home / "other" / "settings.json", {"hooks": {"Stop": [group(hook("echo b"))]}})
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other.parent))
    assert [one.command for one in load(work).hooks.Stop] == ["echo b"]
    write(other, {**data, "disableAllHooks": True})
    assert load(work).hooks.Stop == ()


def test_what_connect_installs_for_other_agents_does_not_run_in_ours(work: Path, own_home: Path) -> None:
    ours = hook("/x/python -I -S /x/site-packages/reverie/daemon/hook.py Stop")
    write(own_home / ".claude" / "settings.json", {"hooks": {"Stop": [group(ours, hook("echo a"))]}})
    assert [one.command for one in load(work).hooks.Stop] == ["echo a"]


def test_a_folder_may_deny_and_ask_without_trust_but_neither_allow_nor_widen_the_mode(work: Path) -> None:
    rules = {"allow": ["Bash(make:*)"], "ask": ["Edit"], "deny": ["Read(./.env)"], "defaultMode": "acceptEdits"}
    write(work / ".claude" / "settings.local.json", {"permissions": rules})
    found = load(work)
    given = found.permissions
    assert (given.allow, given.ask, given.mode) == ((), ("Edit",), "ask") and "Read(./.env)" in given.deny
    assert {part.key for part in found.parts} == {"permissions.allow", "permissions.mode"}
    trusted = trust_all(work).permissions
    assert trusted.allow == ("Bash(make:*)",) and trusted.mode == "accept_edits"
    write(work / ".reverie" / "settings.toml", '[permissions]\nmode = "read_only"\n')
    assert load(work).permissions.mode == "read_only", "our own files win"


def test_a_source_says_what_a_file_means_here_and_where(work: Path, own_home: Path) -> None:
    path = write(
        own_home / ".claude" / "settings.json", {"model": "x", "permissions": {"deny": ["Read(!x)", "Edit(a)"]}}
    )
    found = load(work)
    for kind, rules in (("ask", ["Read"]), ("deny", ["Edit(a)", "Edit(**/a/**)"])):
        [source] = found.sources[f"permissions.{kind}"]
        assert source.file is not None and source.file.data["permissions"][kind] == rules
        assert str(source) == f"{path}:{3 if kind == 'ask' else 4}"


CWD = Path("/p/app")
CALLS = {
    "push": ToolCall("1", "Bash", {"command": "git push --force"}, False, CWD),
    "log": ToolCall("1", "Bash", {"command": "git log -3"}, False, CWD),
    "env": ToolCall("1", "Read", {"file_path": ".env"}, True, CWD),
    "deep": ToolCall("1", "Read", {"file_path": "secrets/a/key"}, True, CWD),
    "hosts": ToolCall("1", "Read", {"file_path": "/etc/hosts"}, True, CWD),
    "src": ToolCall("1", "Edit", {"file_path": "/p/app/src/x.py"}, False, CWD),
    "other": ToolCall("1", "Edit", {"file_path": "/p/app/lib/x.py"}, False, CWD),
    "mcp": ToolCall("1", "mcp__git__log", {}, True, CWD),
}


@pytest.mark.parametrize(
    ("kind", "rule", "meant"),
    [
        ("deny", "Bash(git push:*)", "push"),
        ("deny", "Bash(git push *)", "push"),
        ("deny", "Bash(git push*)", "push"),
        ("deny", "Bash(git push --force)", "push"),
        ("deny", "Bash", "push log"),
        ("deny", "Read(.env)", "env"),
        ("deny", "Read(./secrets)", "deep"),
        ("deny", "Read(./secrets/**)", "deep"),
        ("deny", "Read(//etc/**)", "hosts"),
        ("deny", "Edit(/src/**)", "src"),
        ("deny", "mcp__git", "mcp"),
        ("ask", "Bash(git * --force)", "push"),
        ("ask", "Bash(git p* --force:*)", "push"),
        ("ask", "Bash(*force*)", "push"),
        ("deny", "Bash(git l*)", "log"),
        ("deny", "Bash(git [l]*)", ""),
        ("ask", "Bash(* *)", "push log"),
        ("allow", "Bash(git log:*)", "log"),
        ("allow", "Bash(git * --force)", ""),  # cannot be expressed: nothing is allowed
        ("allow", "Bash(*)", "push log"),
        ("allow", "Edit(src/**)", "src"),
        ("allow", "Edit(/src/**)", "src"),
        ("allow", "Read({.env,x})", ""),
        ("allow", "Agent(Explore)", ""),
        ("allow", "WebFetch(domain:example.com)", ""),
        ("allow", "Edit(!src/**)", ""),
        ("allow", "NotebookEdit", ""),
        ("allow", "Read(**)", "env deep"),  # below the working folder, not everywhere
        ("allow", "Bash()", ""),
        ("allow", "Bash(:*)", ""),
        ("deny", "Read(**)", "env deep hosts"),
    ],
)
def test_rules_mean_the_same_or_less_if_they_allow_and_more_if_they_deny(kind: str, rule: str, meant: str) -> None:
    reader = RuleReader(CWD)
    reader.read(kind, rule)
    rules = Rules.parse(**reader.rules)
    given = getattr(rules, kind)
    find = find_covering_rule if kind == "allow" else find_applying_rule
    assert {name for name, call in CALLS.items() if find(call, given)} == set(meant.split())


def test_a_deny_that_cannot_be_expressed_asks_and_says_so() -> None:
    reader = RuleReader(CWD)
    reader.read("deny", "Read(!x)")
    reader.read("deny", "WebFetch(domain:example.com)")
    assert reader.rules == {"allow": [], "ask": ["Read", "WebFetch"], "deny": []}
    [said] = reader.problems()
    assert "ask about more calls: deny 'Read(!x)'" in said


def test_a_list_of_rules_is_split_outside_brackets() -> None:
    given = "Read, Bash(git add:*) Bash(echo (x), y:*),,Bash(open"
    assert split_rules(given) == ["Read", "Bash(git add:*)", "Bash(echo (x), y:*)", "Bash(open"]
    reader = RuleReader(CWD)
    for rule in split_rules(given):
        reader.read("allow", rule)
    assert "Bash" not in reader.rules["allow"], "half a rule never becomes a wider one"
