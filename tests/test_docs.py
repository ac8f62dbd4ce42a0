"""Every code block of README and the docs is what it says: it runs, loads or parses, or is named here with the reason.

A block says its language behind the fence. Shell lines run in a scratch copy of the repository with a fresh home, where
the embedded mind answers. `docs/cli.md` is made from the help texts and is checked where they are (`test_readme.py`).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from reverie.agents.definition import AgentDefinition, read_definition
from reverie.agents.team.team_file import load_team
from reverie.flags import Flags
from reverie.instructions.commands import load_commands
from reverie.memory.topic_file import TopicFile
from reverie.models.script import Script
from reverie.paths import Places
from reverie.session import Session
from reverie.settings import load_settings
from tests import warm
from tests.sessions import in_session, turn
from tests.shared_data import sample

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    page
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs" / "layers").glob("*.md")),
        *sorted((ROOT / "docs" / "decisions").glob("*.md")),
    )
    if page.name != "cli.md"
]
NOT_RUN = {
    "make ": "works on this repository itself; CI runs it",
    "pip install": "needs the network; `make soak` installs the wheel (test_wheel.py)",
    "export ANTHROPIC_API_KEY": "a key of your own",
    "OPENAI_BASE_URL=": "a server of your own",
    "export ANTHROPIC_BASE_URL": "for the clients that you start afterwards",
    "export OPENAI_BASE_URL": "for the clients that you start afterwards",
    "reverie connect claude-code": "asks on a terminal (tests/connect)",
    "reverie connect codex": "asks on a terminal (tests/connect)",
    "reverie connect cursor": "asks on a terminal (tests/connect)",
    "reverie connect vscode": "asks on a terminal (tests/connect)",
    "reverie connect zed": "asks on a terminal (tests/connect)",
    "reverie mcp --http": "serves until it is stopped (tests/connect/test_mcp.py)",
    "reverie chat": "a conversation on a terminal (tests/cli/chat)",
    "reverie proxy -": "starts a program of somebody else, or serves until it is stopped (tests/proxy)",
    "reverie web": "serves until it is stopped (tests/web)",
    "reverie context last --web": "opens a browser (tests/web/test_money.py)",
    "reverie cost --web": "opens a browser (tests/web/test_money.py)",
    "curl -H": "asks a web view that runs (tests/web)",
    "reverie simulate": "serves until it is stopped (tests/simulator/test_simulate_command.py)",
    "reverie serve": "serves until it is stopped, or needs a database (tests/integration/server)",
    "reverie worker": "dreams until it is stopped (tests/integration/server/dreams)",
    "reverie memory login": "asks a server that runs (tests/integration/server)",
    "reverie models add": "downloads weights",
    "reverie memory share": "needs a memory server (tests/integration/server/test_client.py)",
    "reverie lab recall": "data of your own (tests/bench/test_recall.py)",
    "reverie lab dream SCENARIOS": "data of your own (tests/bench/test_dream.py)",
    "reverie extract ~/.claude/projects/-home-me-shop --model anthropic": "a key of your own",
    "reverie extract ~/.claude/projects/-home-me-shop --model claude-code": "a subscription of your own",
    "git --git-dir": "a history of your own, named by its place",
}
"""How lines begin that cannot run here, and why."""
SHOWN_ONLY = {
    "proxy.md": "the first line of `reverie proxy stats`",
    "cache.md": "what is printed after a cache miss",
    "embedded.md": "a conversation (tests/offline)",
    "instructions.md": "lines of an instruction file",
    "memory-directory.md": "a folder",
    "l2-microcompaction.md": "what replaces a result",
    "l7-agents.md": "the order of a request",
    "l7-messages.md": "a letter as the agent sees it",
    "mcp.md": "what `reverie lab mcp` prints",
    "serve-dreams.md": "a server of your own (tests/integration/server/dreams)",
    "serve.md": "lines for nginx and systemd",
}
"""Pages with blocks of language `text`, and what they show."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.S | re.M):
        yield Block(page.name, text.count("\n", 0, found.start()) + 1, found[1], found[2])
    if page.name == "settings.md":  # made by the program, which indents
        for found in re.finditer(r"(?:^    .*\n|^\n(?=    ))+", text, flags=re.M):
            yield Block(
                page.name, text.count("\n", 0, found.start()) + 1, "toml", re.sub(r"^    ", "", found[0], flags=re.M)
            )


