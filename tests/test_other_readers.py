"""What Reverie writes can be read by tools made for Claude Code's transcripts, and the other way round."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from reverie.session import Session
from reverie.storage.transcript.sessions import list_sessions
from tests.sessions import ended, in_session, script, turn
from tests.shared_data import sources

READER = os.environ.get("REVERIE_TEST_CLAUDE_CODE_LOG", "")


@pytest.mark.integration
@pytest.mark.skipif(not READER, reason="`make integration` installs claude-code-log and names it")
def test_a_third_party_reader_renders_our_transcript(tmp_path: Path) -> None:
    (tmp_path / "colours.txt").write_text("vermilion\n")
    model = script(
        tmp_path, 'think Hm.\nsay Looking.\ncall Read {"file_path": "colours.txt"}\n---\nsay It is vermilion.\n'
    )

    async def work(session: Session) -> Path:
        await turn(session, "which colour is it?")
        await turn(session, "and again, please")
        return session.places.transcript(session.id)

    path = in_session(work, cwd=tmp_path, model=model)
    page = tmp_path / "page.html"
    command = [READER, str(path), "-o", str(page)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    html = page.read_text()
    for text in ("which colour is it?", "and again, please", "It is vermilion.", "vermilion", "colours.txt"):
        assert text in html
    assert "error" not in ran.stderr.lower() and "warning" not in ran.stdout.lower(), ran.stdout + ran.stderr


@pytest.mark.parametrize("number", [0, 5, 11])
@pytest.mark.parametrize("folder", sources("transcripts"))
def test_a_claude_code_session_can_be_gone_on_with(tmp_path: Path, folder: Path, number: int) -> None:
    source = sorted(folder.glob("*.jsonl"))[number]

    async def nothing(session: Session) -> Path:
        return session.places.project

    project = in_session(nothing, cwd=tmp_path)
    project.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, project / source.name)
    before = source.read_bytes()
    (info,) = list_sessions(project)
    assert info.id == source.stem and info.title

    async def work(session: Session) -> str:
        return ended(await turn(session, "go on")).text

    model = script(tmp_path, "repeat forever\n  say Going on.\nend\n")
    assert in_session(work, cwd=tmp_path, model=model, resume=info.id[:8]) == "Going on."
    assert info.path.read_bytes().startswith(before), "what was there is not rewritten"
