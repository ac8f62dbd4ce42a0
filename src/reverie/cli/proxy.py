"""`reverie proxy`: the layers under any client, by one environment variable."""

from __future__ import annotations

from pathlib import Path

import click

from reverie.cli.options import cwd_option, examples, load_places
from reverie.errors import UserError

_UPSTREAM = "https://api.anthropic.com"
_LAYERS_HELP = (
    "Which layers work: 1 (large results to disk), 2 (old ones cleared), 4 (compaction), recall."
)


@examples(
    "reverie proxy --port 8790",
    "reverie proxy --upstream http://127.0.0.1:8080 --layers 1,2",
)
@click.command("proxy")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, show_default="any free one", help="Local port.")
@click.option("--upstream", default=_UPSTREAM, show_default=True, help="The server that answers, without /v1.")
@click.option("--layers", default="1,2,4", show_default=True, help=_LAYERS_HELP)
@click.option("--window", type=click.IntRange(1_000), help="Keep requests below this many tokens.")
@click.option("--learn", is_flag=True, help="Write lessons of the conversations to memory.")
@click.option("--no-markers", is_flag=True, help="Set no cache markers for clients that set none.")
@cwd_option
def command(
    port: int, upstream: str, layers: str, window: int | None, learn: bool, no_markers: bool, cwd: Path
) -> None:
    """Run a local proxy that makes requests cheaper, for any client of Anthropic's or OpenAI's APIs.

    Large tool results go to disk, old ones are cleared when that pays, and a full window is compacted. All other bytes
    of a request stay as the client wrote them. It keeps two bills per conversation: what was sent, and what would have
    been sent. GET /reverie/stats shows both.
    """
    from reverie.library.memory import Memory
    from reverie.models.catalogue import Catalogue
    from reverie.proxy.conversations import LAYERS
    from reverie.proxy.server import create_app, serve
    from reverie.runtime.loopback import address, listen

    chosen = tuple(one.strip() for one in layers.split(",") if one.strip())
    if unknown := [one for one in chosen if one not in LAYERS]:
        raise UserError(f"{unknown[0]!r} is not a layer of the proxy: choose from {', '.join(LAYERS)}.")
    if not upstream.startswith(("http://", "https://")):
        raise UserError(f"--upstream must be an address that begins with http:// or https://, not {upstream!r}.")
    settings, _places = load_places(cwd)
    memory = Memory.open(cwd=cwd) if learn or "recall" in chosen else None
    listener = listen(port)
    url = address(listener)
    app = create_app(
        settings.places.home,
        upstream,
        Catalogue.load(settings.catalogue.files),
        layers=chosen,
        memory=memory,
        learns=learn,
        window=window,
        markers=not no_markers,
    )
    click.echo(f"Proxy for {upstream} at {url} (Ctrl-C stops it)\n")
    click.echo(f"  export ANTHROPIC_BASE_URL={url}")
    click.echo(f"  export OPENAI_BASE_URL={url}/v1\n")
    click.echo(f"What it saved: {url}/reverie/stats")
    try:
        serve(app, listener)
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
