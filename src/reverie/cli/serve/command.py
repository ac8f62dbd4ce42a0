"""`reverie serve`: memory stores and dreams for many people and machines, on PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import cwd_option, examples, load_places

if TYPE_CHECKING:
    from reverie.memory.recall.encoder import SentenceEncoder

_DSN_HELP = "A PostgreSQL database with pgvector, as postgresql://USER@HOST/NAME.  [default: one of our own]"
_WORKERS_HELP = "Processes that serve; one that ends is started again."


@examples("reverie serve", "reverie serve --dsn postgresql://reverie@db/reverie --workers 4")
@click.group("serve", invoke_without_command=True)
@click.option("--dsn", default="", envvar="REVERIE_SERVE_DSN", help=_DSN_HELP)
@click.option("--port", type=click.IntRange(0, 65_535), default=8_791, show_default=True, help="Port to listen on.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help=_WORKERS_HELP)
@cwd_option
@click.pass_context
def command(ctx: click.Context, dsn: str, port: int, host: str, workers: int, cwd: Path) -> None:
    """Serve memory stores and dreams to people, agents and other machines.

    The API is the published one of memory stores and dreams, so the anthropic SDK is a client. Without --dsn it starts
    a PostgreSQL of its own, which stops with it.
    """
    ctx.obj = dsn
    if ctx.invoked_subcommand is None:
        _run(dsn, port, host, workers, cwd)


def _run(dsn: str, port: int, host: str, workers: int, cwd: Path) -> None:
    from reverie.runtime.loopback import address, listen
    from reverie.runtime.workers import supervise
    from reverie.server.app import Options, serve
    from reverie.server.embedded import EmbeddedPostgres

    settings, places = load_places(cwd)
    own = None if dsn else EmbeddedPostgres.at(settings.places.home)
    listener = listen(port, host)

    def open_encoder() -> SentenceEncoder:
        from reverie.memory.recall.encoder import open_encoder

        return open_encoder(places.models, settings.memory.encoder)

    try:
        where = dsn or (own.start() if own else "")
        click.echo(f"Memory server at {address(listener)} (Ctrl-C stops it)")
        if workers > 1:
            supervise(workers, lambda: serve(where, listener, Options(open_encoder=open_encoder)))
        else:
            serve(where, listener, Options(open_encoder=open_encoder))
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
        if own is not None:
            own.stop()
