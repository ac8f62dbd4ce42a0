"""Every event of the hooks, with the fields and answers that hooks for Claude Code know."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reverie.events import Notice, ToolFinished
from reverie.session import Session
from reverie.types import Origin, TextBlock, ToolResultBlock
from tests.sessions import ended, in_session, of_kind, script, turn


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for flag in ("EXTRACTION", "SESSION_NOTES", "DREAM"):
        monkeypatch.setenv(f"REVERIE_FLAG_{flag}", "0")


def configure(**hooks: str | dict[str, Any]) -> None:
    """Writes the user's settings.json of Claude Code."""
    path = Path(os.environ["HOME"]) / ".claude" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    handlers = {
        event: [{"hooks": [{"type": "command", **({"command": one} if isinstance(one, str) else one)}]}]
        for event, one in hooks.items()
    }
    path.write_text(json.dumps({"hooks": handlers}))


def heard(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().split("\n") if line] if log.exists() else []


def says(event: str, **answer: object) -> str:
    return f"echo '{json.dumps({'hookSpecificOutput': {'hookEventName': event, **answer}})}'"


EVENTS = (
    *("SessionStart", "InstructionsLoaded", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
    *("PostToolBatch", "PreCompact", "PostCompact", "Stop", "SubagentStart", "SubagentStop", "SessionEnd"),
)


def test_every_event_comes_once_with_its_fields(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    configure(**dict.fromkeys(EVENTS, f"(cat; echo) >> {log}"))
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    (tmp_path / "one.txt").write_text("one\n" + "the tide comes in twice a day\n" * 700)
    agent = 'call Agent {"description": "look", "prompt": "Look.", "subagent_type": "general"}\n'
    play = f"""
call Bash {{"command": "cat one.txt"}}
call Bash {{"command": "cat nowhere"}}
---
{agent}---
say Done.

[agent]
call Bash {{"command": "ls"}}
---
say Looked.
"""

    async def work(session: Session) -> None:
        await turn(session, "go")
        await session.compact()

    in_session(work, cwd=tmp_path, model=script(tmp_path, play))
    told = heard(log)
    names = [one["hook_event_name"] for one in told]
    assert set(names) == set(EVENTS)
    first = {one["hook_event_name"]: one for one in reversed(told)}
    assert names.count("UserPromptSubmit") == names.count("Stop") == names.count("PostCompact") == 1
    assert first["InstructionsLoaded"]["memory_type"] == "Project"
    assert first["InstructionsLoaded"]["file_path"] == str(tmp_path / "AGENTS.md")
    prompt = first["UserPromptSubmit"]
    assert prompt["prompt_id"] == first["Stop"]["prompt_id"] and prompt["permission_mode"] == "default"
    used = first["PostToolUse"]
    assert used["tool_response"]["stdout"].startswith("one\n") and used["duration_ms"] >= 0
    asked = {one["tool_use_id"] for one in told if one["hook_event_name"] == "PreToolUse"}
    assert used["tool_use_id"] in asked and "agent_id" not in used
    failed = first["PostToolUseFailure"]
    assert failed["tool_input"] == {"command": "cat nowhere"} and "nowhere" in failed["error"]
    batch = first["PostToolBatch"]["tool_calls"]
    assert {one["tool_input"]["command"] for one in batch} == {"cat one.txt", "cat nowhere"}
    begun, over = first["SubagentStart"], first["SubagentStop"]
    assert begun["agent_type"] == over["agent_type"] == "general" and begun["agent_id"] == over["agent_id"]
    inside = [one for one in told if one.get("agent_id") and one["hook_event_name"] == "PostToolUse"]
    assert [(one["agent_id"], one["agent_type"]) for one in inside] == [(begun["agent_id"], "general")]
    assert [one for one in told if one["hook_event_name"] == "PreToolUse" and one.get("agent_type")]
    assert first["Stop"]["last_assistant_message"] == "Done." and first["Stop"]["background_tasks"] == []
    assert first["PostCompact"]["trigger"] == "manual" and "one.txt" in first["PostCompact"]["compact_summary"]
    assert first["SessionEnd"]["reason"] == "exit"


def results(session: Session) -> list[ToolResultBlock]:
    content = [block for message in session.view.messages() for block in message.content]
    return [block for block in content if isinstance(block, ToolResultBlock)]


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("short", "short"),
        ({"stdout": "out", "stderr": "err", "interrupted": False}, "out\nerr"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"odd": 1}, '{"odd": 1}'),
    ],
)
def test_a_hook_replaces_what_the_model_sees_and_resume_gives_the_same_bytes(
    tmp_path: Path, given: object, seen: str
) -> None:
    configure(PostToolUse=says("PostToolUse", updatedToolOutput=given, additionalContext="It was long."))
    (tmp_path / "big.txt").write_text("secret line\n" * 10_000)
    play = script(tmp_path, 'call Bash {"command": "cat big.txt"}\n---\nsay {result}\n---\nsay ok\n')

    async def work(session: Session) -> tuple[str, str, list[Any]]:
        events = await turn(session, "go")
        [shown] = of_kind(events, ToolFinished)
        assert shown.text == seen
        [block] = results(session)
        assert block.content == seen and block.origin is Origin.TOOL, "before layer 1: no preview of the whole"
        return session.id, ended(events).text, [message.wire() for message in session.view.messages()]

    name, answer, sent = in_session(work, cwd=tmp_path, model=play)
    assert answer == seen
    stored = next(Path(os.environ["REVERIE_HOME"]).glob(f"projects/*/{name}.jsonl")).read_text()
    assert "secret line" not in stored, "the transcript holds only what counts"

    async def again(session: Session) -> list[Any]:
        return [message.wire() for message in session.view.messages()]

    assert in_session(again, cwd=tmp_path, model=play, resume=name) == sent


