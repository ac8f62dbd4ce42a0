"""Only the user may name a program to run: no model, no agent's file and no transcript may."""

from __future__ import annotations

import json
from pathlib import Path

from reverie.paths import Places
from reverie.session import Session
from reverie.settings import load_settings
from tests.sessions import in_session, script, turn


def named(folder: Path) -> str:
    """A model whose program leaves a trace."""
    path = folder / "trace.sh"
    path.write_text(f"#!/bin/sh\ntouch {folder}/ran\necho no\n")
    path.chmod(0o755)
    return f"command:{path}"


def test_a_model_or_an_agents_file_may_not(tmp_path: Path) -> None:
    name = named(tmp_path)
    kinds = tmp_path / ".reverie" / "agents"
    kinds.mkdir(parents=True)
    (kinds / "helper.md").write_text(f"---\nname: helper\ndescription: helps\nmodel: {name}\n---\nHelp.\n")
    calls = [{"subagent_type": "general", "model": name}, {"subagent_type": "helper"}]
    rounds = [json.dumps({"description": "x", "prompt": "y", **one}) for one in calls]
    play = "".join(f"call Agent {one}\n---\n" for one in rounds) + "say Well.\n\n[agent]\nsay From the script.\n"

    async def work(session: Session) -> None:
        await turn(session, "go")
        results = [block.text for entry in session.log.view.entries for block in entry.message.tool_results]
        assert len(results) == 2 and all("From the script." in text for text in results), results

    in_session(work, cwd=tmp_path, model=script(tmp_path, play), overrides={"permissions.mode": "accept_all"})
    assert not (tmp_path / "ran").exists()


def test_a_transcript_may_not(tmp_path: Path) -> None:
    in_session(lambda session: turn(session, "hello"), cwd=tmp_path, model=script(tmp_path, "say hi\n"))
    (path,) = Places.of(tmp_path, load_settings(tmp_path)).project.glob("*.jsonl")
    path.write_text(path.read_text().replace(f"scripted:{tmp_path}/play.script", named(tmp_path)))
    assert "command:" in path.read_text()
    in_session(lambda session: turn(session, "again"), cwd=tmp_path, resume="last")
    assert not (tmp_path / "ran").exists()
