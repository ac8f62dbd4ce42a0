"""The memory commands as people run them: tables, JSON, questions, refusals, undo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import Terminal

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.fixture
def reverie(reverie: Command) -> Command:
    reverie.extra = {}
    return reverie


def asked(reverie: Command, *args: str, **more: Any) -> Any:
    return json.loads(reverie(*args, "--json", **more).stdout)


def root(reverie: Command) -> Path:
    return Path(reverie("memory", "path").stdout.strip())


def test_remember_list_show_search(reverie: Command) -> None:
    assert "yet" in reverie("memory", "list").stderr
    said = reverie("remember", "We deploy on Fridays, because the customers are away").stdout
    assert "project_deploy_fridays.md (project)" in said and "Undo: reverie memory undo" in said
    reverie("remember", "Indent", "with tabs", "--type", "feedback", "--name", "Tabs")
    listed = reverie("memory", "list").stdout
    assert listed.index("feedback_tabs.md") < listed.index("project_deploy_fridays.md") and "2 memories" in listed
    (one,) = asked(reverie, "memory", "list", "--type", "feedback")["memories"]
    assert (one["file"], one["name"], one["trust"]) == ("feedback_tabs.md", "Tabs", "confirmed") or one[
        "name"
    ] == "Tabs"
    assert reverie("memory", "show", "deploy").stdout.endswith("**Why:** the customers are away\n")
    assert asked(reverie, "memory", "show", "project_deploy_fridays")["type"] == "project"
    assert "customers" in reverie("memory", "search", "CUSTOMERS", "fridays").stdout
    assert reverie("memory", "search", "zeppelin", code=1).stdout == ""
    assert (root(reverie) / "MEMORY.md").read_text().count("\n- ") + 1 == 2


def all_texts(reverie: Command) -> list[str]:
    return [reverie("memory", "show", one["file"]).stdout for one in asked(reverie, "memory", "list")["memories"]]


def test_both_statements_are_kept_and_a_repetition_changes_nothing(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")
    assert asked(reverie, "remember", "The staging port is 8081")["action"] == "added"
    assert asked(reverie, "remember", "The staging  port is 8081.")["action"] == "unchanged"
    assert asked(reverie, "remember", "The staging port is 8081", "--new")["action"] == "added"
    piped = reverie("remember", stdin="The staging port is 8082\n")
    assert "Remembered as" in piped.stdout and "may be about the same" in piped.stderr
    bodies = {
        one["file"]: reverie("memory", "show", one["file"]).stdout
        for one in asked(reverie, "memory", "list")["memories"]
    }
    assert [sum(text.count(port) for text in bodies.values()) > 0 for port in ("8080", "8081", "8082")] == [True] * 3
    assert len(bodies) == 4


def test_on_a_terminal_only_the_users_choice_replaces_a_statement(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")

    def choose(text: str, key: str, until: str) -> None:
        with Terminal("remember", text, cwd=reverie.work, env=reverie.env) as terminal:
            terminal.until("or leave it?")
            terminal.press(f"{key}\r")
            terminal.until(until)

    choose("The staging port is 8081", "", "Remembered as")
    choose("The staging port is 8082", "leave", "Nothing was changed")
    assert len(asked(reverie, "memory", "list")["memories"]) == 2
    choose("The staging port is 8083", "replace", "Corrected")
    shown = "".join(
        reverie("memory", "show", one["file"]).stdout for one in asked(reverie, "memory", "list")["memories"]
    )
    assert "8083" in shown and "8082" not in shown


def test_doubts_are_said_and_saved_secrets_are_refused_unseen(reverie: Command) -> None:
    done = reverie("remember", "Fixed the login bug")
    assert "not be worth keeping" in done.stderr and "Remembered" in done.stdout
    for args in (["remember", f"the token is {TOKEN}"], ["remember", "x y", "--name", TOKEN], ["memory", "add", TOKEN]):
        refused = reverie(*args, code=2)
        assert "secrets are never stored" in refused.stderr and TOKEN not in refused.stderr + refused.stdout
    for folder, _, names in os.walk(reverie.home):
        assert not any(TOKEN.lower() in Path(folder, name).read_bytes().decode("latin-1").lower() for name in names)


def test_recall_tells_silence_from_never_having_run(reverie: Command) -> None:
    reverie("remember", "The staging server listens on port 8417")
    found = asked(reverie, "recall", "which port does the staging server use?")
    assert found["ran"] and [one["file"] for one in found["shown"]] == ["project_staging_server_listens_port.md"]
    assert {"score", "why", "age", "gone"} <= found["shown"][0].keys() and found["shown"][0]["age"] == "today"
    silent = asked(reverie, "recall", "wie wird das Wetter morgen in Lissabon")
    assert silent["ran"] and silent["shown"] == [] and silent["reason"]
    never = asked(reverie, "recall", "port")
    assert not never["ran"] and "one word" in never["reason"]
    assert "chose nothing" in reverie("recall", "wie wird das Wetter morgen in Lissabon").stderr
    assert "did not run" in reverie("recall", "port").stderr
    why = reverie("recall", "which port does the staging server use?", "--why").stdout
    assert "words" in why and "builtin ranker, 1 memory" in why


def test_off_names_the_rule_and_leaves_looking_and_undoing(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")
    reverie.extra = {"REVERIE_DISABLE_MEMORY": "1"}
    for args in (
        ["remember", "x y z"],
        ["recall", "the staging port"],
        ["memory", "add", "x y"],
        ["memory", "import", "."],
    ):
        assert "Memory is off (REVERIE_DISABLE_MEMORY is 1)" in reverie(*args, code=1).stderr
    assert "staging_port" in reverie("memory", "list").stdout and "8080" in reverie("memory", "show", "staging").stdout
    version = asked(reverie, "memory", "log")["versions"][0]["short"]
    reverie("memory", "undo", version)
    assert asked(reverie, "memory", "list")["memories"] == []


def test_forget_asks_unless_it_is_clear_and_confirmed(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")
    reverie("remember", "The production port is 443")
    assert "no memory matches" in reverie("forget", "zeppelin mooring", "--yes", code=1).stderr.lower()
    unclear = reverie("forget", "port", "--yes", code=2).stderr
    assert "project_staging_port.md" in unclear and "project_production_port.md" in unclear
    unasked = reverie("forget", "staging port", code=2).stderr
    assert "Nothing was forgotten" in unasked and "--yes" in unasked
    assert len(asked(reverie, "memory", "list")["memories"]) == 2
    assert "Forgot project_staging_port.md" in reverie("forget", "the staging port", "--yes").stdout
    assert "staging" not in (root(reverie) / "MEMORY.md").read_text()
    reverie("memory", "restore", "project_staging_port")
    assert "project_staging_port.md" in (root(reverie) / "MEMORY.md").read_text()


def test_log_diff_undo_and_earlier_versions(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")
    first = asked(reverie, "memory", "log")["versions"][0]["short"]
    path = root(reverie) / "project_staging_port.md"
    editor = ("sed", "-i", "s/8080/8081/g")
    reverie.extra = {**reverie.extra, "EDITOR": " ".join(editor)}
    reverie("memory", "edit", "staging")
    path.write_text(path.read_text().replace("8081", "8082"))
    versions = asked(reverie, "memory", "log", "staging")["versions"]
    assert [one["writer"] for one in versions] == ["hand", "user", "user"], "an edit by hand is a version"
    assert "+The staging port is 8082" in reverie("memory", "diff").stdout
    assert "8080" in reverie("memory", "show", f"project_staging_port@{first}").stdout
    undone = reverie("memory", "undo").stdout
    assert "Undone" in undone and "8081" in path.read_text()
    clash = reverie("memory", "undo", first, code=2).stderr
    assert "cannot be undone" in clash
    assert "There is no version" in reverie("memory", "undo", "abcdef", code=2).stderr
    reverie("memory", "restore", f"project_staging_port.md@{first}")
    assert "8080" in path.read_text()


def test_edit_goes_through_the_gate_and_never_over_somebody_else(reverie: Command, tmp_path: Path) -> None:
    reverie("remember", "The staging port is 8080")
    path = root(reverie) / "project_staging_port.md"
    editor = tmp_path / "editor.py"

    def edits(code: str) -> None:
        editor.write_text(f"import sys, pathlib\ndraft = pathlib.Path(sys.argv[1])\n{code}\n")
        reverie.extra = {"EDITOR": f"{sys.executable} {editor}"}

    edits("draft.write_text(draft.read_text().replace('8080', '9090'))")
    assert "Saved" in reverie("memory", "edit", "staging").stdout and "9090" in path.read_text()
    assert "(project_staging_port.md) — The staging port is 9090" in (root(reverie) / "MEMORY.md").read_text()
    assert asked(reverie, "memory", "log")["versions"][0]["writer"] == "user"
    edits("pass")
    assert "Nothing was changed" in reverie("memory", "edit", "staging").stderr
    edits(f"draft.write_text(draft.read_text() + {TOKEN!r})")
    refused = reverie("memory", "edit", "staging", code=2).stderr
    assert "secrets are never stored" in refused and TOKEN not in refused and TOKEN not in path.read_text()
    edits(f"pathlib.Path({str(path)!r}).write_text('theirs')\ndraft.write_text('mine')")
    lost = reverie("memory", "edit", "staging", code=1).stderr
    assert "changed by somebody else" in lost and path.read_text() == "theirs"
    kept = Path(lost.rstrip().removesuffix(".").rpartition(" ")[2])
    assert kept.read_text() == "mine"
    kept.unlink()
    edits("sys.exit(3)")
    assert "nothing was changed" in reverie("memory", "edit", "staging", code=1).stderr
    reverie.extra = {"EDITOR": "no-such-editor"}
    assert "set EDITOR" in reverie("memory", "edit", "staging", code=2).stderr


def test_check_and_its_fixes(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")
    assert "Nothing is wrong" in reverie("memory", "check").stdout
    folder = root(reverie)
    (folder / "MEMORY.md").write_text("- [Gone](gone.md) — x\n")
    (folder / "feedback_x.md").write_text(f"---\nname: x\n---\nThe key is {TOKEN}\n")
    found = asked(reverie, "memory", "check", code=1)["findings"]
    problems = {(one["problem"], one["file"]) for one in found}
    assert {
        ("dead pointer", "MEMORY.md"),
        ("orphan", "project_staging_port.md"),
        ("no type", "feedback_x.md"),
        ("secret", "feedback_x.md"),
    } <= problems
    shown = reverie("memory", "check", "--fix", code=1).stdout
    assert TOKEN not in shown and "Undo: reverie memory undo" in shown
    left = asked(reverie, "memory", "check", code=1)["findings"]
    assert {one["file"] for one in left} == {"feedback_x.md"}, "what holds a secret is purged first, then mended"
    reverie("memory", "purge", "--yes", stdin=TOKEN)
    reverie("memory", "check", "--fix")
    assert asked(reverie, "memory", "check")["findings"] == []


def test_purge_reads_the_secret_unseen_and_leaves_nothing(reverie: Command) -> None:
    secret = "correct-horse-battery"
    reverie("remember", f"The staging password hint is {secret} and nothing else")
    reverie("run", f"what is the {secret} staging password hint about?", "--quiet")
    reverie("forget", "password hint", "--yes")

    def holders() -> list[Path]:
        files = [Path(folder, name) for folder, _, names in os.walk(reverie.home) for name in names]
        return [path for path in files if secret in path.read_bytes().decode("latin-1")]

    assert holders(), "it stands in the transcript"
    looked = asked(reverie, "memory", "purge", "--dry-run", stdin=f"{secret}\n")
    assert looked["dry_run"] and {"history", "transcript"} <= {place["kind"] for place in looked["places"]}
    assert "there is no terminal to ask on" in reverie("memory", "purge", stdin=secret, code=2).stderr
    assert holders()
    done = reverie("memory", "purge", "--yes", stdin=f"{secret}\n")
    assert "Purged" in done.stdout and secret not in done.stdout + done.stderr
    assert holders() == []
    assert "nowhere" in reverie("memory", "purge", "--dry-run", stdin=secret).stdout
    again = reverie("memory", "purge", secret, "--dry-run")
    assert "shell" in again.stderr and secret not in again.stderr


def test_the_inbox_is_listed_accepted_and_rejected(reverie: Command) -> None:
    assert "The inbox is empty" in reverie("memory", "inbox").stdout
    folder = root(reverie)
    reverie("remember", "The staging port is 8080")
    facts = {"one": "The mirror moved to mirror.example.org last night.", "two": "Pears are sold by weight only."}
    (reverie.work / "page.txt").write_text("\n".join(facts.values()))
    for name, said in facts.items():
        text = f"---\nname: Mirror\ndescription: The mirror {name}\ntype: reference\n---\n\n{said}\n"
        write = json.dumps({"file_path": str(folder / f"reference_mirror_{name}.md"), "content": text})
        script = f'call Read {{"file_path": "page.txt"}}\n---\ncall Write {write}\n---\nsay done\n'
        reverie("run", "please read page.txt", "--model", reverie.script(script), "--quiet")
    items = asked(reverie, "memory", "inbox")["items"]
    assert {one["file"] for one in items} == {"reference_mirror_one.md", "reference_mirror_two.md"}
    shown = reverie("memory", "inbox").stdout
    assert items[0]["id"] in shown and "you did not write mirror.example.org" in shown
    assert "tool: " in shown, "where it comes from is shown"
    assert "mirror.example.org" in reverie("memory", "inbox", "show", items[0]["id"][:4]).stdout
    accepted = reverie("memory", "inbox", "accept", items[0]["id"]).stdout
    assert "confirmed by you" in accepted and "Undo" in accepted
    assert "Nothing in the inbox begins with 'all'" in reverie("memory", "inbox", "accept", "all", code=2).stderr
    reverie("memory", "inbox", "reject", items[1]["id"])
    assert asked(reverie, "memory", "inbox")["items"] == []
    assert asked(reverie, "memory", "show", items[0]["file"])["trust"] == "confirmed"


def test_mistakes_are_one_sentence(reverie: Command) -> None:
    assert "did you mean" in reverie("memory", "lisst", code=2).stderr
    assert "There is no memory" in reverie("memory", "show", "nothing", code=2).stderr
    assert "does not exist" in reverie("memory", "import", "nothing.md", code=2).stderr
    assert "empty" in reverie("remember", "  ", code=2).stderr
    assert "There is no memory" in reverie("memory", "show", "../../../etc/passwd", code=2).stderr
    for args in (["memory", "diff"], ["memory", "undo"]):
        assert "no versions" in reverie(*args, code=2).stderr
    reverie.extra = {"REVERIE_MEMORY_PATH": "relative"}
    assert "REVERIE_MEMORY_PATH" in reverie("memory", "list", code=2).stderr


def test_doctor_tells_how_memory_is_doing(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")
    (root(reverie) / "MEMORY.md").write_text("- [x](x.md) — y\n" * 300)
    checks = {one["name"]: one for one in asked(reverie, "doctor")["checks"]}
    assert "on (default)" in checks["memory"]["found"] and "1 file (1 project)" in checks["memories"]["found"]
    assert checks["index"]["state"] == "warning" and "limit of lines" in checks["index"]["found"]
    assert "by user" in checks["versions"]["found"] and checks["inbox"]["found"] == "empty"


def test_looking_loads_no_event_loop_and_no_sdk(reverie: Command) -> None:
    reverie("remember", "The staging server listens on port 8417")
    heavy = "('asyncio', 'anthropic', 'openai', 'openfeature', 'numpy', 'pydantic', 'prompt_toolkit')"
    for args in (["memory", "list"], ["memory", "log"], ["recall", "which port does the staging server use?"]):
        code = (
            f"import sys; sys.argv = ['reverie', *{args!r}]\n"
            "from reverie.cli.app import app\n"
            "try:\n    app()\nexcept SystemExit:\n    pass\n"
            f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=reverie.work, env=reverie.env, capture_output=True, text=True, check=True
        )
        assert done.stderr.strip().endswith("[]"), (args, done.stderr)


def test_in_a_chat_memories_are_kept_shown_and_forgotten(reverie: Command) -> None:
    lines = ["/remember Indent with tabs", "/memory", "/memory tabs", "/remember", "/forget zeppelin mooring"]
    out = reverie("chat", "--model", "embedded", stdin="\n".join([*lines, "/forget tabs", "/memory", ""])).stdout
    assert "Remembered as feedback_indent_tabs.md" in out and "1 memory." in out and "trust: inferred" in out
    assert "because it was entered in another program, not on a terminal" in " ".join(out.split())
    assert "Say what to remember" in out and "No memory matches" in out
    assert out.index("Forgot feedback_indent_tabs.md") < out.index("There are no memories yet")
    version = asked(reverie, "memory", "log")["versions"][0]
    assert version["writer"] == "user" and version["session"] and "/forget" in version["why"]


def test_on_a_terminal_a_person_is_asked(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")
    for args, question, answer, outcome in (
        (["forget", "staging port"], "Forget it?", "n", "Nothing was forgotten"),
        (["remember", "The staging port is 8081"], "leave it?", "new", "Remembered as project_staging_port_2.md"),
        (["forget", "project_staging_port"], "Forget it?", "y", "Undo: reverie memory undo"),
    ):
        with Terminal(*args, cwd=reverie.work, env=reverie.env) as terminal:
            terminal.until(question)
            terminal.press(f"{answer}\r")
            terminal.until(outcome)
    assert [one["file"] for one in asked(reverie, "memory", "list")["memories"]] == ["project_staging_port_2.md"]


def test_an_import_goes_on_after_a_file_that_it_cannot_read(reverie: Command) -> None:
    folder = reverie.work / "elsewhere"
    folder.mkdir()
    (folder / "a_large.md").write_text("x " * 600_000)
    os.mkfifo(folder / "b_pipe.md")
    (folder / "port.md").write_text("# Port\n\nThe staging port is 8443, behind the proxy.\n")
    reverie.extra.pop("REVERIE_DISABLE_MEMORY", None)
    done = reverie("memory", "import", str(folder), "--yes", code=1)
    assert "Imported 1 memory." in done.stdout
    assert "a_large.md: it has more than 1,000,000 bytes" in done.stderr and "b_pipe.md: " in done.stderr
    told = json.loads(reverie("memory", "import", str(folder), "--json", "--dry-run", code=1).stdout)
    assert [Path(one["source"]).name for one in told["unread"]] == ["a_large.md", "b_pipe.md"]
    assert [one["action"] for one in told["pieces"]] == ["known"]


def test_a_name_from_the_list_can_be_used_as_it_is_shown(reverie: Command) -> None:
    reverie("remember", "--type", "feedback", "From now on, keep commits that regenerate translations separately, ok?")
    file = asked(reverie, "memory", "list")["memories"][0]
    assert file["name"] == "Keep commits that regenerate translations separately", "no words around the rule"
    assert file["file"] in reverie("memory", "list").stdout, "whole, where nobody has to read it on a terminal"
    cut = f"{file['file'].removeprefix('feedback_')[:20]}…"
    assert "regenerate" in reverie("memory", "show", cut).stdout
