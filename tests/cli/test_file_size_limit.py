"""Where the system lets no file grow, every command names that limit, and doctor finds it."""

from __future__ import annotations

import json
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.cli.app import commands
from reverie.storage.atomic import cause_of


@pytest.fixture
def no_growth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.usefixtures("no_growth")
def test_doctor_writes_a_real_file(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "home").mkdir(mode=0o700)
    done = json.loads(CliRunner().invoke(commands, ["doctor", "--json"]).stdout)
    home = next(check for check in done["checks"] if check["name"] == "home")
    assert not done["healthy"] and home["state"] == "broken" and "ulimit -f" in home["found"]
    assert not list(tmp_path.rglob(".reverie-doctor-*"))


@pytest.mark.usefixtures("no_growth")
def test_a_temporary_folder_that_takes_nothing_is_told_by_its_cause() -> None:
    with pytest.raises(OSError) as caught:
        tempfile.mkdtemp()
    assert "ulimit -f" in cause_of(caught.value)
