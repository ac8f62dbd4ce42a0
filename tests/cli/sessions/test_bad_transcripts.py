"""Transcripts that are deep, empty, torn or of an odd shape: one sentence names the file, and the others are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reverie.cli.app import commands
from reverie.errors import ReverieError
from reverie.paths import Places
from reverie.settings import load_settings
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.pi_sessions import read_pi_session

DEEP = "[" * 200_000
ASKED = {"type": "user", "uuid": "a", "parentUuid": None, "message": {"role": "user", "content": "hello"}}
SAID = {
    "type": "assistant",
    "uuid": "b",
    "parentUuid": "a",
    "message": {
        "role": "assistant",
        "id": "m",
        "content": [{"type": "text", "text": "hi"}],
        "usage": {"input_tokens": 9, "output_tokens": 1},
    },
}
BOUNDARY = {"type": "system", "subtype": "compact_boundary", "uuid": "c", "parentUuid": "b"}
GOOD = f"{json.dumps(ASKED)}\n{json.dumps(SAID)}\n"
BAD = {
    "empty": "",
    "deep": f"{DEEP}\n",
    "deep and closed": DEEP + "]" * len(DEEP) + "\n",
    "deep inside": '{"type":"user","message":' + '{"a":' * 50_000 + "1\n",
    "torn": json.dumps(ASKED)[:30],
    "no UTF-8": "\udcff\n",
    "a list": "[]\n",
    "lists for names": json.dumps({**ASKED, "uuid": [{}], "sessionId": {}, "type": ["user"]}) + "\n",
}
ODD = [
    {**ASKED, "uuid": {}},
    {**ASKED, "parentUuid": [1], "timestamp": 5},
    {**SAID, "message": {**SAID["message"], "id": [[]]}},
    {**BOUNDARY, "compactMetadata": "x"},
    {**BOUNDARY, "compactMetadata": {"preTokens": "many", "preservedSegment": 3}},
    {**BOUNDARY, "subtype": [1]},
    {**BOUNDARY, "reverie": {"trigger": 1, "tokens_before": [], "last_uuid": {}}},
    {**BOUNDARY, "subtype": "result_decisions", "reverie": {"replaced": {"t": 1}}},
    {**BOUNDARY, "subtype": "session_header", "reverie": {"model": 1, "system": "x", "tools": [1]}},
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home/.reverie"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(commands, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit | ReverieError), done.exc_info
    return done


def project(work: Path) -> Path:
    folder = Places.of(work, load_settings(work)).project
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_a_bad_file_does_not_keep_the_others_out(here: Path) -> None:
    names = list[str]()
    for number, text in enumerate(BAD.values()):
        path = here / f"{number}-bad.jsonl"
        path.write_text(text, errors="surrogateescape")
        names.append(str(path))
    (here / "zz-good.jsonl").write_text(GOOD)
    done = run("sessions", "import", *names, str(here / "zz-good.jsonl"))
    assert "2 messages" in done.stdout
    told = f"{done.stderr}{done.exception}"
    assert all(name in told for name in names[:-1]), told
    assert "hello" in run("sessions", "list").stdout


def test_every_command_that_reads_transcripts_takes_bad_ones(here: Path) -> None:
    folder = project(here)
    for number, text in enumerate(BAD.values()):
        (folder / f"bad{number}.jsonl").write_text(text, errors="surrogateescape")
    for number, odd in enumerate(ODD):
        (folder / f"odd{number}.jsonl").write_text(f"{GOOD}{json.dumps(odd)}\n")
    assert run("sessions", "list").stdout.count("hello") >= len(ODD)
    for number in range(len(ODD)):
        assert run("sessions", "show", f"odd{number}").stdout.strip()
        run("context", f"odd{number}")
    for number in range(len(BAD)):
        run("sessions", "show", str(folder / f"bad{number}.jsonl"))
        run("context", f"bad{number}")
    run("cost")


def test_a_deep_line_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f"{json.dumps(ASKED)}\n{DEEP}\n{json.dumps(SAID)}\n")
    loaded = read_records(path)
    assert [record.uuid for record in loaded.records] == ["a", "b"]
    assert [(bad.number, bad.reason) for bad in loaded.bad] == [(2, "nested deeper than 100 levels")]


def test_a_torn_session_of_pi_is_read_up_to_the_tear(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(
        '{"type":"session","id":"a","cwd":"/"}\n'
        '{"type":"message","message":{"role":"user","content":"hello"}}\n{"type":"mess'
    )
    assert [record.message is not None for record in read_pi_session(path).records] == [False, True]


@pytest.mark.parametrize("line", ["[]", '{"type":"message","message":{"role":"toolResult"}}', DEEP])
def test_what_pi_never_wrote_is_one_sentence(tmp_path: Path, line: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"type":"session","id":"a","cwd":"/"}}\n{line}\n')
    assert [one.number for one in read_pi_session(path).bad] == [2]
