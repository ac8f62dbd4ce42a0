"""`reverie lab`: measurements on recorded work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reverie.cli.lab.learning import dream, extraction, recall, writes
from reverie.cli.lab.mcp import mcp
from reverie.cli.lab.proxy import proxy
from reverie.cli.lab.serve import serve
from reverie.cli.lab.timing import screen, startup, web
from reverie.cli.options import examples, json_option
from reverie.cli.output import answer, show_progress

if TYPE_CHECKING:
    from reverie.lab.questions.contexts import Cadence
    from reverie.lab.questions.run import Step

F = TypeVar("F", bound=Callable[..., Any])


@examples("reverie lab tokens ~/.claude/projects --json")
@click.group(name="lab")
def command() -> None:
    """Run benchmarks of Reverie, most of them on recorded sessions."""


for measurement in (recall, extraction, dream, writes, startup, screen, mcp, proxy, web, serve):
    command.add_command(measurement)


def _files(metavar: str) -> Callable[[F], F]:
    return click.argument("paths", metavar=metavar, nargs=-1, required=True, type=click.Path(path_type=Path))


_AT_HELP = "In sessions without a compaction, measure at this number of tokens."
_cut_option = click.option("--at", default=100_000, show_default=True, type=click.IntRange(min=1), help=_AT_HELP)


@examples("reverie lab tokens ~/.claude/projects/my-project")
@command.command("tokens")
@_files("PATH...")
@json_option
def tokens(paths: tuple[Path, ...], as_json: bool) -> None:
    """Measure how well Reverie estimates the number of tokens, on Claude Code transcripts.

    Compares two estimates with the numbers that the API reported: a fixed rule (4 bytes per token, 2 for JSON), and an
    estimate that is corrected after each response. Each session is cut into parts of at least 10,000 tokens, and each
    part is estimated. PATH is a transcript, or a folder: then all transcripts in it and below it are measured.

    Exit codes: 0: done; 2: wrong usage, or there is nothing to measure.
    """
    from reverie.lab.tokens import measure_folder, summary, table

    sessions = measure_folder(paths)
    answer(as_json, summary(sessions), table(sessions))


@examples("reverie lab hooks", "reverie lab hooks --runs 20 --prompts 100 --json")
@command.command("hooks")
@click.option("--runs", default=100, show_default=True, type=click.IntRange(min=1), help="Runs per event.")
@click.option("--prompts", default=1_000, show_default=True, type=click.IntRange(min=1), help="Prompts to send.")
@json_option
def hooks(runs: int, prompts: int, as_json: bool) -> None:
    """Measure how long the hooks of other agents take, and what many prompts leave behind.

    Runs hooks as Claude Code does, in a scratch home with 200 memories, and compares them with `python -c pass`. Then
    sends prompts and checks that no memory is given twice, the limits hold and no process is left over.

    Exit codes: 0: everything holds; 1: something does not; 2: wrong usage.
    """
    from reverie.lab.hooks import measure_hooks

    found = measure_hooks(runs, prompts, lambda n, of: show_progress(f"{n} of {of} prompts", ends_line=n == of))
    answer(as_json, found.summary(), found.table())
    if found.prompts.wrong:
        raise SystemExit(1)


@examples("reverie lab billing")
@command.command("billing")
@json_option
def billing(as_json: bool) -> None:
    """Measure how fast the simulator computes the costs of a conversation of 200 rounds."""
    from reverie.lab.billing import measure_billing

    found = measure_billing()
    text = f"{found.rounds} rounds up to {found.tokens:,} tokens billed in {found.seconds:.2f} s"
    answer(as_json, found.summary(), f"{text}; {found.hit_rate:.1%} read from the cache")


@examples("reverie lab survival ~/.claude/projects/my-project/*.jsonl --json")
@command.command("survival")
@_files("PATH...")
@_cut_option
@json_option
def survival(paths: tuple[Path, ...], at: int, as_json: bool) -> None:
    """Measure what survives a compaction, on recorded sessions.

    For each compaction, the command collects what the user asked for before it, and the files, identifiers and failed
    commands from before it that the session used again later. It shows how many of them are in the summary that the
    recorded session itself made, in the summary that Reverie writes without a model, and, for comparison, in a plain
    list of the last ten files that the session used. PATH is a transcript, or a folder: then all transcripts in it and
    below it are measured.
    """
    from reverie.lab.survival.run import measure, summary, table

    compacted = measure(paths, at)
    answer(as_json, summary(compacted), table(compacted))


@examples("reverie lab forks --children 4 --json")
@command.command("forks")
@click.option("--children", default=8, show_default=True, type=click.IntRange(1, 10), help="The number of forks.")
@click.option(
    "--tokens",
    default=100_000,
    show_default=True,
    type=click.IntRange(1_000, 140_000),
    help="The length of the conversation before the forks, in tokens.",
)
@json_option
def forks(children: int, tokens: int, as_json: bool) -> None:
    """Measure what forks cost, compared with new agents that get the same context.

    A fork is an agent whose request begins with the same bytes as the conversation, so that both share the cache. In
    this test, a session is connected to the simulator and reads files until its conversation is long. Then one message
    starts all forks. The unit of cost is the price of one uncached input token; a token that is read from the
    cache costs a fraction of it. The first fork pays for the last message, the others only for their own instruction.
    """
    from reverie.lab.forks import measure_forks, table

    found = measure_forks(children, tokens)
    answer(as_json, found.summary(), table(found))


@examples("reverie lab mind ~/.claude/projects/my-project/*.jsonl")
@command.command("mind")
@_files("PATH...")
@_cut_option
@json_option
def mind(paths: tuple[Path, ...], at: int, as_json: bool) -> None:
    """Measure the notes and summaries of the offline mind, on recorded sessions.

    The offline mind is the built-in rules that answer without a model. Layers 3 and 4 ask it for notes and a summary as
    they ask a model. They can also write both texts themselves, without asking a model or the offline mind (`reverie
    lab survival` measures these texts). For each compaction, the command shows how long the offline mind takes, and
    whether its notes and summary equal those that the layers write themselves. PATH is a transcript, or a folder: then
    all transcripts in it and below it are measured.
    """
    from reverie.lab.mind import measure, summary, table

    written = measure(paths, at)
    answer(as_json, summary(written), table(written))


@examples(
    "reverie lab replay ~/.claude/projects",
    "reverie lab replay ~/.claude/projects/my-project/*.jsonl --policy reverie --plot costs.png",
    "reverie lab replay ~/.claude/projects/my-project/*.jsonl --window 64000",
)
@command.command("replay")
@_files("PATH...")
@click.option("--policy", "names", metavar="NAME", multiple=True, help="Only this policy. Repeatable.")
@click.option(
    "--prefix-tokens",
    default=8_000,
    show_default=True,
    type=click.IntRange(min=0),
    help="The size of the system prompt and the tools, in tokens.",
)
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
    """Replay recorded sessions and compare what different context policies cost.

    A policy decides what stays in a request and what is cleared or summarised. Each request is prepared as in a real
    session, with a clock that shows the time at which it was recorded, and the simulator computes its cost. If a policy
    removes content that the session needs later, the cost of reading it again is added: one more request per result.
    Notes and summaries are part of the cost. A small --window shows what happens when the window is full. PATH is a
    transcript, or a folder: then all transcripts in it and below it are replayed.

    \b
    Policies:
      resend     send everything again, without a cache
      cached     prompt caching alone: nothing is removed, and the window has no limit
      summarise  when the window is full, a plain summary replaces the conversation
      langchain  LangChain's ContextEditingMiddleware with its defaults, if it is installed
      server     the server of the model clears old tool results (context_management)
      time       layer 2, but it clears old tool results only after a pause of an hour
      economic   layer 2: it clears old tool results when that saves money, or after such a pause
      summary    layer 4 alone: a summary, with facts from the conversation next to it
      notes      layers 3 and 4: notes of a model (notes.cadence = reference) replace the old part
      reverie    layers 1 to 4 with their defaults
      reverie-1m the same in a window of a million tokens, whatever --window says
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
        show_progress(f"replayed {done} of {of}: {name[:90]:<36}", ends_line=done == of or " is left out: " in name)

    left_out = "" if names or "langchain" in [one.name for one in policies] else " (without langchain: not installed)"
    click.echo(f"replaying {len(sessions)} sessions under {len(policies)} policies{left_out}", err=True)
    found = replay_all(sessions, policies, prefix_tokens=prefix_tokens, window=window, progress=progress)
    if picture is not None:
        draw(found, picture)
    answer(as_json, summary(found, prefix_tokens, window), table(found))


