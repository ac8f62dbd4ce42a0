"""A built wheel holds everything it needs and runs in an empty environment."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.counts import SOAK

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.skipif(not SOAK, reason="builds and installs from the package registry: run by `make soak`")
def test_a_wheel_runs_in_an_empty_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    sources = [
        path
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".py", ".md", ".toml", ".typed", ".png") or path.name == "LICENSE"
    ]
    missing = [str(p.relative_to(ROOT / "src")) for p in sources if str(p.relative_to(ROOT / "src")) not in packed]
    assert not missing
    assert not [name for name in packed if name.startswith("bench/")]
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    home = tmp_path / "home"
    env = {**os.environ, "HOME": str(home), "REVERIE_HOME": str(home / ".reverie")}
    for command in (["--version"], ["demo"], ["doctor"], ["sessions", "list"]):
        ran = subprocess.run(
            [str(python.with_name("reverie")), *command],
            cwd=tmp_path,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
    told = subprocess.run(
        [str(python.with_name("reverie")), "lab", "tokens", "."], env=env, capture_output=True, text=True, check=False
    )
    assert told.returncode == 2 and "in bench/ of Reverie's source code" in told.stderr, told.stderr
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("The harbour opens at seven.\n")
    asked = [str(python.with_name("reverie")), "run", "When does the harbour open?"]
    ran = subprocess.run(
        asked, cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert "seven" in ran.stdout, ran.stderr
    keyed = {**env, "ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "OPENAI_API_KEY": "x"}
    for model, code, said in (
        ("anthropic:claude-sonnet-5-5", 5, "http://127.0.0.1:9 cannot be reached"),
        ("openai:gpt-5.5", 2, "pip install 'reverie[openai]'"),
    ):
        asked = [str(python.with_name("reverie")), "run", "--model", model, "hello"]
        ran = subprocess.run(
            asked, cwd=tmp_path, env=keyed, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert ran.returncode == code and said in ran.stderr and "Traceback" not in ran.stderr, ran.stderr
