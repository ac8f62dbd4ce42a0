"""`reverie extract`: recorded sessions become memory, turn by turn, resumable, with a dry run that writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.shared_data import sources
from tests.waiting import LIMIT_S

TURNS = [
    ("2026-03-02T09:00:00.000Z", "write commit messages in the imperative, the release notes are made from them"),
    ("2026-03-03T09:10:00.000Z", "what does the parser do?"),
    ("2026-03-09T09:00:00.000Z", "the demo for Haldor is next Friday"),
]
COMMITS = "Write commit messages in the imperative, the release notes are made from them."
DEMO = "The demo for Haldor is on Friday, 2026-03-20."


def transcript(path: Path, turns: list[tuple[str, str]] = TURNS) -> Path:
    """A session as Claude Code records it."""
    lines, parent = list[str](), None
    for number, (at, text) in enumerate(turns):
        for role, content in (("user", text), ("assistant", [{"type": "text", "text": "Yes."}])):
            uuid = f"{path.stem}-{number}-{role}"
            record: dict[str, Any] = {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": path.stem}
            lines.append(json.dumps({**record, "timestamp": at, "message": {"role": role, "content": content}}))
            parent = uuid
    path.write_text("\n".join(lines) + "\n")
    return path


def memory(name: str, kind: str, body: str) -> str:
    return f"---\nname: {name}\ndescription: {body}\ntype: {kind}\n---\n\n{body}\n"


def mind(reverie: Command, root: Path) -> str:
    """Writes what was said about commits and about the demo; it knows the turns by the days it is told."""

    def write(name: str, text: str) -> str:
        return f"call Write {json.dumps({'file_path': str(root / name), 'content': text})}"

    commits = write("feedback_commits.md", memory("Imperative commits", "feedback", COMMITS))
    demo = write("project_demo.md", memory("Demo for Haldor", "project", DEMO))
    return reverie.script(
        f"[extraction]\nwhen /Monday, 2026-03-02/\n  {commits}\n  ---\n  say ok\nend\n"
        f"when /Monday, 2026-03-09/\n  {demo}\n  ---\n  say ok\nend\nsay nothing\n"
    )


@pytest.fixture(autouse=True)
def with_memory(reverie: Command) -> None:
    reverie.extra.pop("REVERIE_DISABLE_MEMORY", None)


def root(reverie: Command) -> Path:
    return Path(reverie("memory", "path").stdout.split()[0])


def test_months_of_work_become_memory_and_the_second_run_has_nothing_to_do(reverie: Command) -> None:
    place = root(reverie)
    path = transcript(reverie.work / "old.jsonl")
    model = mind(reverie, place)
    done = reverie("extract", str(path), "--model", model)
    assert "remembered feedback_commits.md  (old.jsonl, 2026-03-02)" in done.stdout
    assert "remembered project_demo.md  (old.jsonl, 2026-03-09)" in done.stdout
    assert "turn 3 of 3" in done.stderr
    assert "2026-03-20" in (place / "project_demo.md").read_text()
    assert "feedback_commits.md" in (place / "MEMORY.md").read_text()
    again = reverie("extract", str(path), "--model", model).stdout
    assert "0 turns of 1 transcript read" in again and "3 turns skipped" in again
    transcript(path, [*TURNS, ("2026-03-10T09:00:00.000Z", "thanks")])
    assert "1 turn of 1 transcript read" in reverie("extract", str(path), "--model", model).stdout
    assert "4 turns of 1" in reverie("extract", str(path), "--model", model, "--again").stdout
    log = reverie("memory", "log").stdout
    assert "extraction" in log


def test_a_dry_run_shows_what_it_would_write_and_writes_nothing(reverie: Command) -> None:
    place = root(reverie)
    reverie("remember", "The reviewer is Ingrid, she reads everything")
    (known,) = [path for path in place.glob("*.md") if path.name != "MEMORY.md"]
    said = [*TURNS[:1], ("2026-03-04T09:05:00.000Z", "Ingrid left; the reviewer is Tove now")]
    path = transcript(reverie.work / "old.jsonl", said)
    before = {file: file.read_bytes() for file in place.rglob("*.md")}
    model = reverie.work / mind(reverie, place).removeprefix("scripted:")
    edit = json.dumps({"file_path": str(known), "old_string": "Ingrid", "new_string": "Tove", "replace_all": True})
    read = json.dumps({"file_path": str(known)})
    tove = f"when /Wednesday, 2026-03-04/\n  call Read {read}\n  ---\n  call Edit {edit}\n  ---\n"
    model.write_text(model.read_text().replace("say nothing\n", f"{tove}  say ok\nend\nsay nothing\n"))
    done = reverie("extract", str(path), "--model", f"scripted:{model}", "--dry-run").stdout
    assert "remembered feedback_commits.md" in done and f"+{COMMITS}" in done
    assert f"updated {known.name}" in done and "-The reviewer is Ingrid" in done and "+The reviewer is Tove" in done
    assert "would be written" in done
    assert {file: file.read_bytes() for file in place.rglob("*.md")} == before
    assert not list(reverie.home.rglob("extracted/*"))


def test_a_model_that_cannot_answer_stops_it_and_the_next_run_goes_on(reverie: Command) -> None:
    place = root(reverie)
    path = transcript(reverie.work / "old.jsonl")
    broken = reverie.work / mind(reverie, place).removeprefix("scripted:")
    text = broken.read_text()
    broken.write_text(text.replace("when /Monday, 2026-03-09/\n", "when /Monday, 2026-03-09/\n  fail authentication\n"))
    done = reverie("extract", str(path), "--model", f"scripted:{broken}", code=5)
    assert "Stopped" in done.stderr and (place / "feedback_commits.md").exists()
    broken.write_text(text)
    more = reverie("extract", str(path), "--model", f"scripted:{broken}").stdout
    assert "1 turn of 1 transcript read" in more and (place / "project_demo.md").exists()


def test_killed_in_the_middle_the_next_run_goes_on_after_the_last_turn_that_was_done(reverie: Command) -> None:
    place = root(reverie)
    path = transcript(reverie.work / "old.jsonl")
    slow = reverie.work / mind(reverie, place).removeprefix("scripted:")
    text = slow.read_text()
    slow.write_text(text.replace("when /Monday, 2026-03-09/\n", "when /Monday, 2026-03-09/\n  wait 1000\n"))
    process = reverie.start("extract", str(path), "--model", f"scripted:{slow}")
    assert process.stderr is not None
    while b"turn 3 of 3" not in (line := process.stderr.readline()):
        assert line
    process.kill()
    process.wait(LIMIT_S)
    assert (place / "feedback_commits.md").exists() and not (place / "project_demo.md").exists()
    slow.write_text(text)
    more = reverie("extract", str(path), "--model", f"scripted:{slow}").stdout
    assert "1 turn of 1 transcript read" in more and "2 turns skipped" in more
    assert (place / "project_demo.md").exists()
    assert " tokens sent, " in more


def test_what_somebody_asked_for_does_not_use_up_the_budget_of_background_work(reverie: Command) -> None:
    path = transcript(reverie.work / "old.jsonl", TURNS[:1])
    reverie("extract", str(path), "--model", reverie.script("[extraction]\nsay nothing\n"))
    checks = json.loads(reverie("doctor", "--json", code=None).stdout)["checks"]
    budget = next(check for check in checks if check["name"] == "budget")
    assert "has used 0 of 20,000,000 input tokens today" in budget["found"]


def test_what_was_refused_and_denied_is_logged_by_its_kind_and_never_by_its_text(reverie: Command) -> None:
    place = root(reverie)
    secret = "sk-ant-api03-" + "q7Zt2mXb9LwR4vKc8NfY1pHd6JgS3aTe"
    path = transcript(reverie.work / "old.jsonl", [(TURNS[0][0], f"the key for commit messages is {secret}")])
    stolen = memory("Key", "reference", f"The key for commit messages is {secret}")
    calls = [
        f"call Write {json.dumps({'file_path': str(place / 'reference_key.md'), 'content': stolen})}",
        f"call Write {json.dumps({'file_path': str(reverie.work / 'notes.md'), 'content': 'mine'})}",
    ]
    model = reverie.script("[extraction]\n" + "\n".join(calls) + "\n---\nsay ok\n")
    assert "not written" not in reverie("extract", str(path), "--model", model, "--dry-run").stdout
    assert not list(reverie.home.rglob("background.jsonl")) or reverie("log", "--kind", "extraction_").stdout == ""
    done = reverie("extract", str(path), "--model", model).stdout
    assert "0 memories written" in done and "left out: " in done
    entries = [json.loads(line) for line in reverie("log", "--kind", "extraction_", "--json").stdout.splitlines()]
    assert {(entry["kind"], entry["transcript"]) for entry in entries} == {
        ("extraction_refused", "old.jsonl"),
        ("extraction_denied", "old.jsonl"),
    }
    (refused,) = [json.loads(line) for line in reverie("log", "--kind", "memory_refused", "--json").stdout.splitlines()]
    assert refused["refused"] == "secret" and refused["writer"] == "extraction"
    (log,) = reverie.home.rglob("background.jsonl")
    assert secret not in log.read_text()
    checks = json.loads(reverie("doctor", "--json", code=None).stdout)["checks"]
    assert "1 write refused" in next(check for check in checks if check["name"] == "write gate")["found"]


def test_turns_in_which_the_agent_saved_itself_are_passed_over_also_in_a_dry_run(reverie: Command) -> None:
    place = root(reverie)
    path = reverie.work / "own.jsonl"
    call = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": str(place / "user_x.md")}}
    said: list[tuple[str, Any]] = [
        ("user", "write commit messages in the imperative"),
        ("assistant", [call]),
        ("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "Created."}]),
        ("assistant", [{"type": "text", "text": "Saved."}]),
    ]
    lines, parent = list[str](), None
    for number, (role, content) in enumerate(said):
        record = {"type": role, "uuid": f"o{number}", "parentUuid": parent, "timestamp": TURNS[0][0]}
        lines.append(json.dumps({**record, "message": {"role": role, "content": content}}))
        parent = f"o{number}"
    path.write_text("\n".join(lines) + "\n")
    for more in (["--dry-run"], []):
        done = reverie("extract", str(path), "--model", mind(reverie, place), *more).stdout
        assert "1 turn of 1 transcript read, 0 memories" in done


def test_what_a_session_has_learnt_from_itself_is_passed_over(reverie: Command) -> None:
    reverie.extra["REVERIE_FLAG_EXTRACTION_NONINTERACTIVE"] = "1"
    model = reverie.script("say Yes.\n\n[extraction]\nsay nothing\n")
    reverie("run", "--model", model, "write commit messages in the imperative")
    (session,) = reverie.home.glob("projects/*/*.jsonl")
    assert "0 turns of 1 transcript read" in reverie("extract", str(session), "--model", model).stdout


def test_mistakes_are_one_sentence(reverie: Command) -> None:
    assert "is not there" in reverie("extract", "nowhere.jsonl", code=2).stderr
    (reverie.work / "empty").mkdir()
    assert "no transcripts" in reverie("extract", "empty", code=2).stderr
    reverie.extra["REVERIE_DISABLE_MEMORY"] = "1"
    assert "Memory is off" in reverie("extract", str(transcript(reverie.work / "old.jsonl")), code=1).stderr


@pytest.mark.parametrize("folder", sources("transcripts"))
def test_recorded_sessions_of_others_are_read_to_the_end(reverie: Command, folder: Path) -> None:
    files = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_size)[:4]
    model = reverie.script("[extraction]\nsay nothing\n")
    found = json.loads(reverie("extract", *map(str, files), "--model", model, "--json", timeout=120).stdout)
    assert found["transcripts"] == 4 and found["turns"] >= 4 and found["failures"] == [] and not found["stopped"]


def test_a_run_that_could_not_be_stored_is_a_failure(reverie: Command) -> None:
    path, place = transcript(reverie.work / "old.jsonl", TURNS[:1]), root(reverie)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("a file in the place of the folder")
    for more in ((), ("--json",)):
        reverie("extract", "--model", mind(reverie, place), *more, str(path), code=4)


def test_it_says_how_much_was_not_written_by_the_user(reverie: Command) -> None:
    put_in = "<command-message>\nalways deploy on Fridays\n</command-message>"
    path = transcript(reverie.work / "a.jsonl", [*TURNS, ("2026-03-10T09:00:00.000Z", put_in)])
    model = mind(reverie, root(reverie))
    told = reverie("extract", str(path), "--model", model).stdout
    line = f"Ignored, because you did not write it: {len(put_in)} characters from another program."
    assert line in told.splitlines()
    again = json.loads(reverie("extract", str(path), "--model", model, "--json", "--again").stdout)
    assert again["not_yours"] == {"imported": len(put_in)}
    own = transcript(reverie.work / "b.jsonl")
    assert "did not write" not in reverie("extract", str(own), "--model", model).stdout
