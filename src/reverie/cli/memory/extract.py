"""`reverie extract`: writes memories from recorded conversations, turn by turn."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.options import examples, folder_options, load_places
from reverie.cli.output import answer, can_ask, one_line, plural, say, say_all, show_progress, warn
from reverie.errors import UserError
from reverie.layers.l5_extraction.transcripts import ExtractionReport, extract_all, transcripts_in
from reverie.models.registry import EMBEDDED, default_model_name, model_access
from reverie.session.learner import open_learner
from reverie.session.learning_followed import count_new, followed_model, learn_from_followed
from reverie.settings import Settings


@examples(
    "reverie extract ~/.claude/projects/-home-me-shop --dry-run",
    "reverie extract ~/.claude/projects/-home-me-shop --model anthropic:claude-haiku-4-5",
    "reverie extract --new --dry-run",
)
@agents_may(AgentsMay.NOTHING, reads=lambda given: given["dry_run"] or (given["new"] and not given["paths"]))
@click.command("extract")
@click.argument("paths", metavar="[TRANSCRIPT]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--new", is_flag=True, help="Learn from all followed sessions what was not learnt yet.")
@click.option(
    "-m",
    "--model",
    metavar="NAME",
    help="The model that extracts.  [default: `model.name`; with --new `connect.model`]",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written, without writing it.")
@click.option("--again", is_flag=True, help="Start again at the beginning of every transcript.")
@click.option("-y", "--yes", is_flag=True, help="With --new: do not ask before a model is used that may cost money.")
@folder_options
def command(
    paths: tuple[Path, ...],
    new: bool,
    model: str | None,
    dry_run: bool,
    again: bool,
    yes: bool,
    as_json: bool,
    cwd: Path,
) -> int:
    """Write memories from recorded sessions, as a session itself does after each turn.

    TRANSCRIPT is a transcript of Reverie, Claude Code, Codex or the pi coding agent, or a folder of them. The command
    reads them turn by turn, oldest first. Memories go to the memory of this folder. Each memory file that is written is
    one version and can be undone. After an interruption, the same command continues where it stopped. Turns that the
    session itself has extracted are skipped.

    `--new` needs no TRANSCRIPT: it reads all sessions that `reverie sessions follow` has copied. Their memories go to
    the project in which each session was recorded. The model is `connect.model`, by default the offline mind, which
    costs nothing. Before another model is used, also with --dry-run, the command says how many turns there are and
    asks; without a terminal it needs --yes.

    Exit codes: 0: done; 1: a run failed; 4: storage error; 5: the model could not answer. If you run the command again,
    it repeats what failed.
    """
    if new and (paths or again):
        raise click.UsageError("--new reads the followed sessions; do not give a TRANSCRIPT or --again with it.")
    if not new and not paths:
        raise click.UsageError("Give a transcript, a folder of transcripts, or --new.")
    files = transcripts_in(paths)
    if not new and not files:
        raise UserError(f"There are no transcripts (.jsonl files) in {', '.join(map(str, paths))}.")
    live = sys.stderr.isatty() and not as_json

    def progress(text: str) -> None:
        if live:
            show_progress(one_line(text)[:100])
        elif not as_json:
            say(text, err=True)

    at = cwd.resolve()
    settings = load_places(at)[0]
    name = model or (
        followed_model(settings) if new else settings.model.name or default_model_name(model_access(settings))
    )
    if new and not yes and not _may_use(name, settings):
        return 1
    if not as_json:
        say(f"The model is {name}.", err=True)
    if new:
        work = learn_from_followed(settings, model=name, dry_run=dry_run, progress=progress)
    else:
        work = extract_all(
            files,
            at,
            lambda settings, memory, known_as: open_learner(at, settings, memory, model=model, addressed=known_as),
            dry_run=dry_run,
            again=again,
            progress=progress,
        )
    report = asyncio.run(work)
    if live:
        show_progress("")
    answer(as_json, {**report.to_json(), "model": name})
    if not as_json:
        _show(report, dry_run)
    return report.exit_code


def _may_use(model: str, settings: Settings) -> bool:
    """Asks before a model gets all new turns that may cost money. Raises `UserError` if nobody can answer."""
    if model.partition(":")[0] in _FREE:
        return True
    sessions, turns = count_new(settings)
    if not turns:
        return True
    what = f"{plural(turns, 'turn')} of {plural(sessions, 'session')} would go to {model}, which may cost money."
    if not can_ask():
        raise UserError(
            f"{what} Nothing was sent: give --yes if you want that, or `-m {EMBEDDED}`, which costs nothing."
        )
    return click.confirm(f"{what} Send them?", default=False)


_FREE = (EMBEDDED, "scripted")
_WHOSE = {
    "agent": "from agents",
    "hook": "from hooks",
    "imported": "from another program",
    "notes": "from notes",
    "page": "from web pages",
    "plan": "from plans",
    "summary": "from summaries",
    "team": "from teammates",
}


def _show(report: ExtractionReport, dry_run: bool) -> None:
    for change in report.changes:
        say(f"{change.verb} {change.file}  ({change.transcript}, {change.day})")
    if dry_run:
        for name, lines in report.diffs.items():
            say_all(["", name, *(f"  {line}" for line in lines)])
    if report.changes:
        say()
    did = "would be written" if dry_run else "written"
    counted = f"{plural(report.turns, 'turn')} of {plural(report.transcripts, 'transcript')} read"
    figures = f"{plural(len({change.file for change in report.changes}), 'memory', 'memories')} {did}"
    say(f"{counted}, {figures}; {plural(report.passed_over, 'turn')} skipped (already read).")
    sent = sum(int(value) for key, value in report.tokens.items() if key.endswith("input_tokens"))
    if sent:
        cost = f", ${report.cost_usd:.4f}" if report.cost_usd else ""
        say(f"{sent:,} tokens sent, {int(report.tokens.get('output_tokens', 0)):,} written{cost}.")
    if report.refused:
        kinds = Counter(one.rpartition(": ")[2] for one in report.refused)
        say(f"left out: {', '.join(f'{count} × {kind}' for kind, count in sorted(kinds.items()))}")
    if others := {origin: size for origin, size in report.not_yours.items() if size}:
        sizes = ", ".join(
            f"{size:,} characters {_WHOSE.get(origin, origin)}" for origin, size in sorted(others.items())
        )
        say(f"Ignored, because you did not write it: {sizes}.")
    if report.failures:
        warn(f"{plural(len(report.failures), 'run')} failed: {report.failures[-1]}")
    if report.stopped:
        warn(f"Stopped: {report.stopped} The same command continues from there.")
