"""Whatever the read-only check allows is really run and watched: nothing may change, hang or start another program.

Allowed commands are bent in many ways; what the check refuses is never run. The folder they run in is full of files
with names like -delete, so that a glob that turns into an option shows. bash itself says, by its trace, what it ran.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from reverie.permissions.shell_commands import all_commands
from reverie.permissions.strict_shell import is_read_only_shell
from tests.counts import SOAK, count
from tests.permissions.shell_corpus import ALLOWED, LEFT_TO_A_QUESTION
from tests.shared_data import ROOT

HANG_SECONDS = 15
PROGRAMS = ("cat", "find", "grep", "head", "ls", "stat", "tail", "wc")
BATCH = 20
TRAPS = ("-delete", "-f", "-exec", "--follow", "-rf", "-n", "-fprint", "--files0-from=x", "-f.md", "-delete.md", "-o")
FOLDERS = ("memory", "docs", "src", "My Notes", "logs", "notes")
FILES = (
    "MEMORY.md",
    "a.md",
    "b.md",
    "README.md",
    "file.txt",
    "a.txt",
    "build.log",
    "app.log",
    "patterns.txt",
    "config.toml",
)
HOSTILE = (
    *(
        "-delete",
        "-exec",
        "-f",
        "-F",
        "--follow",
        "--fol",
        "--retry",
        "-fprint out",
        "-fls out",
        "-ok",
        "--files0-from=-",
    ),
    *("> out", ">> out", ">| out", "2> out", "2>&1", "&> out", "<> out", "< a.md", "<<E", "<<< x", ">(cat)", "<(ls)"),
    *("2>/dev/null", "2>/dev/null/x", "2>>/dev/null", "| tee out", "| xargs touch", "; touch out", "&& touch out"),
    *("|| touch out", "& touch out", "\ntouch out", "\rtouch out", "\\\ntouch out", "# x\ntouch out", "$(touch out)"),
    *(
        "`touch out`",
        "${x:=y}",
        "$'x'",
        '$"x"',
        "{a,b}",
        "*",
        "?",
        "[a]",
        "~root",
        "~",
        "!",
        "!!",
        "!x",
        "\\",
        "'",
        '"',
    ),
    *(
        "''",
        '""',
        "\\'",
        '\\"',
        "\\\\",
        "-",
        "--",
        "-n",
        "-c 9E",
        "-n 99999999999999",
        "-r",
        "-R",
        "-e",
        "-e x",
        "-f -",
    ),
    *(
        "/dev/zero",
        "/dev/tty",
        "/proc/self/mem",
        "/dev/stdin",
        "*.md",
        "./*",
        "-*",
        "\u00a0",
        "\u200b",
        "\uff1b",
        "\u2028",
    ),
    *(
        "touch out",
        "rm -rf memory",
        "eval touch out",
        "env touch out",
        "A=b",
        "()",
        "{ ",
        "; }",
        "(",
        ")",
        "|",
        "&&",
        ";",
    ),
    *(
        "if",
        "then",
        "do",
        "time",
        "coproc",
        "function",
        "\t",
        "\x0b",
        "\x00",
        "\x1b",
        "\x7f",
        "=",
        ":~",
        "[[",
        "]]",
        "^",
        "%",
    ),
)
SWAPS = {
    "l": "\u04cf",
    "a": "\u0430",
    "s": "\u0455",
    "-": "\u2010",
    " ": "\u00a0",
    "|": "\uff5c",
    ";": "\uff1b",
    "'": "\u2019",
}


def corpus() -> list[str]:
    """Our own allowed commands, and those of the measuring data when it is there."""
    commands = [command for command, _ in (*ALLOWED, *LEFT_TO_A_QUESTION)]
    measured = ROOT / "security" / "shell-dev.jsonl"
    if measured.exists():
        cases = map(json.loads, measured.read_text("utf-8").splitlines())
        commands += [case["command"] for case in cases if case["allow"]]
    return commands


def mutate(rng: random.Random, seeds: list[str]) -> str:
    """One to four changes to an allowed command, from whole words down to single bytes."""
    command = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        at = rng.randint(0, len(command))
        words = command.split(" ")
        spot = rng.randrange(len(words))
        match rng.randrange(14):
            case 0:
                command = command[:at] + rng.choice(HOSTILE) + command[at:]
            case 1:
                words.insert(rng.randint(0, len(words)), rng.choice(HOSTILE))
                command = " ".join(words)
            case 2:
                words[spot] = rng.choice(HOSTILE)
                command = " ".join(words)
            case 3:
                words[spot] += rng.choice(HOSTILE)
                command = " ".join(words)
            case 4:  # words of two commands crossed over
                other = rng.choice(seeds).split(" ")
                command = " ".join([*words[:spot], *other[rng.randrange(len(other)) :]])
            case 5:
                command += rng.choice((" | ", " && ", "; ", "|", ";", "&&", " & ", "\n", " || ")) + rng.choice(seeds)
            case 6:
                command = command[:at] + command[at + 1 :]
            case 7:
                command = command[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(0x3000)))) + command[at:]
            case 8:
                command = command[:at] + rng.choice("'\"\\$`!~*?[]{}()<>|&;#= \t\n-/.2") + command[at:]
            case 9:  # one byte changed
                raw = bytearray(command.encode("utf-8", "replace") or b"x")
                raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
                command = raw.decode("utf-8", "replace")
            case 10:
                quote = rng.choice(("'", '"', "\\"))
                words[spot] = quote + words[spot] + (quote if quote != "\\" else "")
                command = " ".join(words)
            case 11:
                first = rng.randint(0, at)
                command = command[:at] + command[first:at] + command[at:]
            case 12:
                command = command.replace(*rng.choice(list(SWAPS.items())), 1)
            case _:
                rng.shuffle(words)
                command = " ".join(words)
    return command


def build_world(base: Path) -> tuple[Path, dict[str, str]]:
    """A deep working folder with traps, a home and a canary beside it, and a PATH of the eight programs alone."""
    work = base / "tree" / "one" / "two" / "three" / "work"
    for folder in FOLDERS:
        (work / folder / "sub").mkdir(parents=True)
        for name in ("a.md", "MEMORY.md", "topic-1.md", "x.ts"):
            (work / folder / name).write_text(f"# {name}\n- TODO foo: error\nneedle\n", "utf-8")
    for name in FILES:
        (work / name).write_text("foo\nneedle TODO\n", "utf-8")
    for folder in (work, work / "memory", work / "docs"):
        for trap in TRAPS:
            (folder / trap).write_text("trap\n", "utf-8")
    (base / "tree" / "canary").mkdir()
    (base / "tree" / "canary" / "keep.md").write_text("keep\n", "utf-8")
    home = base / "tree" / "home"
    (home / "projects").mkdir(parents=True)
    programs = base / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(shutil.which(name) or pytest.skip(f"{name} is not installed"))
    return work, {"PATH": str(programs), "HOME": str(home), "LC_ALL": "C.UTF-8"}


def snapshot(tree: Path) -> dict[str, tuple[object, ...]]:
    """Every entry with what would betray a change; reading changes none of it."""
    seen: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(tree):
        for name in (".", *folders, *files):
            entry = Path(folder, name)
            state = entry.lstat()
            digest = hashlib.sha256(entry.read_bytes()).digest() if name in files else b""
            seen[str(entry)] = (
                state.st_ino,
                state.st_mode,
                state.st_nlink,
                state.st_mtime_ns,
                state.st_ctime_ns,
                digest,
            )
    return seen


def walks_far(command: str) -> bool:
    """It would walk through folders that are not ours: allowed, but too slow to run by the hundred."""
    for simple in all_commands(command):
        if simple.words[0] in ("find", "ls", "grep"):
            for word in simple.words[1:]:
                if word and (word.startswith("/") or word.count("..") > 2):
                    return True
    return False


def run_and_watch(command: str, work: Path, environment: dict[str, str], bash: str) -> tuple[list[list[str]], bytes]:
    """Run an allowed command; returns the simple commands bash says it ran, and the output. Fails on a hang."""
    assert is_read_only_shell(command), "a refused command must never be run"
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [bash, "--norc", "-xc", command],
        cwd=work,
        env={**environment, "BASH_XTRACEFD": str(writing)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(writing,),
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),  # a mistake must not fill the disk
    )
    os.close(writing)
    try:
        shown, errors = process.communicate(timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        pytest.fail(f"allowed, but does not end: {command!r}")
    finally:
        with os.fdopen(reading, "rb") as trace:
            lines = trace.read().decode().splitlines()
    assert b"command not found" not in errors and process.returncode not in (126, 127), f"another program: {command!r}"
    return [shlex.split(line.lstrip("+")) for line in lines if "$'" not in line], shown + errors


def check_trace(command: str, ran: list[list[str]]) -> None:
    """Bash ran nothing but the programs of the list, and no more of them than the grammar finds."""
    expected = [part for part in all_commands(command) if part.words and part.words[0] in PROGRAMS]
    assert len(ran) <= len(expected), f"bash ran more commands: {command!r} {ran}"
    for words in ran:
        assert words[0] in PROGRAMS, f"bash ran {words[0]!r}: {command!r}"


@pytest.mark.soak
def test_what_is_allowed_changes_nothing_ends_and_runs_what_was_checked(tmp_path: Path) -> None:
    bash = shutil.which("bash") or pytest.skip("bash is not installed")
    work, environment = build_world(tmp_path)
    tree = tmp_path / "tree"
    seed = time.time_ns() if SOAK else 20_240_229
    rng, seeds = random.Random(seed), corpus()
    before, batch = snapshot(tree), list[str]()
    tally: Counter[str] = Counter()
    until = time.monotonic() + count(1, 60)
    pending = [command for command in seeds if not walks_far(command)]
    rng.shuffle(pending)
    del pending[: count(len(pending) // 2, 0)]  # these run as they are, first: half of them, or all in a soak
    enough = count(40, 100)  # of each kind, however slow the machine is today
    while time.monotonic() < until or min(tally["run"], tally["refused"]) < enough:
        command = pending.pop() if pending else mutate(rng, seeds)
        if not is_read_only_shell(command):
            tally["refused"] += 1
            continue
        if walks_far(command):
            tally["not run"] += 1
            continue
        check_trace(command, run_and_watch(command, work, environment, bash)[0])
        tally["run"] += 1
        batch.append(command)
        if len(batch) == BATCH:
            assert snapshot(tree) == before, f"something changed (seed {seed}) by one of {batch}"
            batch.clear()
    assert snapshot(tree) == before, f"something changed (seed {seed}) by one of {batch}"
    assert min(tally["run"], tally["refused"]) >= enough, tally
    print(dict(tally))


def test_the_watch_would_see_a_change(tmp_path: Path) -> None:
    work, _ = build_world(tmp_path)
    tree = tmp_path / "tree"

    def seen(change: str) -> bool:
        before = snapshot(tree)
        match change:
            case "create":
                (work / "out").touch()
            case "delete":
                (work / "a.md").unlink()
            case "same bytes":
                (work / "b.md").write_bytes((work / "b.md").read_bytes())
            case _:
                (tree / "canary" / "keep.md").chmod(0o600)
        return snapshot(tree) != before

    assert all(seen(change) for change in ("create", "delete", "same bytes", "mode"))


def test_the_trace_would_show_another_program() -> None:
    check_trace("ls 'a b'; cat c", [["ls", "a b"], ["cat", "c"]])
    for ran in ([["touch", "a b"]], [["ls", "a b"], ["cat", "c"], ["cat", "c"]]):
        with pytest.raises(AssertionError):
            check_trace("ls 'a b'; cat c", ran)
