"""`reverie worker`: dreams and extractions that the memory server has queued."""

from __future__ import annotations

from pathlib import Path

import click

from reverie.cli.options import cwd_option, examples
from reverie.cli.serve.opening import dsn_options, find_database, started

_JOBS_HELP = "Dreams at the same time; one store dreams once at a time."
_LEASE_HELP = "Seconds after which another worker takes over a dream whose worker does not answer."
_SWEEP_HELP = "Seconds between two looks for lost dreams and for stores that dream by themselves."


@examples("reverie worker", "reverie worker --dsn-file /etc/reverie/dsn --jobs 4")
@click.command("worker")
@dsn_options
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help=_JOBS_HELP)
@click.option("--lease", type=click.FloatRange(1, 3_600), default=60.0, show_default=True, help=_LEASE_HELP)
@click.option("--sweep", type=click.IntRange(1, 59), default=30, show_default=True, help=_SWEEP_HELP)
@cwd_option
def command(dsn: str, dsn_file: Path | None, jobs: int, lease: float, sweep: int, cwd: Path) -> None:
    """Run the dreams and extractions that the memory server has queued.

    Start as many workers as you like, on any machine that reaches the database. If one dies, another takes over its
    dream. Keys of models come from the settings of the worker. Without --dsn it uses the PostgreSQL that
    `reverie serve` starts on this machine.
    """
    where = find_database(cwd, dsn, dsn_file)
    from reverie.server.worker import WorkerOptions, run_worker

    with started(where) as running:
        options = WorkerOptions(running, where.home / "server" / "dreams", jobs, lease, sweep)
        run_worker(options, lambda: click.echo("Worker ready (Ctrl-C stops it)"))
