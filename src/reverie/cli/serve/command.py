"""`reverie serve`: memory stores and dreams for many people and machines, on PostgreSQL."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.options import cwd_option, examples, load_places
from reverie.cli.output import say_all, warn
from reverie.cli.serve.accounts import people, projects, teams
from reverie.cli.serve.opening import dsn_options, find_database, started
from reverie.cli.serve.tokens import tokens
from reverie.cli.serve.upkeep import add_upkeep
from reverie.errors import UserError

if TYPE_CHECKING:
    import socket

    from reverie.memory.recall.encoder import SentenceEncoder
    from reverie.server.app import Options

_WORKERS_HELP = "Processes that serve; one that ends is started again."
_HOST_HELP = "Address to listen on; others than loopback need a certificate, --behind-proxy or --insecure."
_PROXY_HELP = "The address that a reverse proxy connects from; it does TLS and names the client. Repeatable."
_RATE_HELP = "Requests per second and token, per process; 0: no limit."
_LOG_HELP = "What is written to standard error, as lines of JSON without contents."
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@examples(
    "reverie serve",
    "reverie serve --dsn-file /etc/reverie/dsn --workers 4 --behind-proxy 127.0.0.1",
    "reverie serve people add ann",
    "reverie serve tokens add ann --days 90",
    "reverie serve backup memory.dump",
)
@agents_may(AgentsMay.ALL)
@click.group("serve", invoke_without_command=True)
@dsn_options
@click.option("--port", type=click.IntRange(0, 65_535), default=8_791, show_default=True, help="Port to listen on.")
@click.option("--host", default="127.0.0.1", show_default=True, help=_HOST_HELP)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help=_WORKERS_HELP)
@click.option("--ssl-certfile", type=_FILE, help="A certificate (PEM): the server speaks HTTPS.")
@click.option("--ssl-keyfile", type=_FILE, help="The key of the certificate.")
@click.option("--behind-proxy", "proxies", multiple=True, metavar="ADDRESS", help=_PROXY_HELP)
@click.option("--insecure", is_flag=True, help="Listen on other addresses without TLS: tokens can be read on the way.")
@click.option("--rate", type=click.FloatRange(0), default=1_000, show_default=True, help=_RATE_HELP)
@click.option("--log", type=click.Choice(["errors", "requests"]), default="errors", show_default=True, help=_LOG_HELP)
@cwd_option
@click.pass_context
def command(ctx: click.Context, cwd: Path, **chosen: Any) -> None:
    """Serve memory stores and dreams to people, agents and other machines.

    The API is the published one of memory stores and dreams, so the anthropic SDK is a client. Without --dsn it starts
    a PostgreSQL of its own, which stops with the last process that uses it. The first start makes an organisation, a
    person for you and a token.
    """
    if ctx.invoked_subcommand is None:
        _run(cwd, chosen)


for _one in (people, teams, projects, tokens):
    command.add_command(_one)
add_upkeep(command)


def _run(cwd: Path, chosen: dict[str, Any]) -> None:
    from reverie.cli.serve.first_start import greet
    from reverie.runtime.loopback import address, listen
    from reverie.runtime.workers import supervise
    from reverie.server.app import serve

    _check_reach(chosen)
    where = find_database(cwd, chosen["dsn"], chosen["dsn_file"])
    listener = listen(chosen["port"], chosen["host"])
    url = address(listener).replace("http:", "https:" if chosen["ssl_certfile"] else "http:", 1)
    figures = Path(tempfile.mkdtemp(prefix="reverie-serve-"))
    signal.signal(signal.SIGTERM, _stop)  # uvicorn gives the signal back when it is done; PostgreSQL must stop then
    try:
        with started(where, makes=True) as dsn:
            say_all(greet(where, dsn, url))
            sys.stdout.flush()
            _serve(dsn, listener, cwd, chosen, figures, serve, supervise)
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
        shutil.rmtree(figures, ignore_errors=True)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _serve(
    dsn: str, listener: socket.socket, cwd: Path, chosen: dict[str, Any], figures: Path, serve: Any, supervise: Any
) -> None:
    workers = int(chosen["workers"])
    options = _options(cwd, chosen, figures if workers > 1 else None)
    if workers > 1:
        supervise(workers, lambda: serve(dsn, listener, options))
    else:
        serve(dsn, listener, options)


def _options(cwd: Path, chosen: dict[str, Any], figures: Path | None) -> Options:
    from reverie.server.app import Options

    settings, places = load_places(cwd)

    def open_encoder() -> SentenceEncoder:
        from reverie.memory.recall.encoder import open_encoder

        return open_encoder(places.models, settings.memory.encoder)

    return Options(
        rate=chosen["rate"],
        logs_requests=chosen["log"] == "requests",
        proxies=chosen["proxies"],
        certificate=chosen["ssl_certfile"],
        key=chosen["ssl_keyfile"],
        open_encoder=open_encoder,
        measures=figures,
    )


def _check_reach(chosen: dict[str, Any]) -> None:
    """Tokens and memories cross the network: without TLS only on purpose."""
    import ssl

    from reverie.runtime.http import check_proxy
    from reverie.runtime.loopback import is_here

    for proxy in chosen["proxies"]:
        check_proxy(proxy)
    host, certificate = str(chosen["host"]), chosen["ssl_certfile"]
    if chosen["ssl_keyfile"] and not certificate:
        raise UserError("--ssl-keyfile is the key of a certificate: give --ssl-certfile too.")
    if certificate:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, chosen["ssl_keyfile"], password="")
        except (OSError, ValueError) as error:
            raise UserError(f"{certificate} cannot be used as a certificate with its key: {error}.") from error
        return
    if is_here(f"[{host}]" if ":" in host else host) or chosen["proxies"]:
        return
    if not chosen["insecure"]:
        raise UserError(
            f"{host} can be reached from other machines, and without TLS everybody on the way reads tokens and "
            "memories: give --ssl-certfile, or say --behind-proxy ADDRESS if a reverse proxy does TLS, or --insecure."
        )
    warn("Without TLS everybody on the way can read tokens and memories.")
