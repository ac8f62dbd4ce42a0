"""Every command names the folder, the session and JSON in the same way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from reverie.cli.app import commands

NO_FOLDER = {
    "acp": "the editor names the folder of each session",
    "demo": "plays in folders of its own",
    "simulate": "serves requests; no folder matters",
    "models": "encoders belong to the home",
    "lab": "measures the files it is given",
    "completion": "prints a script",
}
NO_JSON = {
    "acp": "speaks a protocol of JSON messages",
    "chat": "a conversation; `run --json` is for programs",
    "demo": "a play for people",
    "simulate": "serves until it is stopped; it writes its ledger with --ledger",
    "web": "serves until it is stopped; every page is JSON under /api",
    "worker": "works until it is stopped; dreams are JSON under /v1/dreams",
    "proxy": "serves until it is stopped; `proxy stats --json` has its figures",
    "serve": "serves until it is stopped; its commands print JSON",
    "completion": "prints a script for a shell",
    "team member": "a part of `team run`, which passes its events on",
}
ANSWER = "say One.\n---\nsay Two.\n---\nsay Three.\n"


def walk(
    command: click.Command, path: str = "", parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something by itself, with its name."""
    with click.Context(command, parent=parent, info_name=path or "reverie") as context:
        if not isinstance(command, click.Group):
            yield path, command
            return
        if path and command.invoke_without_command:
            yield path, command
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walk(found, f"{path} {name}".strip(), context)


ALL = dict(walk(commands))


def option(command: click.Command, name: str) -> click.Option | None:
    return next((one for one in command.params if isinstance(one, click.Option) and name in one.opts), None)


def excused(path: str, reasons: dict[str, str]) -> bool:
    return any(path == name or path.startswith(f"{name} ") for name in reasons)


@pytest.mark.parametrize("path", ALL)
def test_a_command_takes_the_folder_the_session_and_json_as_every_other(path: str) -> None:
    command = ALL[path]
    folder, session = option(command, "--cwd"), option(command, "--session")
    if not excused(path, NO_FOLDER):
        assert folder is not None and folder.opts == ["-C", "--cwd"], path
        assert folder.help == option(ALL["run"], "--cwd").help, path  # type: ignore[union-attr]
    if not excused(path, NO_JSON):
        assert option(command, "--json") is not None, path
    if session is not None:
        assert "-s" in session.opts and session._custom_shell_complete is not None, path
    for argument in (one for one in command.params if isinstance(one, click.Argument)):
        if "SESSION" in (argument.metavar or ""):
            assert session is not None, f"{path}: what can stand alone can be given with -s too"


def test_what_is_excused_is_there() -> None:
    groups = {path.rpartition(" ")[0] for path in ALL} | set(ALL)
    assert set(NO_FOLDER) | set(NO_JSON) <= groups


