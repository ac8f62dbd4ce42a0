"""Files, commands and options that README, the docs and the help texts name are there. Blocks run in `test_docs.py`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from reverie.cli.app import commands
from reverie.models.script import Script

ROOT = Path(__file__).resolve().parents[1]
DOCS = (*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "layers").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text()
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", prose)
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [name for name in re.findall(r"\bexamples/[\w./-]+", text) if not (ROOT / name.rstrip(".")).exists()]
    assert not missing
    for name in re.findall(r"examples/[\w/-]+\.script", text):
        Script.parse((ROOT / name).read_text(), name)


def test_modules_that_the_tour_names_are_there() -> None:
    """A name without its folder is in the folder of the last path before it."""
    source, folder, missing = ROOT / "src" / "reverie", ROOT, list[str]()
    for name in re.findall(r"`([\w/]+(?:/|\.py|\.md))`", (ROOT / "docs" / "tour.md").read_text()):
        if (source / name).exists():
            folder = source / name if name.endswith("/") else (source / name).parent
        elif not (ROOT / name).exists() and not list(folder.parent.glob(f"**/{name}")):
            missing.append(name)
    assert not missing


def typed(page: Path) -> Iterator[list[str]]:
    """Every use of the command in the code of a page, as words; up to a pipe, a comment or the next command."""
    text = page.read_text()
    code = [*re.findall(r"```.*?\n(.*?)```", text, flags=re.S), *re.findall(r"^    (.*)$", text, flags=re.M)]
    code += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    for line in (line for block in code for line in block.splitlines()):
        for found in re.findall(r"(?:^|[\s(])reverie ((?:[a-z]|-)[^|;&#`)…]*)", line):
            try:
                yield shlex.split(found)
            except ValueError:
                continue


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_that_a_page_names_are_there(page: Path) -> None:
    for words in typed(page):
        command: click.Command = commands
        context = click.Context(commands)
        options = set[str]()
        for word in words:
            if word == "--":
                break  # what follows is the command of another program
            found = command.get_command(context, word) if isinstance(command, click.Group) else None
            if found is not None:
                command = found
            elif command.name == "team" and isinstance(command, click.Group):
                command = command.commands["run"]  # `reverie team FILE` is `reverie team run FILE`
            elif command is commands:
                break
            options |= {opt for param in command.params for opt in param.opts} | {"--help", "-h", "--version"}
            if word.startswith("--") and command is not commands:
                assert word.partition("=")[0].rstrip(".,]") in options, (page.name, words)


WRITTEN = ("--ledger", "--svg", "--plot", "--locomo", ">")
"""What comes behind these is written by the command, or is a data set to download."""
YOURS = ("~", "../", "MEMORY.md", "feedback_", "user_")


def examples(command: click.Command) -> Iterator[str]:
    """Every command that a help text shows."""
    text = f"{command.help or ''}\n{command.epilog or ''}"
    yield from re.findall(r"^ *((?:[\w./%=-]+ .*\| *)?reverie .*)$", text, flags=re.M)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from examples(found)


def test_files_that_a_help_text_names_are_there() -> None:
    shown = list(examples(commands))
    assert len(shown) > 100
    missing = list[str]()
    for line in shown:
        words = shlex.split(line.partition(" | jq")[0])
        for before, word in zip(["", *words], words, strict=False):
            name = word.removeprefix("scripted:")
            is_file = re.fullmatch(r"[\w./{}*-]+\.(?:script|toml|jsonl?|md|txt)|(?:tests|examples)/\S+", name)
            if is_file and before not in WRITTEN and not name.startswith(YOURS) and not (ROOT / name).exists():
                missing.append(line)
    assert not missing
