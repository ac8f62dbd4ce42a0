"""Teams as real processes: work to a clean end, a teammate that dies, refusals, permissions, plans and signals."""

from __future__ import annotations

import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from reverie.agents.team.members import Team
from reverie.paths import Places
from reverie.settings import load_settings
from tests import warm
from tests.agents.teams import REPORTER, Event, members, team
from tests.cli.terminal import draw
from tests.counts import count

pytestmark = pytest.mark.timeout(180)

HEAD = 'team = "t"\ntask = "Find out what is in the notes."\n[lead]\nmodel = "scripted:lead.script"\n'
HANDS_OUT = """
say Everybody gets a part.
call SendMessage {"to": "ann", "message": "Take a.", "summary": "part a"}
call SendMessage {"to": "ben", "message": "Take b.", "summary": "part b"}
call SendMessage {"to": "cat", "message": "Take c.", "summary": "part c"}
---
say Now I wait.

when /part is done/
  say Somebody is done.
end
"""


def settings(**numbers: object) -> None:
    home = Path(os.environ["REVERIE_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{key} = {value}\n" for key, value in numbers.items())
    (home / "settings.toml").write_text(f"[messages]\npoll_ms = 50\n{lines}")


def is_call(member: str, tool: str) -> object:
    return lambda event: event.get("member") == member and event["type"] == "tool_started" and event["name"] == tool


def ended(event: Event) -> bool:
    return event["type"] == "turn_ended"


def test_four_work_on_one_task_and_end_in_order(tmp_path: Path) -> None:
    settings()
    (tmp_path / "notes.txt").write_text("one\n")
    with team(
        tmp_path, HEAD + members("ann", "ben", "cat"), lead=HANDS_OUT, ann=REPORTER, ben=REPORTER, cat=REPORTER
    ) as run:
        assert run.finish() == 0
    assert run.ends() == {"ann": "ended", "ben": "ended", "cat": "ended", "lead": "ended"}
    assert not [event for event in run.events if event.get("what") == "notice"], "nobody had to be ended"
    assert run.alive() == []
    heard = "\n".join(_transcript(run.of("lead", "session_opened")[0]))
    assert heard.count("My part is done: notes.txt") == 3
    for name in ("ann", "ben", "cat"):
        assert run.answers(name)[-1] == "Good bye.", "its model was asked"
    places = Places.of(tmp_path, load_settings(tmp_path))
    assert all(Team(places, "t").presence(name) is None for name in ("lead", "ann", "ben", "cat"))


def test_a_teammate_killed_half_way_is_told_and_work_goes_on(tmp_path: Path) -> None:
    settings()
    lead = """
call SendMessage {"to": "ann", "message": "Take a.", "summary": "part a"}
call SendMessage {"to": "ben", "message": "Take b.", "summary": "part b"}
call SendMessage {"to": "cat", "message": "Take c.", "summary": "part c"}
---
say Now I wait.

when /ben has failed: its process was ended by SIGKILL/
  call SendMessage {"to": "ben", "message": "Are you there?", "summary": "still there"}
  ---
  call SendMessage {"to": "ann", "message": "Take b as well.", "summary": "part b"}
  ---
  say ann has it now.
end
when /part is done/
  say Somebody is done.
end
"""
    stuck = 'when /from="lead"/\n  call Bash {"command": "sleep 61.25"}\n  ---\n  say Slept.\nend\n'
    ben = 'model = "scripted:ben.script"\npermission_mode = "accept_all"'
    with team(
        tmp_path, HEAD + members("ann", "ben", "cat", ben=ben), lead=lead, ann=REPORTER, ben=stuck, cat=REPORTER
    ) as run:
        run.until(is_call("ben", "Bash"))
        os.kill(run.pids["ben"], signal.SIGKILL)
        assert run.finish() == 0
    assert run.ends() == {"ben": "failed", "ann": "ended", "cat": "ended", "lead": "ended"}
    answers = [event["text"] for event in run.of("lead", "tool_finished") if event["is_error"]]
    assert answers == ["ben has ended; you can write to: ann, cat."]
    asked = [line for line in _transcript(run.of("ann", "session_opened")[0]) if "Take b as well." in line]
    assert len(asked) == 1, "its work went to somebody else, once"
    assert run.alive() == []
    assert not _runs("sleep", "61.25"), "what the killed one was running ended too"


REFUSES = """
when /asks you to end/
  call SendMessage {"to":"lead","message":{"type":"shutdown_response","approve":false,"reason":"one more thing"}}
  ---
  say I stay.
end
"""


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_nothing_hangs_whoever_is_killed_and_whenever(tmp_path: Path) -> None:
    settings(kill_s=5)
    dice = random.Random(7)
    for number in range(count(1, 30)):
        folder = tmp_path / str(number)
        folder.mkdir()
        victim, after_s = dice.choice(("ann", "ben", "cat", "cat", "lead")), dice.uniform(0, 4)
        file = HEAD + members("ann", "ben", "cat")
        with team(folder, file, lead=HANDS_OUT, ann=REPORTER, ben=REPORTER, cat=REPORTER) as run:
            run.until(lambda event: event.get("what") == "started" and event["member"] == "cat")
            killer = threading.Timer(after_s, _kill, [run.pids[victim]])
            killer.start()
            code = run.finish()
            killer.cancel()
        assert set(run.ends()) == {"lead", "ann", "ben", "cat"}, (victim, after_s)
        assert run.alive() == [], (victim, after_s)
        assert code == (1 if run.ends()["lead"] == "failed" else 0), (victim, after_s)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_refusal_is_told_and_respected_until_it_agrees(tmp_path: Path) -> None:
    settings(ask_again_s=0.3)
    lead = "say Nothing to hand out.\n\nwhen /does not end yet: one more thing/\n  say Take your time.\nend\n"
    once = "\n".join(line.strip() for line in REFUSES.splitlines() if not line.startswith(("when", "end")))
    with team(tmp_path, HEAD + members("ann"), lead=lead, ann=f"{once}\n---\nsay Good bye.\n") as run:
        assert run.finish() == 0
    assert run.ends() == {"ann": "ended", "lead": "ended"}
    assert run.answers("lead") == ["Nothing to hand out.", "Take your time."]
    assert run.answers("ann") == ["I stay.", "Good bye."]


def test_an_unwilling_teammate_is_ended_after_its_last_refusal(tmp_path: Path) -> None:
    settings(ask_again_s=0.1, refusals=2, kill_s=20)
    with team(tmp_path, HEAD + members("ann"), lead="say Done.\n", ann=REFUSES) as run:
        assert run.finish() == 0
    assert run.answers("ann") == ["I stay."] * 3
    assert "not gone in time: ann" in [event["text"] for event in run.of("lead", "notice")]
    assert run.alive() == []


def test_the_leads_rules_decide_what_a_teammate_may_do(tmp_path: Path) -> None:
    settings()
    lead = 'call SendMessage {"to": "ann", "message": "Write it down.", "summary": "write"}\n---\nsay I wait.\n'
    writes = f"""
when /asks you to end/
  say Good bye.
end
when /from="lead"/
  call Write {{"file_path": "{tmp_path}/yes.txt", "content": "one"}}
  call Write {{"file_path": "{tmp_path}/no.md", "content": "two"}}
  ---
  say Tried both.
end
"""
    file = HEAD + f"allow = ['Write({tmp_path}/*.txt)']\n" + members("ann")
    with team(tmp_path, file, lead=lead, ann=writes) as run:
        assert run.finish() == 0
    assert (tmp_path / "yes.txt").read_text() == "one"
    assert not (tmp_path / "no.md").exists()
    yes, no = run.of("ann", "tool_finished")
    assert not yes["is_error"] and no["is_error"] and "Nobody can be asked here" in no["text"]


def test_a_person_at_the_terminal_is_asked_for_a_teammate(tmp_path: Path) -> None:
    settings()
    (tmp_path / "lead.script").write_text(
        'call SendMessage {"to": "ann", "message": "Write it down.", "summary": "write"}\n---\nsay I wait.\n'
    )
    (tmp_path / "ann.script").write_text(
        f'when /asks you to end/\n  say Bye.\nend\nwhen /from="lead"/\n'
        f'  call Write {{"file_path": "{tmp_path}/yes.txt", "content": "one"}}\n  ---\n  say Written.\nend\n'
    )
    (tmp_path / "team.toml").write_text(HEAD + members("ann"))
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "reverie", "team", "team.toml"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown, was_asked, until = b"", False, time.monotonic() + 60
    try:
        while process.poll() is None and time.monotonic() < until:
            if select.select([ours], [], [], 0.2)[0]:
                with suppress(OSError):  # the other end is closed
                    shown += os.read(ours, 65_536)
            if b"then Enter" in shown and not was_asked:
                was_asked = os.write(ours, b"y\n") > 0
        assert process.poll() == 0
        assert process.stdout is not None
        answer = process.stdout.read().decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert (tmp_path / "yes.txt").read_text() == "one"
    text = shown.decode(errors="replace")
    assert "ann: Write changes" in text and "allowed: Write yes.txt" in text
    assert re.search(r"\x1b\[1mann\x1b\[0m +asks for a permission +", text), "a table shows what each member does"
    left = draw(text, 80)
    assert any(line.startswith("ann") and line.endswith("Written.") for line in left)
    assert not [line for line in left if re.match(r"(?:lead|ann) +(?:idle|ended|asks|starting|thinking)\b.* s$", line)]
    assert answer.strip() == "That is the end of the script.", (
        "standard output holds the lead's answer and nothing else"
    )


def test_a_plan_is_carried_out_only_when_the_lead_approves(tmp_path: Path) -> None:
    settings()
    lead = """
call SendMessage {"to": "ann", "message": "Write it down.", "summary": "write"}
---
say I wait.

when /my plan/
  call SendMessage {"to": "ann", "message": {"type": "plan_approval_response", "approve": true, "feedback": "Go."}}
  ---
  say Approved.
end
"""
    plans = f"""
when /asks you to end/
  say Good bye.
end
when /Your plan is approved: carry it out. Go./
  call Write {{"file_path": "{tmp_path}/done.txt", "content": "two"}}
  ---
  say Written.
end
when /Write it down/
  call Write {{"file_path": "{tmp_path}/done.txt", "content": "one"}}
  ---
  call SendMessage {{"to": "lead", "message": "This is my plan.", "summary": "plan"}}
  ---
  say I wait for approval.
end
"""
    ann = 'model = "scripted:ann.script"\nplan = true\npermission_mode = "accept_all"'
    with team(tmp_path, HEAD + members("ann", ann=ann), lead=lead, ann=plans) as run:
        assert run.finish() == 0
    first, _, second = run.of("ann", "tool_finished")
    assert first["is_error"] and "read-only" in first["text"]
    assert not second["is_error"] and (tmp_path / "done.txt").read_text() == "two"


def test_ctrl_c_ends_a_team_in_order_even_when_a_teammate_is_stuck(tmp_path: Path) -> None:
    settings(shutdown_s=1, kill_s=5)
    lead = 'call SendMessage {"to": "ann", "message": "Take a.", "summary": "a"}\n---\nsay I wait.\n'
    stuck = 'when /from="lead"/\n  call Bash {"command": "sleep 60"}\n  ---\n  say Slept.\nend\n'
    ann = 'model = "scripted:ann.script"\npermission_mode = "accept_all"'
    with team(tmp_path, HEAD + members("ann", "ben", ann=ann), lead=lead, ann=stuck, ben=REPORTER) as run:
        run.until(is_call("ann", "Bash"))
        began = time.monotonic()
        run.process.send_signal(signal.SIGINT)
        assert run.finish() == 130
        assert time.monotonic() - began < 40
    assert run.ends()["ben"] == "ended" and run.answers("ben") == ["Good bye."]
    assert run.alive() == []


def test_a_team_that_nobody_hears_any_more_ends(tmp_path: Path) -> None:
    settings(kill_s=5)
    lead = 'call Bash {"command": "sleep 60"}\n---\nsay Slept.\n'
    file = HEAD + 'permission_mode = "accept_all"\n' + members("ann")
    with team(tmp_path, file, lead=lead, ann=REPORTER) as run:
        run.until(lambda event: event.get("what") == "started" and event["member"] == "ann")
        run.output.close()
        assert run.process.wait(60) == 141
        assert run.alive() == []


def test_when_the_lead_dies_nobody_is_left(tmp_path: Path) -> None:
    settings(kill_s=5)
    lead = 'call Bash {"command": "sleep 60"}\n---\nsay Slept.\n'
    file = HEAD + 'permission_mode = "accept_all"\n' + members("ann")
    with team(tmp_path, file, lead=lead, ann=REPORTER) as run:
        run.until(is_call("lead", "Bash"))
        os.kill(run.pids["lead"], signal.SIGKILL)
        assert run.finish() == 1
    assert run.ends()["lead"] == "failed"
    assert run.alive() == []


def test_members_wind_up_when_whoever_started_them_is_killed(tmp_path: Path) -> None:
    settings(shutdown_s=5)
    lead = 'call Bash {"command": "sleep 60"}\n---\nsay Slept.\n'
    file = HEAD + 'permission_mode = "accept_all"\n' + members("ann")
    with team(tmp_path, file, lead=lead, ann=REPORTER) as run:
        run.until(is_call("lead", "Bash"))
        run.process.kill()
        until = time.monotonic() + 40
        while run.alive() and time.monotonic() < until:
            time.sleep(0.1)
        assert run.alive() == []


def test_status_and_stop(tmp_path: Path) -> None:
    settings(shutdown_s=2)
    lead = 'call Bash {"command": "sleep 60"}\n---\nsay Slept.\n'
    file = HEAD + 'permission_mode = "accept_all"\n' + members("ann")
    with team(tmp_path, file, lead=lead, ann=REPORTER) as run:
        run.until(is_call("lead", "Bash"))
        status = json.loads(_reverie(tmp_path, "team", "status", "t", "--json").stdout)
        assert status["lead"] == "lead" and status["pid"] == run.process.pid
        states = {member["name"]: (member["state"], member["doing"]) for member in status["members"]}
        assert states["lead"] == ("busy", "Bash")
        assert "t/lead busy Bash" in _reverie(tmp_path, "chat", given="/tasks\n").stdout
        again = _reverie(tmp_path, "team", "team.toml")
        assert again.returncode == 3 and str(run.process.pid) in again.stderr
        stopping = warm.start("team", "stop", "t", cwd=tmp_path)
        assert run.finish() == 143
        assert stopping.wait(30) == 0
    assert _reverie(tmp_path, "team", "stop", "t").returncode == 2
    assert _reverie(tmp_path, "team", "stop", "nobody").stderr.startswith("reverie: There is no team 'nobody'")


def test_the_example_does_what_it_says(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).resolve().parents[3] / "examples" / "team", tmp_path / "team")
    done = _reverie(tmp_path / "team", "team", "team.toml")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "This folder shows a team of agents at work.\n"
    assert "writer SendMessage to lead: nothing written" in done.stderr


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("", "`team` is missing"),
        ('team = "t"\ntask = "x"\nteammates = []\n', "`teammates` is empty"),
        ('team = "../x"\ntask = "x"\n[[teammates]]\nname = "a"\n', "is not a team name"),
        ('team = "t"\ntask = "x"\n[[teammates]]\nnmae = "a"\n', "did you mean `name`?"),
        ('team = "t"\ntask = "x"\n[[teammates]]\nname = "lead"\n', "two members are called 'lead'"),
        ('team = "t"\ntask = "x"\n[[teammates]]\nname = "main"\n', "nobody can be called 'main'"),
        ('team = "t"\ntask = "x"\n[[teammates]]\nname = "a"\nplan = 1\n', "`plan` must be true or false"),
        ('team = "t"\ntask = "x"\n[[teammates]]\nname = "a"\npermission_mode = "all"\n', "must be one of"),
        ("team = ", "not valid TOML"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(tmp_path: Path, file: str, sentence: str) -> None:
    (tmp_path / "team.toml").write_text(file)
    done = _reverie(tmp_path, "team", "team.toml")
    assert done.returncode == 2 and sentence in done.stderr and len(done.stderr.splitlines()) == 1


def _reverie(cwd: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return warm.run_text(*words, cwd=cwd, env=os.environ, stdin=given.encode(), timeout=90)


def _runs(*words: str) -> bool:
    wanted = b"".join(word.encode() + b"\0" for word in words)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == wanted:
                return True
    return False


def _transcript(opened: Event) -> list[str]:
    home = Path(os.environ["REVERIE_HOME"])
    (path,) = home.glob(f"projects/*/{opened['session_id']}.jsonl")
    return path.read_text().splitlines()
