"""Every command with the home taken away: it works, or it says one clear sentence and ends with a code other than 0.

A command that says it stored something has stored it: the home is looked at afterwards. `make test` runs a few commands
against the worst faults, `make soak` every command against every fault.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fault_cases import Case, cases, leaves
from tests.cli.fault_driver import FAULTS, mountable
from tests.counts import SOAK

ROOT = Path(__file__).parents[2]
NEEDS_MOUNT = ("read-only", "full")
FEW = {
    "read-only": ["pin", "compact", "remember", "memory list"],
    "full": ["compact"],
    "no-growth": ["rewind"],
    "file": ["remember"],
    "full-output": ["memory path"],
}
NOTED = "the conversation continues in memory and is lost when it ends"
SECRET = "hunterGreen-" + "4411"


def results(folder: Path, plan: dict[str, list[str] | None]) -> dict[str, list[dict[str, Any]]]:
    env = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "LC_ALL", "TMPDIR")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.fault_driver", str(folder), SECRET, json.dumps(plan)],
        cwd=ROOT, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wrong(fault: str, done: dict[str, Any], case: Case) -> str | None:
    """What is wrong with how the command ended; None if nothing is."""
    err, code = str(done["err"]), done["code"]
    if "broken" in done or "Traceback" in err or "Traceback" in str(done["out"]):
        return "a traceback"
    if code == -999:
        return "it hangs"
    sentences = [line for line in err.splitlines() if line.startswith("reverie: ")]
    if code == 0:
        unsaid = NOTED not in " ".join((err + str(done["out"])).split())
        if fault not in ("none", "file") and done.get("stored") is False and unsaid:
            return "it claims success and stored nothing"
        # Where there are no notes yet, `notes` says so on standard error and has nothing to print.
        if fault == "full-output" and done["command"] not in (["chat"], ["notes"]):
            return "nobody got the output"
        return None
    if fault == "none" and case.works:
        return "it fails without a fault"
    if fault == "read-only" and case.works and case.stored is None and done["command"] != ["doctor"] and not case.slow:
        return "it only reads, and fails"
    if fault == "closed-output" and code == 141:
        return None
    is_report = done["command"] == ["doctor"] and fault != "full-output"
    if not is_report and (len(sentences) != 1 or not sentences[0].endswith((".", ")"))):
        return f"{len(sentences)} sentences"
    return None


def findings(fault: str, found: list[dict[str, Any]], work: Path) -> list[str]:
    by_command = cases(work, SECRET)
    told: list[str] = []
    for done in found:
        listed = by_command[tuple(done["command"])]
        case = next(one for one in listed if list(one.args) == done["args"])
        what = wrong(fault, done, case)
        if what is not None:
            told.append(
                f"{fault}: {' '.join([*done['command'], *done['args']])}: {what} ({done['code']}): {done['err'][-300:]}"
            )
    return told


def test_every_command_has_a_line_here(tmp_path: Path) -> None:
    assert set(leaves()) == set(cases(tmp_path, SECRET)), "give the new command arguments in tests/cli/fault_cases.py"


@pytest.mark.soak
@pytest.mark.timeout(7_000)
def test_a_command_works_or_says_why_not(tmp_path: Path) -> None:
    reason = mountable()
    wanted: dict[str, list[str] | None] = dict.fromkeys(FAULTS) if SOAK else {**FEW}
    plan = {fault: only for fault, only in wanted.items() if reason is None or fault not in NEEDS_MOUNT}
    told = [line for fault, found in results(tmp_path, plan).items() for line in findings(fault, found, tmp_path / "w")]
    assert not told, "\n".join(told)
    if reason is not None:
        pytest.skip(f"read-only and full disks were not tried: {reason}")
