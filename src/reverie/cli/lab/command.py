"""`reverie lab`: measurements on recorded work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from reverie.cli.lab.learning import dream, extraction, recall
from reverie.cli.options import examples, json_option
from reverie.cli.output import answer, show_progress

F = TypeVar("F", bound=Callable[..., Any])


@examples("reverie lab tokens ~/.claude/projects --json")
@click.group(name="lab")
def command() -> None:
    """Measure Reverie on recorded work."""


for measurement in (recall, extraction, dream):
    command.add_command(measurement)


def _files(metavar: str) -> Callable[[F], F]:
    return click.argument("paths", metavar=metavar, nargs=-1, required=True, type=click.Path(path_type=Path))


_AT_HELP = "Where to cut sessions without a compaction, in tokens."
_cut_option = click.option("--at", default=100_000, show_default=True, type=click.IntRange(min=1), help=_AT_HELP)


@examples("reverie lab tokens ~/.claude/projects/my-project")
@command.command("tokens")
@_files("DIR...")
@json_option
def tokens(paths: tuple[Path, ...], as_json: bool) -> None:
    """Measure the estimate of token growth on Claude Code transcripts.

    Compares the fixed rule with the estimate that calibrates itself from earlier responses, over stretches of at least
    10,000 real tokens.

    Exit codes: 0 done, 2 there is nothing to measure.
    """
    from reverie.lab.tokens import measure_folder, summary, table

    sessions = measure_folder(paths)
    answer(as_json, summary(sessions), table(sessions))


@examples("reverie lab startup --runs 31")
@command.command("startup")
@click.option("--runs", default=15, show_default=True, type=click.IntRange(min=1), help="Runs per command.")
@json_option
def startup(runs: int, as_json: bool) -> None:
    """Measure how long commands take to start, compared with Python alone.

    Runs `python -c pass`, `reverie --version` and `reverie sessions list` in turn and compares the medians.
    """
    from reverie.lab.startup import measure_startup

    found = measure_startup(runs)
    answer(as_json, found.summary(), found.table())


@examples("reverie lab billing")
@command.command("billing")
@json_option
def billing(as_json: bool) -> None:
    """Measure how fast the simulator bills a session of 200 rounds and 150,000 tokens."""
    from reverie.lab.billing import measure_billing

    found = measure_billing()
    text = f"{found.rounds} rounds up to {found.tokens:,} tokens billed in {found.seconds:.2f} s"
    answer(as_json, found.summary(), f"{text}; {found.hit_rate:.1%} read from the cache")


@examples("reverie lab survival ~/.claude/projects/my-project/*.jsonl --json")
@command.command("survival")
@_files("FILES...")
@_cut_option
@json_option
def survival(paths: tuple[Path, ...], at: int, as_json: bool) -> None:
    """Measure what survives a compaction, on recorded sessions.

    At each compaction, takes the files, identifiers, requests and failed commands that the session used again later.
    Shows how much of it is in the summary of the recording, in a list of the last ten files, and in the summary that
    Reverie writes without a model.
    """
    from reverie.lab.survival.run import measure, summary, table

    compacted = measure(paths, at)
    answer(as_json, summary(compacted), table(compacted))


@examples("reverie lab forks --children 4 --json")
@command.command("forks")
@click.option("--children", default=8, show_default=True, type=click.IntRange(1, 10), help="Forks of one message.")
@click.option("--tokens", default=100_000, show_default=True, type=click.IntRange(1_000, 140_000), help="Its length.")
@json_option
def forks(children: int, tokens: int, as_json: bool) -> None:
    """Measure what forks cost, compared with new agents that get the same context.

    A session against the simulator reads files until the conversation is long, then forks. Costs are in tokens of
    uncached input. The first fork pays for the last message, the others only for their own instruction.
    """
    from reverie.lab.forks import measure_forks, table

    found = measure_forks(children, tokens)
    answer(as_json, found.summary(), table(found))


@examples("reverie lab mind ~/.claude/projects/my-project/*.jsonl")
@command.command("mind")
@_files("FILES...")
@_cut_option
@json_option
def mind(paths: tuple[Path, ...], at: int, as_json: bool) -> None:
    """Measure the notes and summaries of the offline mind, on recorded sessions.

    At each compaction, shows how long writing them takes, and whether they equal the text that code writes from the
    same transcript (`reverie lab survival` measures that text).
    """
    from reverie.lab.mind import measure, summary, table

    written = measure(paths, at)
    answer(as_json, summary(written), table(written))


@examples(
    "reverie lab replay ~/.claude/projects/my-project/*.jsonl --policy reverie --plot costs.png",
    "reverie lab replay ~/.claude/projects/my-project/*.jsonl --window 64000",
)
@command.command("replay")
@_files("FILES...")
@click.option("--policy", "names", metavar="NAME", multiple=True, help="Only this policy. Repeatable.")
@click.option("--prefix-tokens", default=8_000, show_default=True, type=click.IntRange(min=0), help="System and tools.")
@click.option("--window", default=200_000, show_default=True, type=click.IntRange(min=8_000), help="Window in tokens.")
@click.option(
    "--plot", "picture", metavar="FILE", type=click.Path(path_type=Path), help="Also write a chart (.png, .svg)."
)
@json_option
def replay(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    prefix_tokens: int,
    window: int,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Replay recorded sessions and compare the cost of context policies.

    The real layers prepare each request at its recorded time, and the simulator bills it. A policy that removes content
    which the session needs later pays for reading it again. The cost of notes is shown separately. A small --window
    shows what happens when the window is full. Policies: resend, cached, summarise, langchain, server, time, economic,
    summary, notes, reverie.
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
        show_progress(f"replayed {done} of {of}: {name[:36]:<36}", ends_line=done == of)

    click.echo(f"replaying {len(sessions)} sessions under {len(policies)} policies", err=True)
    found = replay_all(sessions, policies, prefix_tokens=prefix_tokens, window=window, progress=progress)
    if picture is not None:
        draw(found, picture)
    answer(as_json, summary(found, prefix_tokens, window), table(found))


@examples("reverie lab overhead --json")
@command.command("overhead")
@json_option
def overhead(as_json: bool) -> None:
    """Measure how long preparing a request takes, compared with LangChain's middlewares.

    Uses histories of 20,000, 80,000 and 160,000 tokens and all layers of a session.
    """
    from reverie.lab.overhead import measure_overhead, summary, table

    found = measure_overhead()
    answer(as_json, summary(found), table(found))
