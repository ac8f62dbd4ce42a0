"""`reverie lab`: measurements on recorded work. Each sub-command loads what it measures only when it is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from reverie.cli.lab.learning import dream, extraction, recall
from reverie.cli.options import json_option
from reverie.cli.output import answer
from reverie.cli.screen import CLEAR_LINE

F = TypeVar("F", bound=Callable[..., Any])


@click.group(name="lab")
def command() -> None:
    """Measure Reverie on recorded work.

    \b
    Example:
      reverie lab tokens ~/.claude/projects --json
    """


for measurement in (recall, extraction, dream):
    command.add_command(measurement)


def _files(metavar: str) -> Callable[[F], F]:
    return click.argument("paths", metavar=metavar, nargs=-1, required=True, type=click.Path(path_type=Path))


_cut_option = click.option(
    "--at",
    default=100_000,
    show_default=True,
    type=click.IntRange(min=1),
    help="Tokens at which a session that was never compacted is cut.",
)


@command.command("tokens")
@_files("DIR...")
@json_option
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
    answer(as_json, summary(sessions), table(sessions))


@command.command("startup")
@click.option("--runs", default=15, show_default=True, type=click.IntRange(min=1), help="Runs of each command.")
@json_option
def startup(runs: int, as_json: bool) -> None:
    """Measure how long commands take to start, against the bare interpreter.

    Starts `python -c pass`, `reverie --version`, `reverie sessions list` and `reverie remember` in turn and compares
    the medians.

    \b
    Example:
      reverie lab startup --runs 31
    """
    from reverie.lab.startup import measure_startup

    found = measure_startup(runs)
    answer(as_json, found.summary(), found.table())


@command.command("billing")
@json_option
def billing(as_json: bool) -> None:
    """Measure how fast the simulator bills a session of 200 rounds and 150,000 tokens, in process.

    \b
    Example:
      reverie lab billing
    """
    from reverie.lab.billing import measure_billing

    found = measure_billing()
    text = f"{found.rounds} rounds up to {found.tokens:,} tokens billed in {found.seconds:.2f} s"
    answer(as_json, found.summary(), f"{text}; {found.hit_rate:.1%} read from the cache")


@command.command("survival")
@_files("FILES...")
@_cut_option
@json_option
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
    answer(as_json, summary(compacted), table(compacted))


@command.command("forks")
@click.option("--children", default=8, show_default=True, type=click.IntRange(1, 10), help="Forks of one message.")
@click.option(
    "--tokens", default=100_000, show_default=True, type=click.IntRange(1_000, 140_000), help="About how long it was."
)
@json_option
def forks(children: int, tokens: int, as_json: bool) -> None:
    """Measure what fork children cost, against as many fresh agents with the same context.

    A session over HTTP against the simulator reads files until the conversation is long, then forks itself. Costs are
    in tokens of fresh input. The first child pays for the message they were forked from, the others for their
    directive.

    \b
    Example:
      reverie lab forks --children 4 --json
    """
    from reverie.lab.forks import measure_forks, table

    found = measure_forks(children, tokens)
    answer(as_json, found.summary(), table(found))


@command.command("mind")
@_files("FILES...")
@_cut_option
@json_option
def mind(paths: tuple[Path, ...], at: int, as_json: bool) -> None:
    """Measure the embedded mind's notes and summaries on recorded sessions.

    At each compaction: how long it takes to write them, and whether they are what code writes from the same record,
    which is what `reverie lab survival` measures.

    \b
    Example:
      reverie lab mind ~/.claude/projects/my-project/*.jsonl
    """
    from reverie.lab.mind import measure, summary, table

    written = measure(paths, at)
    answer(as_json, summary(written), table(written))


@command.command("replay")
@_files("FILES...")
@click.option("--policy", "names", metavar="NAME", multiple=True, help="Only this policy (may be given again).")
@click.option("--prefix-tokens", default=8_000, show_default=True, type=click.IntRange(min=0), help="System and tools.")
@click.option("--window", default=200_000, show_default=True, type=click.IntRange(min=8_000), help="Tokens of context.")
@click.option("--plot", "picture", metavar="FILE", type=click.Path(path_type=Path), help="Also draw it (.png, .svg).")
@json_option
def replay(
    paths: tuple[Path, ...],
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
    from reverie.lab.replay.policies import choose_policies
    from reverie.lab.replay.recorded import check_room, load
    from reverie.lab.replay.report import replay_all, summary, table

    policies = choose_policies(names)
    check_room(prefix_tokens, window)
    if picture is not None:
        check_plot(picture)
    sessions = load(paths)

    def progress(done: int, of: int, name: str) -> None:
        click.echo(f"{CLEAR_LINE}replayed {done} of {of}: {name[:36]:<36}", nl=done == of, err=True)

    click.echo(f"replaying {len(sessions)} sessions under {len(policies)} policies", err=True)
    found = replay_all(sessions, policies, prefix_tokens=prefix_tokens, window=window, progress=progress)
    if picture is not None:
        draw(found, picture)
    answer(as_json, summary(found, prefix_tokens, window), table(found))


@command.command("overhead")
@json_option
def overhead(as_json: bool) -> None:
    """Measure what preparing a request costs in time, beside LangChain's middlewares on the same history.

    At 20,000, 80,000 and 160,000 tokens of history: all layers of a session, up to the request handed to the model.

    \b
    Example:
      reverie lab overhead --json
    """
    from reverie.lab.overhead import measure_overhead, summary, table

    found = measure_overhead()
    answer(as_json, summary(found), table(found))