def test_a_large_replacement_goes_to_disk_like_any_result(tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text(
        "import json\nprint(json.dumps({'hookSpecificOutput': {'updatedToolOutput': 'y' * 90000}}))\n"
    )
    configure(PostToolUse=f"python3 {tmp_path / 'say.py'}")
    play = script(tmp_path, 'call Bash {"command": "ls"}\n---\nsay ok\n')

    async def work(session: Session) -> str:
        await turn(session, "go")
        return str(results(session)[0].content)

    assert len(in_session(work, cwd=tmp_path, model=play)) < 5_000


def test_text_of_hooks_has_their_origin_and_is_never_the_users(tmp_path: Path) -> None:
    configure(
        SessionStart=says("SessionStart", initialUserMessage="Begin with the tests."),
        PostToolBatch=says("PostToolBatch", additionalContext="Batch over."),
        SubagentStart=says("SubagentStart", additionalContext="You are watched."),
    )
    agent = 'call Agent {"description": "look", "prompt": "Look.", "subagent_type": "general"}\n'
    play = script(tmp_path, f"{agent}---\nsay {{result}}\n\n[agent]\nsay I read: {{text}}\n")

    async def work(session: Session) -> str:
        assert session.hook_points.has_first_message
        events = [event async for event in session.send("")]
        blocks = [block for message in session.view.messages() for block in message.content]
        hooks = {block.text for block in blocks if isinstance(block, TextBlock) and block.origin is Origin.HOOK}
        assert any("Begin with the tests." in text for text in hooks)
        assert any("Batch over." in text for text in hooks)
        assert not any(isinstance(block, TextBlock) and block.origin.is_users for block in blocks)
        return ended(events).text

    assert "<hook-text>\nYou are watched.\n</hook-text>" in in_session(work, cwd=tmp_path, model=play)


def test_context_of_a_stop_hook_makes_the_agent_go_on_once(tmp_path: Path) -> None:
    hook = tmp_path / "hook.sh"
    hook.write_text(
        f'case "$(cat)" in *\'"stop_hook_active": false\'*) {says("Stop", additionalContext="Count again.")};; esac\n'
    )
    configure(Stop=f"sh {hook}")
    play = script(tmp_path, "when /Count again/\n  say Four.\nend\nsay Three.\n---\nsay Four.\n")
    assert ended(in_session(lambda session: turn(session, "go"), cwd=tmp_path, model=play)).text == "Four."


def test_a_hook_after_a_tool_may_end_the_turn(tmp_path: Path) -> None:
    configure(PostToolUse='echo \'{"continue": false, "stopReason": "enough for today"}\'')
    play = script(tmp_path, 'call Bash {"command": "ls"}\n---\nsay never\n')
    last = ended(in_session(lambda session: turn(session, "go"), cwd=tmp_path, model=play))
    assert (last.reason, last.error) == ("refused", "enough for today")


def test_a_hook_that_nobody_waits_for(tmp_path: Path) -> None:
    done = tmp_path / "done"
    answer = says("UserPromptSubmit", additionalContext="too late")
    configure(UserPromptSubmit={"command": f"sleep 0.5; {answer}; echo $REVERIE_INSIDE > {done}", "async": True})

    async def work(session: Session) -> str:
        said = ended(await turn(session, "go")).text
        assert not done.exists(), "the turn does not wait"
        return said

    assert "too late" not in in_session(work, cwd=tmp_path, model=script(tmp_path, "say You said: {text}\n"))
    assert done.read_text().strip() == "1"


def test_a_file_with_mistakes_costs_a_notice_and_the_session_goes_on(tmp_path: Path) -> None:
    path = Path(os.environ["HOME"]) / ".claude" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{ not json")
    events = in_session(lambda session: turn(session, "go"), cwd=tmp_path, model=script(tmp_path, "say ok\n"))
    assert ended(events).text == "ok"
    assert [one.text for one in of_kind(events, Notice) if "not valid JSON" in one.text]