ALL = [block for page in PAGES for block in blocks(page)]


def of(*languages: str) -> list[Block]:
    return [block for block in ALL if block.language in languages]


def commands(block: Block) -> list[str]:
    """The lines that a person types."""
    lines = block.text.splitlines()
    if block.language == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line for line in (re.sub(r"\s+# .*", "", line).strip() for line in lines) if line]


def test_every_block_says_what_it_is() -> None:
    known = {"python", "sh", "console", "toml", "json", "script", "markdown", "text"}
    assert [str(block) for block in ALL if block.language not in known] == []
    assert {block.page for block in of("text")} == set(SHOWN_ONLY), "a page that only shows something says what"
    indented = [
        page.name for page in PAGES if re.search(r"\n\n    \S", page.read_text()) and page.name != "settings.md"
    ]
    assert indented == [], "a block has a fence and a language"


def test_every_reason_not_to_run_is_needed() -> None:
    typed = [line for block in of("sh", "console") for line in commands(block)]
    assert [start for start in NOT_RUN if not any(line.startswith(start) for line in typed)] == []


@pytest.fixture
def clone(tmp_path: Path, own_home: Path) -> Path:
    """What a clone holds that the commands speak of, with a change that is not committed, and a past to work on."""
    folder = tmp_path / "clone"
    folder.mkdir()
    shutil.copy(ROOT / "README.md", folder)
    shutil.copytree(ROOT / "examples", folder / "examples")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for args in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *args], cwd=folder, check=True)
    with (folder / "README.md").open("a") as file:
        file.write("\nOne more line.\n")
    past = own_home / ".claude" / "projects" / "-home-me-shop"
    past.mkdir(parents=True)
    shutil.copy(sorted(sample("transcripts").glob("*.jsonl"))[0], past)
    return folder


