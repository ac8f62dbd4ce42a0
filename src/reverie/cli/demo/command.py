"""`reverie demo`: three days with an agent in under a minute, in its own folder, without a key or a network.

Only the user is invented: the offline mind answers, the tools run, the layers work on real files. A meter shows what
the same requests would cost at a vendor.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import examples

if TYPE_CHECKING:
    from reverie.cli.demo.story import DemoRun
    from reverie.cli.demo.view import DemoView
    from reverie.cli.event_loop import CommandSignals


@examples("reverie demo", "reverie demo --keep", "reverie demo --svg demo.svg")
@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the folder with project, memory and transcripts, and print its path.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Also write an animated picture.")
@click.option("--no-chat", is_flag=True, help="Do not open a chat after the demo.")
@click.option("--fast", is_flag=True, help="Do not type or pause on the terminal; show each line at once.")
def command(keep: bool, svg: Path | None, no_chat: bool, fast: bool) -> int:
    """Show a demo: three days of work with an agent, without an API key or a network.

    The offline mind answers: built-in rules instead of a model. A large result goes to disk, notes appear, the window
    fills and is compacted, the user corrects the agent, the correction becomes a memory, the next session knows it, a
    dream tidies up memory and is undone. Every turn shows the window, the cache and the cost. On a terminal, a chat in
    the same folder opens after the demo. Your own files and sessions do not change.
    """
    import atexit
    import shutil
    import tempfile

    from reverie.cli.event_loop import run_async
    from reverie.cli.output import can_ask
    from reverie.regular_files import refuse_special

    if svg is not None:
        refuse_special(svg)
    # The name has a fixed length: paths are part of the prompts and change the figures.
    folder = Path(tempfile.mkdtemp(prefix="reverie-demo-")).resolve()
    if not keep:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # at the end no thread writes there any more
    code = run_async(lambda signals: _play(signals, folder, keep, svg, fast))
    if code == 0 and not no_chat and svg is None and can_ask():
        _open_chat(folder)
    return code


async def _play(signals: CommandSignals, folder: Path, keep: bool, svg: Path | None, fast: bool) -> int:
    from reverie.cli.demo.metered_model import PRICED_AS, WINDOW, write_catalogue
    from reverie.cli.demo.project import write_project
    from reverie.cli.demo.story import DemoRun, play
    from reverie.cli.demo.view import DemoView
    from reverie.cli.output import Paint, columns, get_paint
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
    on_terminal = svg is None and sys.stdout.isatty()
    view = DemoView(Paint(False) if svg else get_paint(), live=on_terminal and not fast)
    if on_terminal:
        view.columns = min(view.columns, columns())
    run = DemoRun(folder, settings, view, signals, Meter(Catalogue.load((catalogue,))))
    view.line(("Reverie", "bold"), (": a memory for agents. No key, no network: the offline mind answers.", ""))
    view.line((f"Window: {WINDOW // 1000}k tokens. Cost: as {PRICED_AS} would bill the same requests.", "dim"))
    view.gap(0.8)
    await play(run)
    _show_totals(run, view)
    if svg is not None:
        from reverie.cli.demo.view import draw_animation

        svg.parent.mkdir(parents=True, exist_ok=True)
        svg.write_text(draw_animation(view.shown), encoding="utf-8")
        click.echo(f"Drawn: {svg}")
    _show_ending(run, time.monotonic() - began, keep)
    return 0


def _env(folder: Path) -> dict[str, str]:
    """An environment without the user's settings, keys and flags."""
    return {"HOME": str(folder), "REVERIE_HOME": str(folder / "home")}


def _show_totals(run: DemoRun, view: DemoView) -> None:
    from reverie.cli.output import format_tokens, plural
    from reverie.context.ledger import total

    beside = [one for one in run.entries if one.purpose != "main"]
    whole = run.totals
    counts = ((run.sessions, "session"), (run.turns, "turn"), (run.calls, "call"))
    view.title("The ledger", ", ".join(plural(*count) for count in counts))
    of_main = len(run.entries) - len(beside)
    view.entry("requests", f"{of_main} of the conversation, {len(beside)} of its forks")
    view.entry("prompts", f"{format_tokens(whole.usage.prompt)} tokens, {whole.hit_rate:.0%} read from the cache")
    view.entry("forks", f"{total(beside).hit_rate:.0%} of their prompts came from the conversation's cache")
    view.entry("cost", f"${whole.cost:.3f} with the cache, ${whole.uncached:.3f} without it", "bold")
    if run.spared:
        kept = ", ".join(f"{layer} {format_tokens(count)}" for layer, count in sorted(run.spared.items()))
        view.entry("kept out", f"tokens that layers kept out of later requests: {kept}")
    view.gap()


def _show_ending(run: DemoRun, took: float, keep: bool) -> None:
    from reverie.cli.output import format_seconds

    if keep:
        click.echo(f"Played in {format_seconds(took)}. Kept: {run.folder}")
        click.echo(f"  REVERIE_HOME={run.folder / 'home'} reverie sessions list --cwd {run.project}")
        click.echo(f"  transcript: {run.transcript}")
    else:
        click.echo(f"Played in {format_seconds(took)} in a temporary folder; --keep keeps it.")
        click.echo("Your turn: run `reverie chat` in one of your projects.")


def _open_chat(folder: Path) -> None:
    import os
    import signal
    import subprocess

    click.echo()
    try:
        click.prompt("Enter opens a chat there; Ctrl-D ends", default="", show_default=False, prompt_suffix=" ")
    except click.Abort:
        click.echo()
        return
    env = {name: value for name, value in {**os.environ}.items() if not name.startswith("REVERIE_")} | _env(folder)
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)  # Ctrl-C is for the chat
    try:
        chat = [sys.executable, "-m", "reverie", "chat", "--model", "embedded"]
        subprocess.run(chat, cwd=folder / "ferry-times", env=env)
    finally:
        signal.signal(signal.SIGINT, before)