# -- in use


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two sessions; we stand in another one."""
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    for folder in (work, elsewhere):
        folder.mkdir()
    (tmp_path / "play.script").write_text(ANSWER)
    monkeypatch.setenv("REVERIE_DISABLE_MEMORY", "1")
    monkeypatch.setenv("REVERIE_MODEL", f"scripted:{tmp_path / 'play.script'}")
    monkeypatch.chdir(work)
    for text in ("The lighthouse needs paint.", "The harbour needs a boat."):
        assert run("run", "-q", text).exit_code == 0
    monkeypatch.chdir(elsewhere)
    return work


def run(*args: str) -> Result:
    return CliRunner().invoke(commands, args, standalone_mode=True)


def shown(*args: str) -> dict[str, object]:
    done = run(*args, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def ids(folder: Path) -> list[str]:
    return [one["id"] for one in shown("sessions", "list", "-C", str(folder))["sessions"]]  # type: ignore[attr-defined,index]


def test_a_session_is_named_alone_or_with_s_or_not_at_all(here: Path) -> None:
    newest, oldest = ids(here)
    for command in (["sessions", "path"], ["context"], ["notes"]):
        at = [*command, "-C", str(here)]
        assert shown(*at)["session"] == newest
        assert shown(*at, oldest[:8])["session"] == oldest
        assert shown(*at, "-s", oldest[:8])["session"] == oldest
        assert shown(*at, "--session", oldest, oldest)["session"] == oldest
        twice = run(*at, newest, "-s", oldest)
        assert twice.exit_code == 2 and "Two sessions are given" in twice.output
    assert run("run", "-q", "-C", str(here), "-s", oldest[:8], "More.").stdout == "Two.\n"
    assert run("run", "-q", "-C", str(here), "--resume", oldest[:8], "More.").stdout == "Three.\n"
    assert shown("cost", "-C", str(here), "-s", newest) == shown("cost", "-C", str(here), newest)
    assert shown("sessions", "delete", "-C", str(here), "--yes", newest, "-s", oldest)["deleted"] == [newest, oldest]


def test_a_name_that_is_none_brings_the_nearest(here: Path) -> None:
    newest, oldest = ids(here)
    wrong = ("z" if newest[3] != "z" else "y").join((newest[:3], newest[4:8]))
    for command in (["sessions", "show"], ["notes"], ["compact", "-s"], ["run", "hello", "-s"]):
        done = run(*command, wrong, "-C", str(here))
        assert f"did you mean {newest[:8]}" in str(done.exception or done.output), command
    done = run("sessions", "show", "lighthouse", "-C", str(here))
    assert f"did you mean {oldest[:8]} “The lighthouse needs paint.”" in str(done.exception)
    assert run("notes", newest).exit_code == 0, "a session of another folder is found by its id"
    assert str(here) in str(run("run", "hello", "-s", newest).exception), "where it is continued: says which"
    assert run("sessions", "show", newest).exit_code == 0, "what only looks finds it"


def test_ids_are_completed_in_the_folder_that_is_named(here: Path) -> None:
    newest, oldest = ids(here)
    complete = ShellComplete(commands, {}, "reverie", "_REVERIE_COMPLETE")
    for args in (["context"], ["sessions", "delete"], ["compact", "-s"], ["run", "-s"], ["tasks", "-s"], ["log", "-s"]):
        found = [one.value for one in complete.get_completions([args[0], *args[1:]], "")]
        assert newest not in found, "not of this folder"
        *before, last = args
        order = [*before, "-C", str(here), last] if last == "-s" else [*args, "-C", str(here)]
        found = [one.value for one in complete.get_completions(order, oldest[:4])]
        assert oldest in found, args


def test_what_is_given_to_a_group_holds_for_its_commands(here: Path, tmp_path: Path) -> None:
    kind = here / ".reverie" / "agents" / "painter.md"
    kind.parent.mkdir(parents=True)
    kind.write_text("---\nname: painter\ndescription: paints\n---\nYou paint.\n")
    for args in (["-C", str(here)], ["-C", str(here), "list"], ["list", "-C", str(here)]):
        assert "painter" in run("agents", *args).output, args
        assert "painter" in str(shown("agents", *args)["kinds"]), args
    assert "painter" not in run("agents", "list").output
    assert json.loads(run("agents", "-C", str(here), "--json", "list").output)["kinds"]
    assert json.loads(run("tasks", "--json", "list").output) == []
    assert "No live session begins with 'zz'" in str(run("tasks", "-s", "zz", "list").exception)


def test_json_is_all_there_is_on_standard_output(here: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "pi.jsonl"
    message = {"role": "user", "content": [{"type": "text", "text": "my boat is called Halcyon"}]}
    foreign.write_text(
        json.dumps({"type": "session", "id": "abc-1", "cwd": "/p"})
        + "\n"
        + json.dumps({"type": "message", "message": message})
    )
    (taken,) = shown("sessions", "import", str(foreign), "-C", str(here))["imported"]  # type: ignore[misc]
    assert taken["session"] == "abc-1" and taken["messages"] == 1 and Path(taken["path"]).is_file()
    assert Path(str(shown("sessions", "path", "abc-1", "-C", str(here))["path"])) == Path(taken["path"])
    assert shown("models", "path")["path"]
    for args in (["models", "list"], ["team", "status"], ["tasks"], ["settings"], ["settings", "--flags"], ["doctor"]):
        done = run(*args, "--json", *([] if args[0] == "models" else ["-C", str(here)]))
        json.loads(done.stdout)
    assert all(json.loads(line) for line in run("log", "--json", "-s", "last", "-C", str(here)).stdout.splitlines())
    for args in (
        ["sessions", "path", "zzz"],
        ["settings", "nonesuch"],
        ["models", "path", "nonesuch"],
        ["team", "stop", "x"],
    ):
        done = run(*args, "--json")
        assert done.exit_code and done.stdout == "", "a mistake is told on standard error alone"
    assert "cannot be combined with --json" in run("settings", "--docs", "--json").output