@pytest.mark.timeout(120)
@pytest.mark.parametrize("page", sorted({block.page for block in of("sh", "console")} - {"hooks.md"}))
def test_every_command_of_a_page_works_in_its_order(clone: Path, page: str) -> None:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    if page in ("memory.md", "claude-code.md"):
        warm.run("remember", "The staging port is 8080", cwd=clone, env=env)
    if page in ("cache.md", "health.md"):
        warm.run("run", "--model", "scripted:examples/port.script", "Which port?", cwd=clone, env=env)
    for block in of("sh", "console"):
        for line in commands(block) if block.page == page else ():
            if line.startswith(tuple(NOT_RUN)):
                continue
            plain = line.startswith("reverie ") and not re.search(r"[|;&<>$]", line)
            words = (
                [str(Path(word).expanduser()) if word[0] == "~" else word for word in shlex.split(line)]
                if plain
                else ["sh", "-c", line]
            )
            done = (
                warm.run_text(*words[1:], cwd=clone, env=env)
                if plain
                else subprocess.run(words, cwd=clone, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            )
            assert done.returncode == 0 and "Traceback" not in done.stderr, (str(block), line, done.stdout, done.stderr)
            assert done.stdout.strip(), (str(block), line)


def test_what_memory_prints_is_what_the_page_shows(clone: Path) -> None:
    """Apart from the names of versions and the figures; and a test does not type on a terminal, so it only infers."""
    warm.run("remember", "The staging port is 8080", cwd=clone, env=os.environ)
    for block in of("console"):
        if block.page == "memory.md":
            (line,) = commands(block)
            shown = block.text.partition("\n")[2]
            done = warm.run_text(*shlex.split(line)[1:], cwd=clone, env=os.environ)
            changing = r"\b[0-9a-f]{10}\b|\d+(?:\.\d+)?%?"
            printed = re.sub(r"It counts as inferred.*\n", "", done.stdout).replace("inferred", "confirmed")
            assert re.sub(changing, "#", printed).strip() == re.sub(changing, "#", shown).strip(), str(block)


@pytest.mark.parametrize("block", of("python"), ids=str)
def test_the_python_of_a_page_runs(
    clone: Path, own_home: Path, block: Block, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clone)
    given = PREPARED.get(block.page, lambda _home: {})(own_home)
    code = block.text.replace("/tmp/demo", str(own_home / "demo"))

    def run(**more: Any) -> None:
        names: dict[str, Any] = {"__name__": "page", **given, **more}
        exec(compile(code, str(block), "exec"), names)
        for name, value in names.items():
            if name.startswith("test_"):
                value()

    if block.page == "cache.md":

        async def work(session: Session) -> None:
            await turn(session, "hello")
            run(session=session, path=session.places.transcript(session.id))

        in_session(work, cwd=clone, model="scripted:examples/port.script")
    else:
        run()
    assert block.page != "README.md" or "TurnEnded" in capsys.readouterr().out


def _for_recall(home: Path) -> dict[str, Any]:
    memory = home / "memory"
    shutil.copytree(sample("memory-dir/.claude/memory"), memory)
    return {"memory_dir": memory, "index_path": home / "index.db", "home": home, "already_shown": ()}


def _for_simulator(home: Path) -> dict[str, Any]:
    def my_agent(base_url: str, api_key: str) -> None:
        import anthropic

        with anthropic.Anthropic(base_url=base_url, api_key=api_key) as client:
            client.messages.create(**body)

    body = {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
    return {"run_my_agent": my_agent, "recorded_requests": [(0.0, body), (60.0, body)]}


PREPARED = {
    "recall.md": _for_recall,
    "simulator.md": _for_simulator,
}
"""The names that the text around a block speaks of."""


def test_data_and_scripts_parse() -> None:
    for block in of("json"):
        json.loads(block.text)
    for block in of("script"):
        Script.parse(block.text, str(block))


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_settings_flags_and_teams_load(tmp_path: Path, own_home: Path, block: Block) -> None:
    if block.page == "l7-messages.md":
        (tmp_path / "team.toml").write_text(block.text)
        assert load_team(tmp_path / "team.toml").team == "docs"
        return
    home = own_home / ".reverie"
    home.mkdir()
    is_flags = "dream = false" in block.text
    (home / ("flags.toml" if is_flags else "settings.toml")).write_text(block.text)
    settings = load_settings(tmp_path)
    assert not settings.warnings
    if is_flags:
        flags = Flags.open(Places.of(tmp_path, settings), settings)
        assert not flags.on("dream") and flags.snapshot().on("recall.no_index") and not flags.warnings
        flags.close()
    else:
        assert block.text.strip().splitlines()[0].strip("[]").partition(".")[0] in (
            "connect",
            "hooks",
            "instructions",
            "model",
            "telemetry",
        )


@pytest.mark.parametrize("block", of("markdown"), ids=str)
def test_files_with_a_head_are_read(tmp_path: Path, block: Block) -> None:
    path = tmp_path / "reviewer.md"
    path.write_text(block.text)
    head = yaml.safe_load(block.text.split("---\n")[1])
    match block.page:
        case "l7-agents.md":
            kind = read_definition(path)
            assert isinstance(kind, AgentDefinition) and kind.name == head["name"]
        case "memory-directory.md":
            topic = TopicFile.parse(path.read_bytes())
            assert topic.name == head["name"] and topic.type == head["type"] and not topic.problems
        case "commands.md":
            (tmp_path / ".claude" / "commands").mkdir(parents=True)
            path.rename(tmp_path / ".claude" / "commands" / "review.md")
            settings = load_settings(tmp_path)
            found = load_commands(Places.of(tmp_path, settings), settings).named["review"]
            assert (found.description, found.hint) == (head["description"], head["argument-hint"]) and found.ignored
        case _:
            assert list(head) == ["paths"]
