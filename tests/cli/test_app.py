"""The command as a whole: help, names, exit codes, and what it does not load."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from reverie.cli.app import COMMANDS, EXIT_CODES
from reverie.cli.reference import reference_page
from tests.cli.conftest import Command

PAGE = reference_page()
ALL_COMMANDS = re.findall(r"^#{2,3} reverie (\S.*)$", PAGE, re.MULTILINE)


def test_the_page_about_the_commands_is_current(request: pytest.FixtureRequest) -> None:
    page = request.config.rootpath / "docs" / "cli.md"
    assert page.read_text() == PAGE, "write it anew: python -m reverie.cli.reference > docs/cli.md"


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_command_shows_an_example(name: str) -> None:
    section = PAGE.split(f"# reverie {name}\n", 1)[1].split("\n#", 1)[0]
    assert re.search(r"Examples?:\n(.*\n)*?\s+.*reverie ", section), f"{name} --help has no example"


def test_the_table_says_what_the_commands_say(reverie: Command) -> None:
    shown = reverie("--help").stdout
    for name, entry in COMMANDS.items():
        assert re.search(rf"^  {name}\s+{re.escape(entry.help)}", shown, re.MULTILINE)


def _imported(reverie: Command, *args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "reverie", *args],
        cwd=reverie.work,
        env=reverie.env,
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


def test_help_imports_no_command(reverie: Command) -> None:
    loaded = _imported(reverie, "--help")
    assert "click" in loaded
    assert not {entry.target.split(":")[0] for entry in COMMANDS.values()} & loaded


@pytest.mark.parametrize("args", [("sessions", "list"), ("sessions", "list", "--all"), ("sessions", "path", "last")])
def test_commands_that_only_read_load_nothing_heavy(reverie: Command, args: tuple[str, ...]) -> None:
    reverie("run", "hello there")
    loaded = _imported(reverie, *args)
    heavy = {"asyncio", "anthropic", "openai", "openfeature", "prompt_toolkit", "tree_sitter", "httpx"}
    assert not heavy & loaded
    assert not {"reverie.session", "reverie.flags", "reverie.models.catalogue"} & loaded


def test_an_unknown_command_names_the_nearest(reverie: Command) -> None:
    done = reverie("sesions", code=2)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("reverie: There is no command 'sesions'; did you mean sessions")
    assert "did you mean `reverie memory share`?" in reverie("share", "x", code=2).stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("run", "--modle", "x", "hi"), "--modle"),
        (("run", "--max-rounds", "0", "hi"), "0 is not in the range"),
        (("sessions", "delete"), "Name the sessions"),
        (("run", "--cwd", "nowhere", "hi"), "nowhere"),
        (("run", "--continue", "--resume", "x", "hi"), "cannot be given together"),
        (("completion", "csh"), "csh"),
    ],
)
def test_a_wrong_use_is_one_line_and_exit_code_2(reverie: Command, args: tuple[str, ...], said: str) -> None:
    done = reverie(*args, code=2)
    assert done.stderr.startswith("reverie: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert "--help" in done.stderr


def test_a_mistake_in_the_settings_names_file_line_and_nearest_key(reverie: Command) -> None:
    reverie.home.mkdir()
    (reverie.home / "settings.toml").write_text('\n[modle]\nname = "x"\n')
    done = reverie("run", "hi", code=2)
    assert "settings.toml:2" in done.stderr
    assert "`model`" in done.stderr


def test_version(reverie: Command) -> None:
    assert reverie("--version").stdout == reverie("-V").stdout
    assert re.fullmatch(r"reverie \d+\.\d+\.\d+\n", reverie("--version").stdout)


def test_a_reader_that_leaves_is_no_error(reverie: Command) -> None:
    process = reverie.start("--help")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(20) in (0, 141)


def test_output_that_cannot_be_written_is_said(reverie: Command) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "reverie", "settings"],
            cwd=reverie.work,
            env=reverie.env,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 4
    assert done.stderr.startswith("reverie: ")
    assert "Traceback" not in done.stderr


def test_exit_codes_are_documented() -> None:
    from reverie import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ReverieError)]
    assert {kind.exit_code for kind in kinds} <= set(EXIT_CODES)
