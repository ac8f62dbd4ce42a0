"""`reverie demo`: three days with an agent in under a minute, in a folder of its own, with no key and no network.

Everything is real but the person: the embedded mind answers, the tools run, the layers work on files that can be kept
and looked at. What it would cost at a vendor's is metered beside it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import examples

if TYPE_CHECKING:
    from reverie.cli.demo.story import Stage
    from reverie.cli.demo.view import DemoView
    from reverie.cli.running import Signals


@click.command("demo", epilog=examples("reverie demo", "reverie demo --keep", "reverie demo --svg demo.svg"))
@click.option("--keep", is_flag=True, help="Keep the folder with project, memory and transcripts, and say where it is.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Also draw it as an animated picture.")
@click.option("--no-chat", is_flag=True, help="On a terminal, end after the story instead of opening a chat there.")
def command(keep: bool, svg: Path | None, no_chat: bool) -> int:
    """Play three days with an agent, without a key or a network.

    A big result goes to disk, notes appear, the window fills and is compacted, a correction is learnt, the next session
    knows it, a dream tidies memory up and is undone; with the window, the cache and the cost beside every turn. On a
    terminal a chat in the same folder follows. Your own files and sessions are not touched.
    """
    import shutil
    import tempfile

    from reverie.cli.output import can_ask
    from reverie.cli.running import run_async
    from reverie.regular_files import refuse_special

    if svg is not None:
        refuse_special(svg)
    # Names of one length: paths are part of the prompts, and so of the figures that are drawn.
    folder = Path(tempfile.mkdtemp(prefix="reverie-demo-")).resolve()
    try:
        code = run_async(lambda signals: _play(signals, folder, keep, svg))
        if code == 0 and not no_chat and svg is None and can_ask():
            _chat(folder)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return code


async def _play(signals: Signals, folder: Path, keep: bool, svg: Path | None) -> int:
    from reverie.cli.demo.mind import PRICED_AS, WINDOW, write_catalogue
    from reverie.cli.demo.project import write_project
    from reverie.cli.demo.story import Stage, play
    from reverie.cli.demo.view import DemoView
    from reverie.cli.output import Paint, columns, painted
    from reverie.models.catalogue import Catalogue
    from reverie.settings import load_settings
    from reverie.simulator import Meter

    began = time.monotonic()
    project = folder / "ferry-times"
    project.mkdir()
    write_project(project)
    catalogue = write_catalogue(folder)
    overrides = {"catalogue.files": [str(catalogue)]}
    settings = load_settings(project, env=_env(folder), overrides=overrides, managed_dir=folder / "managed")
    view = DemoView(Paint(False) if svg else painted(), live=svg is None and sys.stdout.isatty())
    if view.live:
        view.columns = min(view.columns, columns())
    stage = Stage(folder, settings, view, signals, Meter(Catalogue.load((catalogue,))))
    view.line(("Reverie", "bold"), (": a memory for agents. No key, no network; the embedded mind answers.", ""))
    view.line((f"Window {WINDOW // 1000}k tokens; cost as {PRICED_AS} would bill the same requests.", "dim"))
    view.gap(0.8)
    await play(stage)
    _totals(stage, view)
    if svg is not None:
        from reverie.cli.demo.view import animated

        svg.parent.mkdir(parents=True, exist_ok=True)
        svg.write_text(animated(view.shown), encoding="utf-8")
        click.echo(f"Drawn: {svg}")
    _ending(stage, time.monotonic() - began, keep)
    return 0


def _env(folder: Path) -> dict[str, str]:
    """Nobody's settings, keys or flags: the demo is the same for everyone."""
    return {"HOME": str(folder), "REVERIE_HOME": str(folder / "home")}


def _totals(stage: Stage, view: DemoView) -> None:
    from reverie.cli.output import plural, tokens
    from reverie.context.ledger import total

    beside = [one for one in stage.booked if one.purpose != "main"]
    whole = stage.so_far
    counts = ((stage.sessions, "session"), (stage.turns, "turn"), (stage.calls, "call"))
    view.title("The ledger", ", ".join(plural(*count) for count in counts))
    of_main = len(stage.booked) - len(beside)
    view.entry("requests", f"{of_main} of the conversation, {len(beside)} of forks beside it")
    view.entry("prompts", f"{tokens(whole.usage.prompt)} tokens, {whole.hit_rate:.0%} read from the cache")
    view.entry("forks", f"{total(beside).hit_rate:.0%} of their prompts were the conversation's own cache")
    view.entry("cost", f"${whole.cost:.3f} with the cache, ${whole.uncached:.3f} without it", "bold")
    if stage.spared:
        kept = ", ".join(f"{layer} {tokens(count)}" for layer, count in sorted(stage.spared.items()))
        view.entry("kept out", f"tokens that layers kept out of later requests: {kept}")
    view.gap()


def _ending(stage: Stage, took: float, keep: bool) -> None:
    from reverie.cli.output import seconds

    if keep:
        click.echo(f"Played in {seconds(took)}. Kept: {stage.folder}")
        click.echo(f"  REVERIE_HOME={stage.folder / 'home'} reverie sessions list --cwd {stage.project}")
        click.echo(f"  transcript: {stage.transcript}")
    else:
        click.echo(f"Played in {seconds(took)} in a temporary folder; --keep keeps it.")
        click.echo("Your turn: `reverie chat` in a project of yours.")


def _chat(folder: Path) -> None:
    """A chat where the story was played, with what it left."""
    import os
    import signal
    import subprocess

    click.echo()
    try:
        click.prompt("Enter goes on in a chat there; Ctrl-D ends", default="", show_default=False, prompt_suffix=" ")
    except click.Abort:
        click.echo()
        return
    env = {name: value for name, value in {**os.environ}.items() if not name.startswith("REVERIE_")} | _env(folder)
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)  # Ctrl-C is the chat's, not ours
    try:
        chat = [sys.executable, "-m", "reverie", "chat", "--model", "embedded"]
        subprocess.run(chat, cwd=folder / "ferry-times", env=env)
    finally:
        signal.signal(signal.SIGINT, before)
