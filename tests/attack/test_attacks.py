"""A small round of every attack, and proof that the arena and the oracles see what they are there to see."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from reverie.instructions import load
from reverie.permissions.offers import Offer
from tests.attack import arena as arena_module
from tests.attack import users
from tests.attack.__main__ import Tally, main, one_round
from tests.attack.arena import Arena, in_child
from tests.attack.attacks import ATTACKS
from tests.attack.orders import MARKER, bare_texts
from tests.attack.terminal import WORD, steering


@pytest.mark.parametrize("name", ATTACKS)
def test_a_small_round_finds_nothing(name: str, tmp_path: Path) -> None:
    arena = Arena(tmp_path, 7, name, full=False)
    ATTACKS[name](arena)
    assert arena.findings == [] and arena.cases > 0


def test_a_child_that_hangs_crashes_or_takes_all_memory_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_module, "MEMORY", 1 << 31)
    assert "does not end" in (in_child(lambda: time.sleep(30), limit_s=0.2).crash or "")
    assert "SIGSEGV" in (in_child(lambda: os.kill(os.getpid(), signal.SIGSEGV)).crash or "")
    assert "MemoryError" in (in_child(lambda: len(bytes(1 << 32)) and None).crash or "")
    assert "ZeroDivisionError" in (in_child(lambda: 1 // 0).crash or "")
    done = in_child(lambda: print("fine") or 3)
    assert done.crash is None and (done.code, done.out) == (3, "fine\n")


def test_findings_are_counted_printed_and_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(arena: Arena) -> None:
        arena.judge(None)
        arena.judge(f"wrong {arena.chance.random()}")

    monkeypatch.setitem(ATTACKS, "bad", bad)
    monkeypatch.setitem(ATTACKS, "broken", lambda _: os._exit(9))
    tally = Tally("bad")
    first, again = one_round("bad", 3, tally), one_round("bad", 3, tally)
    assert first == again and first != one_round("bad", 4, tally)
    assert (tally.rounds, tally.cases, tally.findings) == (3, 6, 3) and tally.peak_mb > 1
    assert "itself broke" in one_round("broken", 1, Tally("broken"))[0]


def test_the_oracles_would_see_it(tmp_path: Path) -> None:
    for raw in ("\x1b]52;c;x\x07", "a\x9bb", f"\x1b[31m{WORD}", "\rfake", "x\u202e"):
        assert steering(raw), raw
    assert steering("\x1b[1mbold\x1b[0m\r\nplain größe\r\x1b[K") is None
    assert bare_texts(tmp_path / "nowhere", set()) == [] and MARKER


def test_the_oracles_of_users_would_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "mark_words", list)
    monkeypatch.setattr(users, "mark_environment", dict)
    monkeypatch.setattr(load, "why_withheld", lambda *_: "")
    monkeypatch.setattr(users, "make_offer", lambda _: Offer(("Bash(*)",)))
    arena = Arena(tmp_path, 5, "users", full=False)
    users.attack(arena)
    for sign in ("is not refused", "a secret reaches the model", "covers"):
        assert any(sign in finding for finding in arena.findings), sign


def test_the_command_ends_with_a_count_and_1_for_a_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ATTACKS, "simulator", lambda arena: arena.judge(None))
    monkeypatch.setitem(ATTACKS, "files", lambda arena: arena.judge("it hangs"))
    words = ["attack", "--rounds", "2", "--seed", "5", "--only", "simulator", "--only", "files"]
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 1
    shown = capsys.readouterr().out
    assert "FINDING files: it hangs" in shown and "--only files --seed 6" in shown
    assert shown.splitlines()[-1] == "1 passed, 1 failed"
    monkeypatch.setattr(sys, "argv", [*words[:7], "--json"])
    assert main() == 0
    assert json.loads(capsys.readouterr().out)["attacks"][0]["cases"] == 2
