"""`reverie simulate` as a process: starts, serves, ends on Ctrl-C, and says what is wrong in one sentence."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.cli.simulate import command
from reverie.errors import UserError
from tests.waiting import LIMIT_S

RUN = [sys.executable, "-c", "from reverie.cli.simulate import command; command()"]


def post(url: str, body: object) -> dict[str, object]:
    headers = {"x-api-key": "k", "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
        return json.load(answer)


def test_it_serves_a_script_books_to_a_file_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    script, ledger = tmp_path / "talk.script", tmp_path / "bill.jsonl"
    script.write_text("say from the script\n", encoding="utf-8")
    process = subprocess.Popen(
        [*RUN, "--script", str(script), "--ledger", str(ledger), "--window", "5000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        head = [process.stdout.readline() for _ in range(6)]
        found = re.search(r"ANTHROPIC_BASE_URL=(http://127\.0\.0\.1:\d+)", "".join(head))
        assert found is not None, head
        url = found[1]
        assert f"OPENAI_BASE_URL={url}/v1" in "".join(head)
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        answer = post(f"{url}/v1/messages", body)
        assert answer["content"] == [{"type": "text", "text": "from the script"}]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, errors
    assert "1 requests" in rest
    assert errors == ""
    assert [json.loads(line)["endpoint"] for line in ledger.read_text().splitlines()] == ["/v1/messages"]


def test_help_has_an_example() -> None:
    shown = CliRunner().invoke(command, ["--help"])
    assert shown.exit_code == 0
    assert "Examples:" in shown.output
    assert "ANTHROPIC_BASE_URL" in shown.output


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.script"
    broken.write_text("shout hello\n", encoding="utf-8")
    for arguments, said in (
        (["--script", str(tmp_path / "gone")], "gone cannot be read"),
        (["--script", str(broken)], "broken.script:1"),
        (["--ledger", str(tmp_path / "no" / "such" / "folder.jsonl")], "cannot be written"),
    ):
        failed = CliRunner().invoke(command, arguments)
        assert isinstance(failed.exception, UserError)
        assert said in str(failed.exception)


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    from reverie.runtime.loopback import listen

    taken = listen(0)
    try:
        with pytest.raises(UserError, match="Choose another one with --port"):
            CliRunner().invoke(command, ["--port", str(taken.getsockname()[1])], catch_exceptions=False)
    finally:
        taken.close()
