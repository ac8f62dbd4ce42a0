"""What the memory server decides before it needs PostgreSQL: where it may listen, limits, figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reverie.cli.app import commands
from reverie.server.operation.limits import Limits
from reverie.server.operation.measures import Measures, label
from reverie.server.operation.postgres_programs import copy_for_others
from reverie.server.wire import ApiError


def serve(home: Path, *args: str, **env: str) -> Result:
    return CliRunner().invoke(commands, ["serve", *args], env={"REVERIE_HOME": str(home), **env})


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--host", "0.0.0.0"], "without TLS everybody on the way reads tokens"),
        (["--host", "192.0.2.7"], "--behind-proxy ADDRESS if a reverse proxy does TLS"),
        (["--behind-proxy", "*"], "is not the address of a reverse proxy"),
        (["--behind-proxy", "0.0.0.0/0"], "is not the address of a reverse proxy"),
        (["--ssl-keyfile", __file__], "give --ssl-certfile too"),
        (["--ssl-certfile", __file__], "cannot be used as a certificate"),
        (["--dsn", "postgresql://", "--dsn-file", __file__], "Give only one"),
        (["--dsn", "postgresql://me:hunter22@[bad"], "The DSN cannot be read"),
        (["people"], "This home has no memory server yet"),
    ],
)
def test_what_cannot_work_is_one_sentence_without_the_password(tmp_path: Path, args: list[str], said: str) -> None:
    done = serve(tmp_path, *args)
    assert done.exit_code == 1 and said in str(done.exception)
    assert "hunter22" not in f"{done.output}{done.exception}"
    assert not list(tmp_path.rglob("*postgres*")), "nothing was made"


def test_a_password_on_the_command_line_is_warned_about(tmp_path: Path) -> None:
    secret = tmp_path / "dsn"
    secret.write_text("postgresql://me:hunter22@/none?host=/nonexistent\n")
    by_file = serve(tmp_path, "people", "--dsn-file", str(secret))
    assert "does not answer" in str(by_file.exception) and "chmod 600" in by_file.output.replace("\n  ", " ")
    open_to_all = serve(tmp_path, "people", "--dsn", secret.read_text().strip())
    assert "visible to other users" in open_to_all.output.replace("\n  ", " ")
    quiet = serve(tmp_path, "people", REVERIE_SERVE_DSN=secret.read_text().strip())
    assert "does not answer" in str(quiet.exception) and "visible" not in quiet.output
    for done in (by_file, open_to_all, quiet):
        assert "hunter22" not in f"{done.output}{done.exception}"


def test_a_flood_is_slowed_down_and_others_are_not() -> None:
    limits = Limits(rate=10)
    limits.know(b"busy"), limits.know(b"quiet")
    with pytest.raises(ApiError) as caught:
        for _ in range(100):
            limits.check(b"busy", "10.0.0.1")
    assert caught.value.status == 429 and int(caught.value.headers["retry-after"]) >= 1
    limits.check(b"quiet", "10.0.0.1")
    with pytest.raises(ApiError):
        for number in range(1_000):
            limits.check(f"guess {number}".encode(), "10.0.0.2")
    limits.check(b"quiet", "10.0.0.2")
    limits.check(b"a new token", "10.0.0.3")


def test_figures_of_all_processes_are_one_sum(tmp_path: Path) -> None:
    here = Measures(tmp_path)
    here.count("reverie_requests_total", method="GET", route="/v1/x", status="200")
    here.time("/v1/x", 0.02)
    here.gauges["reverie_pool_connections", label(state="open")] = 2
    here.leave()
    mine = next(tmp_path.glob("*.json"))
    mine.rename(tmp_path / "1.json")  # as if another process had written it
    (tmp_path / "2.json").write_text("broken")
    text = here.render({("reverie_database_up", ()): 1})
    assert 'reverie_requests_total{method="GET",route="/v1/x",status="200"} 2' in text
    assert 'reverie_pool_connections{state="open"} 4' in text and "reverie_database_up 1" in text
    buckets = [line for line in text.splitlines() if line.startswith("reverie_request_seconds_bucket")]
    assert [line.rpartition(" ")[2] for line in buckets] == ["0"] * 2 + ["2"] * 10


def test_programs_that_others_cannot_reach_are_copied_and_no_folder_is_opened(tmp_path: Path) -> None:
    private = tmp_path / "private"
    programs = private / "install" / "bin"
    programs.mkdir(parents=True)
    (programs / "postgres").write_text("a program")
    private.chmod(0o700)
    first, second = (copy_for_others(programs, tmp_path) for _ in range(2))
    assert first == second and first.is_relative_to(tmp_path) and not first.is_relative_to(private)
    assert (first / "postgres").read_text() == "a program"
    assert private.stat().st_mode & 0o077 == 0 and len(list(tmp_path.iterdir())) == 2
