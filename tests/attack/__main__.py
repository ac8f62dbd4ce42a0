"""Runs all attacks in rounds until the time is over, each round with a new seed, each attack in a process of its own.

    python -m tests.attack [--minutes N] [--rounds N] [--seed S] [--only NAME] [--json]

Prints a finding at once, with the command that repeats it. Ends with 1 if there was one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.attack.arena import Arena
from tests.attack.attacks import ATTACKS

ROUND_S = 900.0
"""One round of one attack; its cases have limits of their own, far below."""


@dataclass(slots=True)
class Tally:
    """What one attack did so far."""

    name: str
    rounds: int = 0
    cases: int = 0
    findings: int = 0
    cpu_s: float = 0.0
    peak_mb: float = 0.0


def one_round(name: str, seed: int, tally: Tally) -> list[str]:
    """Runs one attack once in a child; what it found."""
    with tempfile.TemporaryDirectory(prefix=f"attack-{name}-", ignore_cleanup_errors=True) as folder:
        report = Path(folder, "report")
        child = os.fork()
        if not child:
            _attack(name, seed, Path(folder), report)
        until, late = time.monotonic() + ROUND_S, False
        while not (ended := os.wait4(child, os.WNOHANG))[0]:
            if time.monotonic() > until and not late:
                late = True
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.02)
        _, status, used = ended
        lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
        _make_removable(Path(folder))
    found = [line["finding"] for line in lines if "finding" in line]
    last = next((line for line in lines if "cases" in line), None)
    if late:
        found.append(f"the round did not end within {ROUND_S:.0f} s")
    elif last is None:
        found.append(f"the attack itself broke (exit code {os.waitstatus_to_exitcode(status)})")
    tally.rounds += 1
    tally.cases += last["cases"] if last else 0
    tally.findings += len(found)
    tally.cpu_s += used.ru_utime + used.ru_stime
    tally.peak_mb = max(tally.peak_mb, used.ru_maxrss / 1024)
    return found


def _attack(name: str, seed: int, folder: Path, report: Path) -> None:
    """In the child: the attack, and a line for each finding as soon as it is known."""
    os.setpgid(0, 0)
    file = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(**line: object) -> None:
        os.write(file, (json.dumps(line) + "\n").encode())

    code = 1
    try:
        arena = Arena(folder, seed, name, told=lambda finding: tell(finding=finding))
        ATTACKS[name](arena)
        tell(cases=arena.cases)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _make_removable(folder: Path) -> None:
    for where, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(where, name)
            if not path.is_symlink() and not os.access(path, os.W_OK | os.X_OK):
                path.chmod(0o700)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no new round after this time (60)")
    parser.add_argument("--rounds", type=int, help="stop after this many rounds, whatever the time")
    parser.add_argument("--seed", type=int, help="the seed of the first round; the next has the next number")
    parser.add_argument("--only", action="append", choices=list(ATTACKS), help="this attack alone; can be repeated")
    parser.add_argument("--json", action="store_true", help="one JSON line per finding and one for the end")
    return parser.parse_args()


def main() -> int:
    asked = _arguments()
    # Whoever starts this in the background has Ctrl-C ignored, and every command of an attack would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = asked.seed if asked.seed is not None else time.time_ns() % 1_000_000_000
    names = asked.only or list(ATTACKS)
    tallies = {name: Tally(name) for name in names}
    began, number = time.monotonic(), 0

    def over() -> bool:
        return time.monotonic() - began >= asked.minutes * 60 or (asked.rounds is not None and number >= asked.rounds)

    if not asked.json:
        print(f"seed {seed}", flush=True)
    while number == 0 or not over():
        for name in names:
            if number and over():
                break
            for finding in one_round(name, seed + number, tallies[name]):
                again = f"{sys.executable} -m tests.attack --rounds 1 --only {name} --seed {seed + number}"
                shown = {"attack": name, "seed": seed + number, "finding": finding, "again": again}
                print(json.dumps(shown) if asked.json else f"FINDING {name}: {finding}\n  again: {again}", flush=True)
        number += 1
    failed = sum(tally.findings > 0 for tally in tallies.values())
    ended = f"{len(names) - failed} passed, {failed} failed"
    if asked.json:
        print(json.dumps({"attacks": [asdict(tally) for tally in tallies.values()], "ended": ended}))
    else:
        print(f"{'attack':12}{'rounds':>8}{'cases':>10}{'findings':>10}{'CPU s':>10}{'peak MB':>10}")
        for one in tallies.values():
            print(
                f"{one.name:12}{one.rounds:>8}{one.cases:>10,}{one.findings:>10}{one.cpu_s:>10.1f}{one.peak_mb:>10.0f}"
            )
        print(ended)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
