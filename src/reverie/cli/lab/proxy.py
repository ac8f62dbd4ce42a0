"""`reverie lab proxy`: measures what the proxy saves on recorded sessions, and how long it takes."""

from __future__ import annotations

from pathlib import Path

import click

from reverie.cli.options import examples, json_option
from reverie.cli.output import answer, show_progress, warn

_SETS = (Path("../shared/data/transcripts"), Path("tests/data/samples/transcripts"))
"""Where recorded sessions are, if none are named: beside the project, and in it."""
_HEADROOM_HELP = "The program headroom, to send the same traffic through it.  [default: that of `make integration`]"


@examples(
    "reverie lab proxy ~/.claude/projects/my-project --json",
    "reverie lab proxy --headroom .venv-clients/headroom/bin/headroom",
    "reverie lab proxy --latency",
)
@click.command("proxy")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--latency", is_flag=True, help="Measure how much time the proxy adds to a request of 100,000 tokens.")
@click.option("--runs", default=31, show_default=True, type=click.IntRange(min=3), help="Requests, with --latency.")
@click.option("--headroom", "other", metavar="FILE", type=click.Path(path_type=Path), help=_HEADROOM_HELP)
@click.option("--alone", is_flag=True, help="Without headroom.")
@json_option
def proxy(paths: tuple[Path, ...], latency: bool, runs: int, other: Path | None, alone: bool, as_json: bool) -> None:
    """Send recorded sessions through the proxy to the simulator, and compare the bill with that of direct requests.

    Every recorded round is a real request over HTTP, at its recorded time, once directly, once through `reverie proxy`,
    and once through headroom if that is installed. The simulator gives the recorded answer. If that answer used a text
    which is not in the request, the model reads it again first, and that request is billed too. PATH is a transcript,
    or a folder: then all transcripts in it and below it are sent. Without PATH, the sessions of this repository are.

    With --latency, no session is sent: the proxy is compared with one that only parses and writes JSON.

    Exit codes: 0: the aims hold (at most .78 of direct in total, no session above 1.01; at most 3 times the time); 1:
    they do not; 2: wrong usage.
    """
    if latency:
        from reverie.lab.proxy.latency import AIM, measure_latency

        found = measure_latency(runs=runs)
        answer(as_json, found.summary(), found.table())
        raise SystemExit(0 if found.ratio <= AIM else 1)

    from reverie.lab.proxy.headroom import PROGRAM
    from reverie.lab.proxy.run import holds, measure, summary, table
    from reverie.lab.replay.recorded import load

    program = None if alone else other or PROGRAM
    if program is not None and not program.is_file():
        warn(f"headroom is not in {program}, so it is left out; `make .venv-clients/headroom/.installed` installs it.")
        program = None
    sessions = load(paths or [next((one for one in _SETS if one.is_dir()), _SETS[-1])])

    def progress(done: int, of: int, name: str) -> None:
        show_progress(f"sent {done} of {of}: {name[:90]:<36}", ends_line=done == of or " is left out: " in name)

    sent = measure(sessions, other=program, progress=progress)
    answer(as_json, summary(sent), table(sent))
    raise SystemExit(0 if holds(sent) else 1)
