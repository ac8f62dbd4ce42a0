"""`reverie web`: shows windows, costs, memories and dreams in a browser, on this machine only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import cwd_option, examples, load_places

if TYPE_CHECKING:
    from reverie.web.serving import Running


@examples("reverie web", "reverie web --port 8080 --no-open", "reverie web --read-only", "reverie web --link")
@click.command("web")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, show_default="any free one", help="Local port.")
@click.option("--read-only", is_flag=True, help="Show only: no button changes anything.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("--link", is_flag=True, help="Print the address of the web view that runs, and exit.")
@cwd_option
def command(port: int, read_only: bool, no_open: bool, link: bool, cwd: Path) -> None:
    """Show what memory does, in a browser.

    What fills a window, what each request cost, what is remembered and why, what dreams changed. The server listens on
    127.0.0.1 only, and every page needs the token in the address that is printed. Ctrl-C stops it.
    """
    from reverie.errors import UserError
    from reverie.web.serving import find_running

    settings, _places = load_places(cwd)
    running = find_running(settings.places.home)
    if link:
        if running is None:
            raise UserError("No web view runs. Start it with `reverie web`.")
        click.echo(running.link())
        return
    if running is not None:
        click.echo(f"The web view of this home already runs (process {running.pid}):")
        _tell(running, "/", no_open)
        return
    show(cwd, "/", port=port, read_only=read_only, no_open=no_open)


def show(cwd: Path, path: str, *, port: int = 0, read_only: bool = False, no_open: bool = False) -> None:
    """Opens a page in a browser: of the web view that runs, or of one that starts now and runs until Ctrl-C."""
    from reverie.runtime.loopback import listen
    from reverie.web.serving import find_running, serve
    from reverie.web.site import Site

    site = Site.open(cwd, read_only=read_only)
    running = find_running(site.settings.places.home)
    if running is not None:
        _tell(running, path, no_open)
        return
    listener = listen(port)
    try:
        serve(site, listener, lambda started: _tell(started, path, no_open, "Ctrl-C stops it."))
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()


def _tell(running: Running, path: str, no_open: bool, more: str = "") -> None:
    click.echo(f"  {running.link(path)}")
    if more:
        click.echo(more)
    if not no_open:
        import threading

        opening = threading.Thread(target=_open, args=(running, path), daemon=True)
        opening.start()
        if not more:
            opening.join(10)  # this command ends now; the server that just starts goes on


def _open(running: Running, path: str) -> None:
    import webbrowser
    from contextlib import suppress

    with suppress(OSError, ValueError, KeyError):  # the address is printed as well
        webbrowser.open(running.link_for_once(path))