@examples("reverie lab thrash --window 32000 --json")
@command.command("thrash")
@click.option(
    "--window",
    "windows",
    multiple=True,
    type=click.IntRange(min=8_000),
    help="Only this window, in tokens. Repeatable.",
)
@json_option
def thrash(windows: tuple[int, ...], as_json: bool) -> None:
    """Measure whether clearing and compaction make an agent read the same files again and again.

    A scripted model works in a real session. It reads 10 to 200 files, and then it needs two to six other files in view
    at once: it reads those that are not, until all are. Other models work on such files for 5 or 20 rounds, talk so
    much that the window is compacted meanwhile, or read files again without a reason. Each file may be read once more.

    Exit codes: 0: all models finished in this way; 1: one of them did not; 2: wrong usage.
    """
    from reverie.lab.thrash import WINDOWS, measure_thrash, summary, table, thrash_cases

    def progress(done: int, of: int) -> None:
        show_progress(f"{done} of {of} models", ends_line=done == of)

    found = measure_thrash(list(thrash_cases(windows or WINDOWS)), progress)
    answer(as_json, summary(found), table(found))
    if not all(one.is_well for one in found):
        raise SystemExit(1)


@examples("reverie lab questions evals/questions.jsonl ~/.claude/projects --answers answers --model claude-sonnet-5-5")
@command.command("questions")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_files("PATH...")
@click.option(
    "--answers",
    "folder",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep every answer of the model here. A second run sends only what is missing.",
)
@click.option("-m", "--model", metavar="NAME", help="The model for all requests.  [default: from the settings]")
@click.option("--window", default=40_000, show_default=True, type=click.IntRange(min=8_000), help="Window in tokens.")
@click.option(
    "--compactions", default=1, show_default=True, type=click.IntRange(min=1), help="Ask after this many compactions."
)
@click.option(
    "--cadence",
    "cadences",
    multiple=True,
    type=click.Choice(["reference", "economic"]),
    help="Only this value of notes.cadence. Repeatable.",
)
@click.option(
    "--until",
    default="grades",
    show_default=True,
    type=click.Choice(["contexts", "answers", "grades"]),
    help="Stop after this step, for example to let others answer than those who wrote the notes.",
)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Requests at the same time.")
@json_option
def questions(
    file: Path,
    paths: tuple[Path, ...],
    folder: Path,
    model: str | None,
    window: int,
    compactions: int,
    cadences: tuple[Cadence, ...],
    until: Step,
    jobs: int,
    as_json: bool,
) -> None:
    """Ask a model about decisions in recorded sessions, after a compaction.

    Compares the two values of notes.cadence. FILE has one question per line: its session (the name of a transcript, or
    how the name starts), the question, and the points that a full answer makes. PATH is a transcript, or a folder with
    the transcripts. Each session is replayed in a real session with a small window until it is compacted. The recording
    answers, and the model writes notes and summaries. Then the model gets each question together with the compacted
    conversation. At the end it grades the answers without knowing which cadence they belong to.
    """
    from reverie.lab.questions.contexts import CADENCES
    from reverie.lab.questions.run import (
        QuestionPlan,
        find_sessions,
        measure,
        open_answers,
        read_questions,
        summary,
        table,
    )

    asked = read_questions(file)
    sessions = find_sessions(asked, paths)
    answers = open_answers(folder, model, jobs)
    answers.progress = lambda sent: show_progress(f"{sent} answers of the model", ends_line=True)
    plan = QuestionPlan(window, compactions, cadences or CADENCES, until)
    found = asyncio.run(measure(asked, sessions, answers, plan))
    answer(as_json, summary(found), table(found))


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


