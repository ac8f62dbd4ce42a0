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
    from reverie.cli.event_loop import CommandSignals


@examples("reverie demo", "reverie demo --keep")
@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the folder with project, memory and transcripts, and print its path.")
@click.option("--no-chat", is_flag=True, help="Do not open a chat after the demo.")
@click.option("--fast", is_flag=True, help="Do not type or pause on the terminal; show each line at once.")
def command(keep: bool, no_chat: bool, fast: bool) -> int:
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

    # The name has a fixed length: paths are part of the prompts and change the figures.
    folder = Path(tempfile.mkdtemp(prefix="reverie-demo-")).resolve()
    if not keep:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # at the end no thread writes there any more
    code = run_async(lambda signals: _play(signals, folder, keep, fast))
    if code == 0 and not no_chat and can_ask():
        _open_chat(folder)
    return code


async def _play(signals: CommandSignals, folder: Path, keep: bool, fast: bool) -> int:
    from reverie.cli.demo.metered_model import PRICED_AS, WINDOW, write_catalogue
    from reverie.cli.demo.project import write_project
    from reverie.cli.demo.story import DemoRun, play
    from reverie.cli.demo.view import COLUMNS, DemoView
    from reverie.cli.output import format_seconds, get_paint, line_width
    from reverie.models.catalogue import Catalogue
    from reverie.settings import load_settings
    from reverie.simulator import Meter

    began = time.monotonic()
    catalogue = write_catalogue(folder)
    overrides = {"catalogue.files": [str(catalogue)]}
    project = write_project(folder)
    settings = load_settings(project, env=_env(folder), overrides=overrides, managed_dir=folder / "managed")
    view = DemoView(get_paint(), sys.stdout.isatty() and not fast, min(COLUMNS, line_width()))
    run = DemoRun(project, settings, view, signals, Meter(Catalogue.load((catalogue,))))
    view.line(f"{view.paint.bold('Reverie')}: a memory for agents. No key, no network: the offline mind answers.")
    view.line(view.paint.dim(f"Window: {WINDOW // 1000}k tokens. Cost: as {PRICED_AS} would bill the same requests."))
    view.gap(0.8)
    await play(run)
    _show_bill(run)
    view.line(f"Played in {format_seconds(time.monotonic() - began)} in {folder if keep else 'a temporary folder'}.")
    if keep:
        click.echo(f"  REVERIE_HOME={folder / 'home'} reverie sessions list --cwd {project}")
    else:
        view.line("--keep keeps it. Your turn: run `reverie chat` in one of your projects.")
    return 0


def _env(folder: Path) -> dict[str, str]:
    """An environment without the user's settings, keys and flags."""
    return {"HOME": str(folder), "REVERIE_HOME": str(folder / "home")}


def _show_bill(run: DemoRun) -> None:
    from reverie.cli.output import format_tokens
    from reverie.context.ledger import total

    view, whole = run.view, total(run.entries)
    forks = [entry for entry in run.entries if entry.purpose != "main"]
    view.title("The ledger", "all requests of the three days")
    view.line(f"  requests    {len(run.entries) - len(forks)} of the conversation, {len(forks)} of its forks")
    view.line(f"  prompts     {format_tokens(whole.usage.prompt)} tokens, {whole.hit_rate:.0%} read from the cache")
    view.line(f"  forks       {total(forks).hit_rate:.0%} of their prompts came from the conversation's cache")
    view.line(f"  cost        ${whole.cost:.3f} with the cache, ${whole.uncached:.3f} without it")
    view.gap()


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
