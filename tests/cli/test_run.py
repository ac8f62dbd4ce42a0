"""`reverie run`: what goes where, how it ends, and what survives."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Command

LOOK_THEN_ANSWER = """
say Let me look.
call Grep {"pattern": "port", "output_mode": "content"}
---
say It is 8410.
"""


def test_the_answer_and_nothing_else_goes_to_standard_output(reverie: Command) -> None:
    (reverie.work / "settings.py").write_text("port = 8410\n")
    done = reverie("run", "--model", reverie.script(LOOK_THEN_ANSWER), "Which port?")
    assert done.stdout == "It is 8410.\n"
    assert "Let me look." in done.stderr
    assert '✓ Grep "port"' in done.stderr


def test_quiet_is_silent_beside_the_answer(reverie: Command) -> None:
    done = reverie("run", "-q", "--model", reverie.script(LOOK_THEN_ANSWER), "Which port?")
    assert (done.stdout, done.stderr) == ("It is 8410.\n", "")


def test_json_streams_every_event_in_order(reverie: Command) -> None:
    events = reverie.events("--model", reverie.script(LOOK_THEN_ANSWER), "Which port?")
    kinds = [event["type"] for event in events]
    assert kinds[0] == "session_opened"
    assert kinds[-1] == "turn_ended"
    assert kinds.index("tool_started") < kinds.index("tool_finished")
    assert "".join(event["text"] for event in events if event["type"] == "text") == "Let me look.It is 8410."
    assert (events[-1]["reason"], events[-1]["text"], events[-1]["exit_code"]) == ("answered", "It is 8410.", 0)
    assert events[-1]["usage"]["output_tokens"] > 0


def test_the_embedded_model_answers_without_a_key(reverie: Command) -> None:
    (reverie.work / "harbour.py").write_text("PIER = 7  # the ferry leaves here\n")
    assert "harbour.py:1: PIER = 7" in reverie("run", "Which pier does the ferry leave from?").stdout


def test_the_prompt_may_come_on_standard_input(reverie: Command) -> None:
    done = reverie("run", "--model", reverie.script("say You said: {text}"), "-", stdin="from the pipe\n")
    assert done.stdout.split() == ["You", "said:", "from", "the", "pipe"] and done.stderr == ""


def test_standard_input_is_material_for_the_argument(reverie: Command) -> None:
    done = reverie("run", "--model", reverie.script("say You said: {text}"), "Review this:", stdin="- a\n+ b")
    assert done.stdout == "You said: Review this:\n<piped-text>\n- a\n+ b\n</piped-text>\n"


@pytest.mark.parametrize("args", [(), ("",), ("-",), ("  ",)])
def test_nothing_to_say_is_a_mistake(reverie: Command, args: tuple[str, ...]) -> None:
    assert "There is no prompt" in reverie("run", *args, code=2).stderr
    assert reverie.transcripts() == []


@pytest.mark.parametrize(
    ("variables", "shown"),
    [
        ({"REVERIE_BLOCKING_LIMIT": "1000"}, "1,000"),
        ({"REVERIE_BLOCKING_LIMIT": "20000"}, "20,000"),
        ({"REVERIE_CONTEXT_WINDOW": "24000", "REVERIE_DISABLE_COMPACT": "1"}, "21,240"),
    ],
)
def test_a_first_message_that_is_over_the_limit_is_not_sent(
    reverie: Command, variables: dict[str, str], shown: str
) -> None:
    """Before a server has counted anything, the estimate counts."""
    model = reverie.script("say It is here.")
    text = "The harbour has many ships. " * 4_000
    reverie.extra.update(variables)
    done = reverie("run", "--model", model, "-", stdin=text, code=None)
    assert done.returncode != 0 and done.stdout == ""
    assert f"the limit is {shown}" in done.stderr and "send less" in done.stderr
    small = reverie("run", "--model", model, "-", stdin=text[:5_000], code=None)
    assert small.stdout == ("" if shown == "1,000" else "It is here.\n"), "1,000 is less than the tools have"


def test_input_that_is_not_utf8_is_replaced_and_said(reverie: Command) -> None:
    done = reverie("run", "--model", reverie.script("say You said: {text}"), stdin=b"caf\xe9 \xff\xfe ok")
    assert "not UTF-8" in done.stderr
    assert "\ncaf\ufffd \ufffd\ufffd ok\n</piped-text>" in done.stdout


def test_an_argument_that_is_not_utf8_is_replaced(reverie: Command) -> None:
    model = reverie.script("say You said: {text}")
    assert reverie("run", "--model", model, "caf\udce9").stdout == "You said: caf\ufffd\n"


def test_continue_goes_on_with_the_newest_session(reverie: Command) -> None:
    model = reverie.script("say First.\n---\nsay Second, after {round} rounds.\n")
    reverie("run", "--model", model, "one")
    assert reverie("run", "--continue", "two").stdout == "Second, after 2 rounds.\n"
    assert len(reverie.transcripts()) == 1


def test_resume_takes_the_beginning_of_an_id(reverie: Command) -> None:
    model = reverie.script("say First.\n---\nsay Second.\n")
    first = reverie.events("--model", model, "one")[0]["session_id"]
    reverie("run", "--model", model, "of another session")
    events = reverie.events("--resume", first[:8], "two")
    assert events[0]["session_id"] == first
    assert events[0]["resumed"]
    assert events[-1]["text"] == "Second."


def test_there_is_nothing_to_continue(reverie: Command) -> None:
    assert "no session here" in reverie("run", "--continue", "hi", code=2).stderr
    assert "starts with 'nope'" in reverie("run", "--resume", "nope", "hi", code=2).stderr


def test_what_needs_a_permission_is_refused_unless_allowed(reverie: Command) -> None:
    model = reverie.script('call Bash {"command": "touch made.txt"}\n---\nsay {result}\n')
    refused = reverie("run", "--model", model, "make it")
    assert "--allow 'Bash(touch made.txt)'" in refused.stdout
    assert not (reverie.work / "made.txt").exists()
    reverie("run", "--model", model, "--allow", "Bash(touch:*)", "make it")
    assert (reverie.work / "made.txt").exists()


def test_the_permission_mode_can_be_given(reverie: Command) -> None:
    model = reverie.script('call Write {"file_path": "made.txt", "content": "x"}\n---\nsay {result}\n')
    assert "read-only" in reverie("run", "--model", model, "--permission-mode", "read_only", "make it").stdout
    reverie("run", "--model", model, "--permission-mode", "accept_edits", "make it")
    assert (reverie.work / "made.txt").read_text() == "x"


def test_a_rule_that_cannot_be_read_is_a_mistake(reverie: Command) -> None:
    done = reverie("run", "--allow", "Bash(", "hi", code=2)
    assert "permission rule 'Bash('" in done.stderr


def test_bare_runs_no_hooks(reverie: Command) -> None:
    reverie.home.mkdir()
    (reverie.home / "settings.toml").write_text('[[hooks.SessionStart]]\ncommand = "touch hooked.txt"\n')
    reverie("run", "--bare", "hello")
    assert not (reverie.work / "hooked.txt").exists()
    reverie("run", "hello")
    assert (reverie.work / "hooked.txt").exists()


def test_an_endless_turn_is_stopped(reverie: Command) -> None:
    model = reverie.script('repeat forever\n  call Glob {"pattern": "*"}\nend\n')
    done = reverie("run", "--model", model, "--max-rounds", "3", "go", code=1)
    assert "Stopped after 3 rounds" in done.stderr


def test_half_an_answer_never_reaches_a_pipe(reverie: Command) -> None:
    reverie.home.mkdir()
    (reverie.home / "settings.toml").write_text("[model]\nretry_first_wait_s = 0.01\n")
    model = reverie.script("fail cut 30\nsay This answer is cut in its middle, and then comes again whole.\n")
    done = reverie("run", "--model", model, "go")
    assert done.stdout == "This answer is cut in its middle, and then comes again whole.\n"
    assert "starting the answer again" in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("--model", "antropic:claude"), 2, "There is no model 'antropic:claude'"),
        (("--model", "anthropic:claude-sonnet-5-5"), 5, "ANTHROPIC_API_KEY"),
        (("--model", "openai:gpt-5.5"), 5, "OPENAI_API_KEY"),
        (("--model", "scripted:nowhere.script"), 2, "nowhere.script"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_sentence(
    reverie: Command, args: tuple[str, ...], code: int, said: str
) -> None:
    done = reverie("run", *args, "hi", code=code)
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert done.stdout == ""


def test_a_server_that_is_not_there_is_one_sentence(reverie: Command) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    reverie.extra["OPENAI_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
    done = reverie("run", "-q", "--model", "openai:local", "hi", code=5)
    assert done.stderr.startswith(
        f"reverie: The server at http://127.0.0.1:{port}/v1 cannot be reached (Connection refused)."
    )
    assert done.stderr.count("\n") == 1


def test_a_model_that_fails_is_said_and_can_be_asked_again(reverie: Command) -> None:
    model = reverie.script("fail authentication\nsay never\n")
    events = reverie.events("--model", model, "hi", code=5)
    assert (events[-1]["reason"], events[-1]["exit_code"]) == ("failed", 5)
    (reverie.work / "play.script").write_text("say Now it works.")
    assert reverie("run", "--continue", "again").stdout == "Now it works.\n"


def _until(process: subprocess.Popen[bytes], kind: str) -> dict[str, object]:
    """Reads events until one of this kind."""
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == kind:
            return event
    raise AssertionError(f"no {kind} event")


def test_ctrl_c_cancels_and_the_conversation_goes_on(reverie: Command) -> None:
    model = reverie.script("slow 0.05\nfill 20000\n---\nsay And on it goes.\n")
    process = reverie.start("run", "--json", "--model", model, "a long one")
    _until(process, "text")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["reason"] == "cancelled"
    assert b"Traceback" not in err
    (reverie.work / "play.script").write_text("say And on it goes.")
    assert reverie("run", "--continue", "go on").stdout == "And on it goes.\n"


def test_ctrl_c_ends_a_running_command_with_its_children(reverie: Command) -> None:
    model = reverie.script('call Bash {"command": "sleep 300 & echo $! > pid; wait"}\n---\nsay never\n')
    process = reverie.start("run", "--json", "--permission-mode", "accept_all", "--model", model, "go")
    _until(process, "tool_started")
    pid = reverie.work / "pid"
    until = time.monotonic() + 10
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    stat = Path(f"/proc/{pid.read_text().strip()}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


def test_sigterm_closes_cleanly(reverie: Command) -> None:
    process = reverie.start("run", "--json", "--model", reverie.script("slow 0.05\nfill 20000\n"), "a long one")
    _until(process, "text")
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 143
    assert list(reverie.home.glob("projects/*/*/session.lock")) == []
    assert list(reverie.home.glob("run/*.sock")) == []


def test_a_session_that_is_open_elsewhere_names_the_process(reverie: Command) -> None:
    process = reverie.start("run", "--json", "--model", reverie.script("slow 0.05\nfill 20000\n"), "a long one")
    session = str(_until(process, "session_opened")["session_id"])
    _until(process, "text")
    done = reverie("run", "--resume", session, "me too", code=3)
    assert f"PID {process.pid}" in done.stderr
    assert done.stderr.count("\n") == 1
    deleted = reverie("sessions", "delete", session, "--yes", code=3)
    assert str(process.pid) in deleted.stderr
    listed = json.loads(reverie("sessions", "list", "--json").stdout)["sessions"]
    assert listed[0]["open_in"] == process.pid


def test_bad_lines_of_a_transcript_are_named_and_kept(reverie: Command) -> None:
    model = reverie.script("say First.\n---\nsay Second.\n")
    reverie("run", "--model", model, "one")
    path = reverie.transcripts()[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{broken\n", b"\xff\xfe not text\n", *lines[1:]]) + b'{"torn": ')
    done = reverie("run", "--continue", "two")
    assert done.stdout == "Second.\n"
    assert "2 (" in done.stderr
    assert "3 (not UTF-8" in done.stderr
    assert path.read_bytes().splitlines(keepends=True)[1:3] == [b"{broken\n", b"\xff\xfe not text\n"]


def test_a_home_that_cannot_be_written_is_said_and_the_answer_comes(reverie: Command) -> None:
    reverie.home.mkdir()
    (reverie.home / "projects").write_text("a file where the sessions should be")
    done = reverie("run", "--model", reverie.script("say Still here."), "hi")
    assert done.stdout == "Still here.\n"
    assert "lost when it ends" in done.stderr
    assert done.stderr.count("lost when it ends") == 1, "said once is enough"


def test_a_reader_that_leaves_ends_the_turn_quietly(reverie: Command) -> None:
    process = reverie.start("run", "--json", "--model", reverie.script("slow 0.01\nfill 20000\n"), "a long one")
    _until(process, "text")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(20) == 141


def test_half_characters_of_a_model_are_printed_escaped(reverie: Command) -> None:
    model = reverie.script('call Bash {"command": "printf \'\\\\xed\\\\xa0\\\\x80\'"}\n---\nsay {result} done\n')
    assert "done" in reverie("run", "--model", model, "go").stdout
    assert reverie.events("--model", model, "go")[-1]["reason"] == "answered"
