"""`reverie lab`: measurements on recorded work. Each sub-command loads what it measures only when it is run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from reverie.cli.lab.dream import dream
from reverie.cli.lab.extraction import extraction
from reverie.cli.lab.forks import forks
from reverie.cli.lab.mind import mind
from reverie.cli.lab.recall import recall
from reverie.cli.screen import CLEAR_LINE


@click.group(name="lab")
def command() -> None:
    """Measure Reverie on recorded work.

    \b
    Example:
      reverie lab tokens ~/.claude/projects --json
    """


@command.command("tokens")
@click.argument("paths", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def tokens(paths: tuple[Path, ...], as_json: bool) -> None:
    """Measure how well token growth is estimated, on Claude Code transcripts.

    Over stretches of at least 10,000 real tokens: the fixed rule, and the estimate that calibrates itself from the
    responses before the stretch. Exit code 2 if there is nothing to measure.

    \b
    Example:
      reverie lab tokens ~/.claude/projects/my-project
    """
    from reverie.lab.tokens import measure_folder, summary, table

    sessions = measure_folder(paths)
    figures = summary(sessions)
    click.echo(json.dumps(figures) if as_json else table(sessions))


@command.command("startup")
@click.option("--runs", default=15, show_default=True, type=click.IntRange(min=1), help="Runs of each command.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def startup(runs: int, as_json: bool) -> None:
    """Measure how long commands take to start, against the bare interpreter.

    Starts `python -c pass`, `reverie --version` and `reverie sessions list` in turn and compares the medians.

    \b
    Example:
      reverie lab startup --runs 31
    """
    from reverie.lab.startup import measure_startup

    found = measure_startup(runs)
    if as_json:
        click.echo(json.dumps(found.summary()))
        return
    click.echo(f"python -c pass         {found.bare_ms:7.1f} ms")
    click.echo(f"reverie --version      {found.version_ms:7.1f} ms   {found.version_ms / found.bare_ms:5.2f}×")
    click.echo(f"reverie sessions list  {found.sessions_ms:7.1f} ms   {found.sessions_ms / found.bare_ms:5.2f}×")


@command.command("billing")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def billing(as_json: bool) -> None:
    """Measure how fast the simulator bills a session of 200 rounds and 150,000 tokens, in process.

    \b
    Example:
      reverie lab billing
    """
    from reverie.lab.billing import measure_billing

    found = measure_billing()
    text = f"{found.rounds} rounds up to {found.tokens:,} tokens billed in {found.seconds:.2f} s"
    click.echo(json.dumps(found.summary()) if as_json else f"{text}; {found.hit_rate:.1%} read from the cache")


@command.command("survival")
@click.argument("paths", metavar="FILES...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--at",
    default=100_000,
    show_default=True,
    type=click.IntRange(min=1),
    help="Tokens at which a session that was never compacted is cut.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def survival(paths: tuple[Path, ...], at: int, as_json: bool) -> None:
    """Measure what survives a compaction, on recorded sessions.

    At each compaction: the files, identifiers, requests and failed commands that the rest of the session used again,
    and how much of that still stands in the recording's own summary, in a list of its last ten files, and in what
    Reverie writes without a model.

    \b
    Example:
      reverie lab survival ~/.claude/projects/my-project/*.jsonl --json
    """
    from reverie.lab.survival.run import measure, summary, table

    compacted = measure(paths, at)
    click.echo(json.dumps(summary(compacted)) if as_json else table(compacted))


command.add_command(recall)
command.add_command(extraction)
command.add_command(dream)
command.add_command(forks)
command.add_command(mind)


@command.command("replay")
@click.argument("files", metavar="FILES...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--policy", "names", metavar="NAME", multiple=True, help="Only this policy (may be given again).")
@click.option("--prefix-tokens", default=8_000, show_default=True, type=click.IntRange(min=0), help="System and tools.")
@click.option("--window", default=200_000, show_default=True, type=click.IntRange(min=8_000), help="Tokens of context.")
@click.option("--plot", "picture", metavar="FILE", type=click.Path(path_type=Path), help="Also draw it (.png, .svg).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def replay(
    files: tuple[Path, ...],
    names: tuple[str, ...],
    prefix_tokens: int,
    window: int,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Replay recorded sessions and compare what policies for the context would have cost.

    Each request is prepared by the real layers at the time it was recorded and billed by the simulator's rules. A
    policy that took content away which the session used afterwards pays for reading it again. What notes cost is
    stated beside it. A small --window shows what happens when it is full. Policies: resend, cached, summarise,
    langchain, server, time, economic, summary, notes, reverie.

    \b
    Examples:
      reverie lab replay ~/.claude/projects/my-project/*.jsonl --policy reverie --plot costs.png
      reverie lab replay ~/.claude/projects/my-project/*.jsonl --window 64000
    """
    from reverie.lab.plot import check_plot, draw
    from reverie.lab.replay.policies import chosen
    from reverie.lab.replay.recorded import load
    from reverie.lab.replay.report import replay_all, summary, table
    from reverie.lab.replay.setting import check_room

    policies = chosen(names)
    check_room(prefix_tokens, window)
    if picture is not None:
        check_plot(picture)
    sessions = load(files)

    def progress(done: int, of: int, name: str) -> None:
        click.echo(f"{CLEAR_LINE}replayed {done} of {of}: {name[:36]:<36}", nl=done == of, err=True)

    click.echo(f"replaying {len(sessions)} sessions under {len(policies)} policies", err=True)
    found = replay_all(sessions, policies, prefix_tokens=prefix_tokens, window=window, progress=progress)
    if picture is not None:
        draw(found, picture)
    click.echo(json.dumps(summary(found, prefix_tokens, window)) if as_json else table(found))


@command.command("overhead")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def overhead(as_json: bool) -> None:
    """Measure what preparing a request costs in time, beside LangChain's middlewares on the same history.

    At 20,000, 80,000 and 160,000 tokens of history: all layers of a session, up to the request handed to the model.

    \b
    Example:
      reverie lab overhead --json
    """
    from reverie.lab.overhead import measure_overhead, summary, table

    found = measure_overhead()
    click.echo(json.dumps(summary(found)) if as_json else table(found))