_SDK_HELP = "Only this SDK: anthropic, langchain, openai-agents, pydantic-ai or claude-agent. Repeatable."
_VARIANT_HELP = "Only runs with this: without, reverie, or a name in the second column of the table. Repeatable."


@examples("reverie lab adapters", "reverie lab adapters --only langchain --json")
@command.command("adapters")
@click.option("--only", "names", metavar="NAME", multiple=True, help=_SDK_HELP)
@click.option("--variant", "variants", metavar="NAME", multiple=True, help=_VARIANT_HELP)
@click.option("--keep", metavar="DIR", type=click.Path(path_type=Path, file_okay=False), help="Keep the scratch here.")
@json_option
def adapters(names: tuple[str, ...], variants: tuple[str, ...], keep: Path | None, as_json: bool) -> None:
    """Run one scripted agent in the SDKs of others, with Reverie and without, and compare the bills.

    The agent reads 110 files in 120 steps, three of them with 200 KB, over the simulator. It sees only what is in its
    requests: what it needs and does not see it reads again. In the middle its program is killed and started again, and
    a second conversation asks for a fact of the first. Without Reverie the window has a million tokens, with it 64,000.
    Next to them are the SDKs' own ways to keep a context small. An SDK that is not installed is left out:
    the extra `adapters` has all of them.

    Exit codes: 0: everything that must hold with Reverie holds; 1: something does not; 2: wrong usage.
    """
    from reverie.lab.adapters.report import summary, table
    from reverie.lab.adapters.run import cases, measure

    def progress(done: int, of: int, name: str) -> None:
        show_progress(f"{done} of {of} runs {name:<40}", ends_line=done == of)

    found = measure(cases(names, variants), progress, keep)
    figures = summary(found)
    answer(as_json, figures, table(found))
    if figures["wrong"]:
        raise SystemExit(1)
