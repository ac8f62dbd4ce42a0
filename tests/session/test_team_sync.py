"""Team memory through sessions: what is saved in one home is known in the other, and a failure is said once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.cli.app import commands
from reverie.events import Notice
from reverie.session import Session
from tests.sessions import script
from tests.waiting import LIMIT_S

TOPIC = (
    "---\nname: Freeze\ndescription: releases stop for the audit\ntype: project\n---\nReleases stop on 2026-12-01.\n"
)


class Home:
    """One person's Reverie, which shares a folder with others."""

    def __init__(self, folder: Path, shared: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.work, self._patch = folder, folder / "work", patch
        self.work.mkdir(parents=True)
        (folder / "settings.toml").write_text(f'[team]\nsharing = "folder"\nfolder = "{shared}"\n')
        (folder / "flags.toml").write_text("team_memory = true\n")

    def enter(self) -> None:
        self._patch.setenv("REVERIE_HOME", str(self.folder))

    @property
    def team(self) -> Path:
        (found,) = self.folder.glob("projects/*/memory/team")
        return found

    def visit(self, *says: str, plays: str = "") -> list[str]:
        """One session; what it told about memory, its background work included."""
        self.enter()
        told = list[str]()

        def hear(event: object) -> None:
            if isinstance(event, Notice) and event.source == "memory":
                told.append(event.text)

        async def run() -> None:
            model = script(self.folder, plays or "say Fine.\n")
            async with await Session.open(cwd=self.work, model=model) as session:
                session.listen(hear)
                await session.tasks.drain(LIMIT_S)
                for text in says:
                    async for event in session.send(text):
                        hear(event)
                    await session.tasks.drain(LIMIT_S)

        asyncio.run(run())
        return told


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def test_what_one_session_saves_for_the_team_another_starts_with(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (Home(tmp_path / name, shared, monkeypatch) for name in ("first", "second"))
    first.visit("Hello there, you.")  # the folder is there now, and where it is can be told
    saving = json.dumps({"file_path": str(first.team / "project_freeze.md"), "content": TOPIC})
    told = first.visit("Releases stop on 2026-12-01 for the audit.", plays=f"call Write {saving}\n---\nsay Noted.\n")
    assert any("sent" in line for line in told), told
    marked = TOPIC.replace("type: project\n", "type: project\ntrust: inferred\n")
    assert (shared / "project_freeze.md").read_text() == marked

    told = second.visit()
    assert any("received" in line for line in told), told
    assert (second.team / "project_freeze.md").read_text() == marked
    assert second.visit() == [], "nothing new, nothing said"


def test_a_folder_that_is_gone_is_said_once_and_used_again_when_it_is_back(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home", shared, monkeypatch)
    shared.rmdir()
    (home.folder / "settings.toml").open("a").write("sync_minutes = 0.000001\n")
    told = home.visit("one", "two", plays="say One.\n---\nsay Two.\n")
    assert len(told) == 1 and "is missing" in told[0], told
    shared.mkdir()
    (shared / "project_freeze.md").write_text(TOPIC)
    home.visit()
    assert (home.team / "project_freeze.md").read_text() == TOPIC


def test_the_command_shares_now_and_says_what_is_missing(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home", shared, monkeypatch)
    home.enter()
    (shared / "project_freeze.md").write_text(TOPIC)
    done = CliRunner().invoke(commands, ["memory", "sync", "--json", "-C", str(home.work)], catch_exceptions=False)
    assert "project_freeze.md" in json.loads(done.output)["received"]
    assert "(project_freeze.md)" in (home.team / "MEMORY.md").read_text(), "the index follows"
    for told in ("1 sent", "nothing changed"):
        done = CliRunner().invoke(commands, ["memory", "sync", "-C", str(home.work)], catch_exceptions=False)
        assert told in done.output
    (home.folder / "settings.toml").write_text("")
    done = CliRunner().invoke(commands, ["memory", "sync", "-C", str(home.work)])
    assert done.exit_code and "team.sharing" in str(done.exception or done.output)
