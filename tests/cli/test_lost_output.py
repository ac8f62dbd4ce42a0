"""Output that nobody reads or that cannot be written: the command does its work first, and says what is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Command
from tests.waiting import LIMIT_S


def _into(reverie: Command, sink: str, *args: str, **extra: str) -> tuple[int, str]:
    """Runs a command with its output going to a full device, or to a pipe whose reader has gone."""
    process = subprocess.Popen(
        [sys.executable, "-m", "reverie", *args],
        cwd=reverie.work,
        env={**reverie.env, **extra},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if sink == "gone" else os.open("/dev/full", os.O_WRONLY),
        stderr=subprocess.PIPE,
        text=True,
    )
    if process.stdout is not None:
        process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    return process.wait(LIMIT_S), said


def test_a_deletion_goes_on_when_its_reader_has_gone(reverie: Command) -> None:
    reverie("run", "-q", "-m", reverie.script("say Hello."), "hi")
    assert len(reverie.transcripts()) == 1
    assert _into(reverie, "gone", "sessions", "delete", "last", "--yes") == (141, "")
    assert reverie.transcripts() == []


def test_a_report_that_cannot_be_written_is_no_reason_to_try_again(reverie: Command) -> None:
    code, said = _into(reverie, "full", "run", "-q", "-m", reverie.script("say Hello."), "hi")
    assert code == 4
    assert "has done its work" in said
    assert "try again" not in said
    assert len(reverie.transcripts()) == 1


@pytest.mark.parametrize(("sink", "code"), [("full", 4), ("gone", 141)])
def test_the_version_is_never_a_traceback(sink: str, code: int, reverie: Command) -> None:
    ended, said = _into(reverie, sink, "--version", PYTHONUNBUFFERED="1")
    assert ended == code
    assert "Traceback" not in said
    assert len(said.splitlines()) == (1 if sink == "full" else 0)
