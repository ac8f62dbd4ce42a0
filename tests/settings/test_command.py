"""`reverie settings`, as people and programs run it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import warm

PLAIN = {key: value for key, value in os.environ.items() if not key.startswith(("REVERIE_", "ANTHROPIC_", "OPENAI_"))}


def reverie(home: Path, repo: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return warm.run_text("settings", *words, cwd=repo, env={**PLAIN, "REVERIE_HOME": str(home), **env})


def test_every_value_is_shown_with_its_source(home: Path, repo: Path) -> None:
    (home / "settings.toml").write_text('[tools]\nparallel = 3\n[model]\nopenai_api_key = "sk-hidden"')
    done = reverie(home, repo, REVERIE_CONTEXT_WINDOW="32000", ANTHROPIC_API_KEY="sk-hidden")
    assert done.returncode == 0, done.stderr
    lines = {line.split(" ")[0]: line for line in done.stdout.splitlines()}
    assert lines["tools.parallel"].endswith(f"= 3  # {home}/settings.toml:2")
    assert lines["window.context_window"].endswith("= 32_000  # environment REVERIE_CONTEXT_WINDOW")
    assert lines["tools.max_rounds"].endswith("= 500  # default")
    assert lines["model.anthropic_api_key"].endswith("= (set, hidden)  # environment ANTHROPIC_API_KEY")
    assert "sk-hidden" not in done.stdout + done.stderr


def test_json_for_programs(home: Path, repo: Path) -> None:
    (repo / ".reverie" / "settings.toml").write_text('model.name = "theirs"\n[[hooks.Stop]]\ncommand = "x"')
    (home / "settings.toml").write_text('[[hooks.Stop]]\ncommand = "mine"')
    found = json.loads(reverie(home, repo, "--json", OPENAI_API_KEY="sk-hidden").stdout)
    by_key = {one["key"]: one for one in found["settings"]}
    assert by_key["hooks.Stop"]["value"] == [{"command": "mine", "matcher": "*", "timeout_s": 60.0, "wait": True}]
    assert by_key["hooks.Stop"]["places"] == ["user"]
    assert by_key["model.openai_api_key"]["value"] == "(set, hidden)"
    assert len(found["warnings"]) == 1
    (ignored,) = by_key["hooks.Stop"]["ignored"]
    assert ignored["value"] == [{"command": "x"}] and ignored["where"] == f"{repo}/.reverie/settings.toml:2"
    assert ignored["why"] == "you have not trusted this folder"
    assert by_key["tools.parallel"]["ignored"] == []
    text = reverie(home, repo, "model.name").stdout
    assert f'ignored: "theirs"  # {repo}/.reverie/settings.toml:1: you have not trusted this folder' in text


def test_one_setting_a_section_and_a_wrong_name(home: Path, repo: Path) -> None:
    one = reverie(home, repo, "window.autocompact_pct").stdout
    assert "window.autocompact_pct = (not set)  # default" in one
    assert "REVERIE_AUTOCOMPACT_PCT" in one and "percent" in one
    section = reverie(home, repo, "memory").stdout.splitlines()
    assert section and all(line.startswith("memory.") for line in section)
    wrong = reverie(home, repo, "window.autocompct_pct")
    assert wrong.returncode == 2
    assert "did you mean window.autocompact_pct?" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_mistake_is_one_line_and_exit_code_2(home: Path, repo: Path) -> None:
    (home / "settings.toml").write_text('[model]\nnmae = "x"')
    done = reverie(home, repo)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{home}/settings.toml:2: unknown key `model.nmae`; did you mean `model.name`?" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_warnings_go_to_standard_error(home: Path, repo: Path) -> None:
    (repo / ".reverie" / "settings.toml").write_text('permissions.allow = ["Bash"]')
    done = reverie(home, repo)
    assert done.returncode == 0
    assert done.stderr.startswith("warning: ")
    assert "`reverie trust`" in done.stderr and len(done.stderr.splitlines()) == 1


def test_flags_with_their_sources(home: Path, repo: Path) -> None:
    (home / "flags.toml").write_text("dream = false\nextracton = false\n[tool_results.limits]\nBash = 7")
    done = reverie(home, repo, "--flags", REVERIE_FLAG_DAILY_LOG="1")
    assert done.returncode == 0, done.stderr
    lines = {line.split(" ")[0]: line for line in done.stdout.splitlines()}
    assert f"= off  # {home}/flags.toml: " in lines["dream"]
    assert "= on   # environment REVERIE_FLAG_DAILY_LOG: " in lines["daily_log"]
    assert "= on   # default: " in lines["extraction"]
    assert f"= 7  # {home}/flags.toml" in lines["tool_results.limits.Bash"]
    assert "unknown flag `extracton`, ignored; did you mean `extraction`?" in done.stderr
    found = json.loads(reverie(home, repo, "--flags", "dream", "--json").stdout)
    assert found["flags"][0]["on"] is False


def test_help_has_an_example(home: Path, repo: Path) -> None:
    assert "Examples:" in reverie(home, repo, "--help").stdout


def test_a_home_that_is_not_utf8_is_shown_all_the_same(tmp_path: Path, repo: Path) -> None:
    try:
        home = Path(os.fsdecode(bytes(tmp_path) + b"/h\xff"))
        home.mkdir()
    except OSError:
        pytest.skip("this file system knows only UTF-8 names")
    done = reverie(home, repo, "places")
    assert done.returncode == 0, done.stderr
    assert "places.home" in done.stdout
    assert json.loads(reverie(home, repo, "places.home", "--json").stdout)["settings"]


def test_the_docs_are_printed_whole(home: Path, repo: Path) -> None:
    from reverie.settings.reference import make_reference_page

    assert reverie(home, repo, "--docs").stdout == make_reference_page()
