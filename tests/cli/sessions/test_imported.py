"""An imported session is a session: every command takes one, and tells no more of it than its records hold.

In process where a process proves no more: a command is a function of its arguments, the folder and the home.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.cli.app import commands
from reverie.context.ledger import Ledger
from reverie.errors import ReverieError
from reverie.events import ToolFinished
from reverie.models.catalogue import Catalogue
from reverie.origins import strip_tags
from reverie.session import Session
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.foreign import is_injected
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.sessions import list_sessions
from reverie.storage.transcript.view import View
from reverie.types import Origin, TextBlock
from tests.sessions import ended, in_session, of_kind, script, turn
from tests.shared_data import sources

SAMPLE = Path(__file__).parents[2] / "data" / "imported" / "claude-code.jsonl"
ID = "5a1e0000-0000-4000-8000-000000000001"
LAMP = "burn from 19:00\nburn until 06:00\nkeeper: Ana\n"
PI = [
    {"type": "session", "id": "b0a7-1", "cwd": "/p", "timestamp": "2026-01-05T09:00:00.000Z"},
    {"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": "My boat is the Halcyon."}]}},
    {"type": "message", "message": {"role": "branchSummary", "summary": "Never sail the Halcyon at night."}},
    {"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]}},
]
Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder and a home of its own, without any key; gives what it printed, both ways."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "lamp.txt").write_text(LAMP)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(work)

    def command(*args: str, code: int = 0) -> str:
        done = CliRunner().invoke(commands, args)
        failed = done.exception if isinstance(done.exception, ReverieError) else None
        if failed is None and done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        ended_with = failed.exit_code if failed is not None else done.exit_code
        assert ended_with == code, f"{args}: {ended_with}, {done.output} {failed}"
        return f"{done.output}{failed or ''}"

    return command


def transcript(tmp_path: Path, name: str = ID) -> Path:
    return next(tmp_path.glob(f"home/projects/*/{name}.jsonl"))


def without_header(tmp_path: Path) -> None:
    """A session of ours as an older version may have left it: no header, a call that a kill left open."""
    path = transcript(tmp_path)
    lines = path.read_text().splitlines()[:8]
    path.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:40])


def as_it_is(tmp_path: Path) -> None:
    del tmp_path


def ends_at_a_boundary(tmp_path: Path) -> None:
    path = transcript(tmp_path)
    last = json.loads(path.read_text().splitlines()[-1])
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b-1", "parentUuid": None}
    boundary |= {"logicalParentUuid": last["uuid"], "timestamp": "2026-01-05T10:00:00.000Z"}
    path.write_text(path.read_text() + json.dumps(boundary) + "\n")


@pytest.mark.parametrize("state", [as_it_is, without_header, ends_at_a_boundary])
def test_every_command_takes_an_imported_session(run: Run, tmp_path: Path, state: Callable[[Path], None]) -> None:
    run("sessions", "import", str(SAMPLE))
    state(tmp_path)
    empty = state is ends_at_a_boundary  # nothing is in view: said in one sentence
    before = transcript(tmp_path).read_bytes()
    shown = run("compact", "--preview", code=2 if empty else 1 if state is without_header else 0)
    assert "nothing" in shown if empty else "tokens" in shown
    if state is as_it_is:
        assert transcript(tmp_path).read_bytes() == before, "looking leaves the file as it was"
    run("notes", "--update", code=2 if empty else 0)
    run("btw", "Where is the lamp set?")
    assert "Pinned as 1." in run("pin", "Mind the fog horn")
    run("context")
    run("cost")
    run("sessions", "show", "last")
    run("rewind")
    run("rewind", "-1")
    assert "where it was" in run("compact", "undo")
    run("compact", "undo", code=0 if empty else 2)  # a compaction of the other agent's can be taken back
    run("run", "-c", "-q", "Thanks")
    headers = [r for r in read_records(transcript(tmp_path)).records if r.subtype == SessionHeader.subtype]
    assert headers, "what was done with it is on record"


@pytest.mark.parametrize("root", sources(""))
def test_a_pi_session_and_recorded_ones_are_compacted_and_taken_notes_of(run: Run, tmp_path: Path, root: Path) -> None:
    (tmp_path / "pi.jsonl").write_text("\n".join(map(json.dumps, PI)))
    run("sessions", "import", str(tmp_path / "pi.jsonl"))
    run("compact", "--preview", code=1)  # so short that a summary is larger: said, not a crash
    run("notes", "--update")
    said = View.of(conversation(read_records(transcript(tmp_path, "b0a7-1")).records)).history
    origins = [(strip_tags(b.text), b.origin) for entry in said for b in entry.message.content]  # type: ignore[union-attr]
    assert ("Never sail the Halcyon at night.", Origin.IMPORTED) in origins
    for file in (sorted((root / "transcripts").glob("*.jsonl"))[0], root / "pi-sessions" / "before-compaction.jsonl"):
        run("sessions", "import", str(file))
        assert "tokens" in run("compact", "--preview")


@pytest.mark.parametrize("noted", [True, False], ids=["after-notes", "at-once"])
def test_compact_undo_and_context_give_one_size_and_one_model(run: Run, tmp_path: Path, noted: bool) -> None:
    said = list[dict[str, object]]()
    for n in range(30):
        text = f"Lamp {n} burns from {n}:00 and its keeper writes it down in book {n}. " * 12
        usage = {"input": 30_000 + 600 * n, "output": 200}
        blocks = [{"type": "text", "text": text}]
        said.append({"type": "message", "message": {"role": "user", "content": blocks}})
        answer = {"role": "assistant", "content": blocks, "model": "claude-opus-4-6", "usage": usage}
        said.append({"type": "message", "message": {**answer, "stopReason": "stop"}})
    (tmp_path / "pi.jsonl").write_text("\n".join(map(json.dumps, [PI[0], *said])))
    run("sessions", "import", str(tmp_path / "pi.jsonl"))
    if noted:
        run("notes", "--update")
        before = json.loads(run("context", "--json"))
    done = json.loads(run("compact", "--json"))
    undone = json.loads(run("compact", "undo", "--json"))
    after = json.loads(run("context", "--json"))
    assert undone["tokens"] == done["tokens_before"] == after["used"] > done["tokens_after"]
    assert not noted or [before[key] for key in ("used", "model", "window")] == [
        after[key] for key in ("used", "model", "window")
    ]


def test_context_shows_the_unknown_prompt_though_results_were_left_out_unrecorded(run: Run, tmp_path: Path) -> None:
    said = list[dict[str, object]]()
    for reported in (20_000, 21_000, 22_000):  # far less than what was said in between
        blocks = [{"type": "text", "text": f"What was read at {reported}: the lamp and its keeper. " * 1_000}]
        answer = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}], "model": "claude-opus-4-6"}
        given = [{"type": "text", "text": "Hello."}] if not said else blocks
        said.append({"type": "message", "message": {"role": "user", "content": given}})
        said.append({"type": "message", "message": {**answer, "usage": {"input": reported, "output": 5}}})
    (tmp_path / "pi.jsonl").write_text("\n".join(map(json.dumps, [PI[0], *said])))
    run("sessions", "import", str(tmp_path / "pi.jsonl"))
    found = json.loads(run("context", "--json"))
    shares = {share["source"]: share["tokens"] for share in found["sources"]}
    assert shares["not_recorded"] == pytest.approx(20_000, abs=300)
    assert sum(shares.values()) == found["used"] and found["over"] > 5_000
    assert "do not add up" in run("context")


def test_commands_that_ask_no_model_need_no_key_and_keep_the_sessions_model(run: Run, tmp_path: Path) -> None:
    run("sessions", "import", str(SAMPLE))
    (tmp_path / "home" / "settings.toml").write_text('[model]\nname = "anthropic:claude-sonnet-5-5"\n')
    assert "no compaction to take back" in run("compact", "undo", code=2)
    run("compact", "--preview")
    run("pin", "Mind the fog horn")
    run("notes", "--update")
    run("rewind", "-1")
    run("compact", "undo")
    header = View.of(conversation(read_records(transcript(tmp_path)).records)).header
    assert header is not None and header.model == "anthropic:claude-sonnet-5-5" and header.ttl_reason
    assert "has no cache markers" not in header.ttl_reason
    assert "ANTHROPIC_API_KEY" in run("btw", "Where?", code=5), "what asks a model says what is missing"


def test_what_the_other_agent_put_in_is_not_the_persons(run: Run, tmp_path: Path) -> None:
    run("sessions", "import", str(SAMPLE))
    history = View.of(conversation(read_records(transcript(tmp_path)).records)).history
    blocks = [block for entry in history for block in entry.message.content if isinstance(block, TextBlock)]
    typed = [block.text.strip() for block in blocks if block.origin.is_users]
    assert typed == [
        "The lamp in lamp.txt burns too early. Where is that set?",
        "Then let it burn from 19:00, the fog horn stays as it is.",
    ]
    assert "lamp in lamp.txt burns too early" in run("sessions", "list")
    for question in ("What did I say about the anchor chain?", "Which quay did we say is closed?"):
        answer = run("btw", question)
        assert "green" not in answer and "red" not in answer and "skill" not in answer and "west quay is" not in answer


@pytest.mark.parametrize(
    ("text", "put_in"),
    [
        ("<bash-input>ls</bash-input>", True),
        ("<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>", True),
        ("<task-notification>\n<task-id>x</task-id>\n</task-notification>", True),
        ("<system-reminder>\nthe end was cut", True),
        ("[Request interrupted by user for tool use]", True),
        ("This session is being continued from a previous conversation that ran out of context.", True),
        ("The <my-app> tag is broken, please look", False),
        ("Change <my-tag>a</my-tag> to b", False),
        ("<div>why is this red?</div>", False),
        ("", False),
    ],
)
def test_what_was_put_in_is_told_by_its_form(text: str, put_in: bool) -> None:
    assert is_injected(text) is put_in


def test_a_dream_over_imported_sessions_keeps_nothing_of_one_task(run: Run, tmp_path: Path) -> None:
    said = [
        "Can you check it again? Basically the build ends, but no upload was started.",
        "What does the footer use? should be darker, don't change the theme, look at the footer's source",
        "also remember the docs/harbour.md file btw",
        "Implement the following plan:\n\n# Plan\n\nNever use the old winch. Always call the harbour first.",
    ]
    lines = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
    for number in range(6):
        records = [{**line, "sessionId": f"dream-{number}"} for line in lines]
        extra = {} if number != 3 else {"planContent": "x"}
        message = {"role": "user", "content": said[number % 4]}
        records.append({**records[-1], "uuid": f"u{number}", "message": message, **extra})
        (tmp_path / f"{number}.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
        run("sessions", "import", str(tmp_path / f"{number}.jsonl"))
    run("dream", "--now")
    assert [path.name for path in tmp_path.glob("home/projects/*/memory/*_*.md")] == []


def test_ages_are_the_sessions_own(run: Run, tmp_path: Path) -> None:
    run("sessions", "import", str(SAMPLE))
    line = run("sessions", "list")
    assert line.lstrip().split()[1] in ("mo", "y", "d"), line
    assert json.loads(run("sessions", "list", "--json"))["sessions"][0]["said"].startswith("2026-01-05T09:32")
    (info,) = list_sessions(transcript(tmp_path).parent)
    assert info.modified > time.time() - 60, "it is not expired for its age"


def test_breaks_of_an_unwatched_session_are_found_and_never_denied(run: Run, tmp_path: Path) -> None:
    run("sessions", "import", str(SAMPLE))
    said = run("cost")
    assert "No cache breaks." not in said and "1 unannounced cache break (expired 1): 21.9k tokens" in said
    blind = SAMPLE.read_text().replace('"cache_read_input_tokens": ', '"cache_read": ')
    blind = blind.replace('"cache_creation_input_tokens": ', '"cache_written": ').replace(ID, "blind")
    (tmp_path / "blind.jsonl").write_text(blind)
    said = run("cost", str(tmp_path / "blind.jsonl"))
    assert "No cache breaks." not in said and "unknown" in said


def test_one_measure_before_and_after_a_compaction(run: Run, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
    lines[5]["message"]["content"][0]["content"] = "     1→the lamp burns all night long\n" * 3_000
    (tmp_path / "long.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("sessions", "import", str(tmp_path / "long.jsonl"))
    run("pin", "Mind the fog horn")
    before = json.loads(run("context", "--json"))["used"]
    done = json.loads(run("compact", "--json"))
    assert done["tokens_before"] == before
    assert done["tokens_after"] == json.loads(run("context", "--json"))["used"] < before
    undone = json.loads(run("compact", "undo", "--json"))
    assert undone["tokens"] == before == json.loads(run("context", "--json"))["used"]


def test_what_would_be_no_smaller_is_not_compacted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pi.jsonl").write_text("\n".join(map(json.dumps, PI)))
    run("sessions", "import", str(tmp_path / "pi.jsonl"))
    assert "was not compacted" in run("compact", code=1)
    model = script(tmp_path, "say Fine.\n\n[compaction]\nsay <summary>A boat.</summary>\n")
    run("run", "-q", "-m", model, "My boat is the Halcyon, and it has two masts and a red sail.")
    assert "not be smaller" in run("compact", code=1), "the summary is short, what stands beside it is not"
    assert "no compaction to take back" in run("compact", "undo", code=2)


def test_runs_of_different_processes_are_told_apart(run: Run, tmp_path: Path) -> None:
    model = script(tmp_path, "repeat forever\n  say Fine.\nend\n")
    run("run", "-q", "-m", model, "one")
    run("run", "-q", "-c", "two")
    parts = json.loads(run("cost", "last", "--by", "run", "--json"))["parts"]
    assert [(name.split(" ", 1)[1], sums["requests"]) for name, sums in parts.items()] == [
        ("#1 main", 1),
        ("#2 main", 1),
    ]


@pytest.mark.parametrize("changed", [False, True])
def test_a_file_in_view_is_known_after_a_resume(run: Run, tmp_path: Path, changed: bool) -> None:
    play = 'call Edit {"file_path": "lamp.txt", "old_string": "until 06:00", "new_string": "until 07:00"}'
    run("sessions", "import", str(SAMPLE))
    lamp = tmp_path / "work" / "lamp.txt"
    if changed:
        stamp = lamp.stat()
        lamp.write_text(LAMP.replace("Ana", "Ben"))
        os.utime(lamp, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    model = script(tmp_path, f"repeat forever\n  {play}\n  ---\n  say Ok.\nend\n")

    async def work(session: Session) -> None:
        events = await turn(session, "one hour more")
        assert ended(events).reason == "answered"
        (done,) = of_kind(events, ToolFinished)
        assert done.is_error is changed and ("has changed" in done.text) is changed, done.text

    in_session(work, cwd=lamp.parent, model=model, resume="last", overrides={"permissions.mode": "accept_all"})
    assert ("until 07:00" in lamp.read_text()) is not changed


def test_our_own_reads_are_known_after_a_resume_as_long_as_they_are_in_view(run: Run, tmp_path: Path) -> None:
    del run
    work = tmp_path / "work"
    read = script(tmp_path, 'call Read {"file_path": "lamp.txt", "limit": 1}\n---\nsay Read.\n', "read.script")
    edit = 'call Edit {"file_path": "lamp.txt", "old_string": "Ana", "new_string": "Ben"}'
    write = script(tmp_path, f"repeat forever\n  {edit}\n  ---\n  say Ok.\nend\n", "edit.script")
    options = {"cwd": work, "overrides": {"permissions.mode": "accept_all"}}
    in_session(lambda session: turn(session, "look"), model=read, **options)
    in_session(lambda session: turn(session, "change"), model=write, resume="last", **options)
    assert "Ben" in (work / "lamp.txt").read_text(), "unchanged and in view: no second Read is asked for"
    (work / "lamp.txt").write_text(LAMP)
    in_session(lambda session: session.clear(), model=write, resume="last", **options)
    in_session(lambda session: turn(session, "change"), model=write, resume="last", **options)
    assert "Ben" not in (work / "lamp.txt").read_text(), "out of view is out of mind"


@pytest.mark.parametrize(("folder", "least"), sources("transcripts", own=3, shared=32))
def test_the_recorded_sessions_that_had_breaks_show_them(folder: Path, least: int) -> None:
    files = sorted(folder.glob("*.jsonl"))
    assert len(Ledger.of_transcripts(files, Catalogue.load()).breaks) > least


def test_the_list_is_ordered_by_the_time_it_shows(run: Run, tmp_path: Path) -> None:
    for name, day in (("new", "2026-03-01"), ("old", "2026-01-05")):  # the old one is imported last
        stamped = [{**entry, "timestamp": f"{day}T09:00:00.000Z"} for entry in PI]
        stamped[0]["id"] = name
        (tmp_path / "pi.jsonl").write_text("\n".join(map(json.dumps, stamped)))
        run("sessions", "import", str(tmp_path / "pi.jsonl"))
        time.sleep(0.02)
    assert [one["id"] for one in json.loads(run("sessions", "list", "--json"))["sessions"]] == ["new", "old"]
    assert [one["id"] for one in json.loads(run("sessions", "list", "-a", "--json"))["sessions"]] == ["new", "old"]
    assert run("sessions", "path", "last").strip().endswith("old.jsonl")
