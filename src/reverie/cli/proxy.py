"""`reverie proxy`: the layers under any client, by one environment variable; or under one client that it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.options import cwd_option, examples, json_option, load_places
from reverie.cli.output import Paint, answer, format_tokens, get_paint, plural, table
from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.connect.children import Child

_UPSTREAM_HELP = (
    "The server that answers, without /v1.  [default: where requests would go without the proxy: ANTHROPIC_BASE_URL, "
    "OPENAI_BASE_URL, the settings of Codex and opencode, or the vendors]"
)
_LAYERS_HELP = (
    "Which layers work: 1 (large results to disk), 2 (old ones cleared), 4 (compaction), and recall (adds memories of "
    'the folder that fit a message, which costs tokens); "" for none.'
)
_TOKEN_HELP = (
    "File with the token that clients must give; made if it is missing.  [default: proxy/token below the home]"
)
_WORKERS_HELP = "Processes that serve; one that ends is started again."
_ROWS = 20


class _Proxy(click.Group):
    """What is not the name of a sub-command is the program to start."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "", _child, args


@examples(
    "reverie proxy --port 8790",
    "reverie proxy -- claude",
    "reverie proxy --layers 1,2 -- codex exec 'Fix the test'",
    "reverie proxy --layers 1,2,recall,4 --learn -- claude",
    "reverie proxy --upstream http://127.0.0.1:8080",
    "reverie proxy stats",
)
@agents_may(AgentsMay.NOTHING, reads=lambda given: not given["learn"])
@click.group("proxy", cls=_Proxy, invoke_without_command=True, subcommand_metavar="[stats | -- PROGRAM [ARGS]...]")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, show_default="any free one", help="Local port.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; others than loopback need a token."
)
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help=_TOKEN_HELP)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help=_WORKERS_HELP)
@click.option("--upstream", default="", help=_UPSTREAM_HELP)
@click.option("--layers", default="1,2,4", show_default=True, help=_LAYERS_HELP)
@click.option("--window", type=click.IntRange(1_000), help="Keep requests below this many tokens.")
@click.option("--learn", is_flag=True, help="Write lessons of the conversations to memory.")
@click.option("--no-markers", is_flag=True, help="Set no cache markers for clients that set none.")
@cwd_option
@click.pass_context
def command(ctx: click.Context, port: int, cwd: Path, **chosen: Any) -> None:
    """Run a local proxy that makes requests cheaper, for any client of Anthropic's or OpenAI's APIs.

    Large tool results go to disk, old ones are cleared when that pays, and a full window is compacted. The model reads
    them back by their path, or with a tool that the proxy adds and answers. All other bytes of a request stay as the
    client wrote them. It keeps two bills per conversation: what was sent, and what would have been sent; `reverie proxy
    stats` shows both. With `recall` and `--learn`, clients read and write the memory of the folder (-C), the same that
    `reverie chat` has there. With a program after `--`, the proxy serves only this program and ends with it.
    """
    ctx.obj = (port, cwd, chosen)
    if ctx.invoked_subcommand is None:
        _run(port, cwd, chosen)


@click.command("program", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def _child(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    port, cwd, chosen = ctx.obj
    ctx.exit(_run(port, cwd, chosen, arguments))


@examples("reverie proxy stats", "reverie proxy stats --json | jq .total.saved")
@command.command("stats")
@json_option
@cwd_option
def stats_command(as_json: bool, cwd: Path) -> None:
    """Show what the proxy saved: tokens, cache and money per conversation, and why the cache broke."""
    from reverie.models.catalogue import Catalogue
    from reverie.proxy.book import Book
    from reverie.proxy.server import book_path
    from reverie.proxy.stats import summary

    settings = load_places(cwd)[0]
    path, catalogue = book_path(settings.places.home), Catalogue.load(settings.catalogue.files)

    def is_priced(model: str) -> bool:
        return catalogue.facts(model).priced

    if not path.is_file():
        answer(as_json, summary([], {}, is_priced), "Nothing went through a proxy yet. Start one with `reverie proxy`.")
        return
    book = Book(path)
    found = summary(book.rows(), book.failures(), is_priced)
    answer(as_json, found, *_lines(found, get_paint()))


def _money(amount: float | None, digits: int) -> str:
    """Dollars, with the sign first."""
    if amount is None:
        return "price unknown"
    text = f"${abs(amount):.{digits}f}"
    return f"-{text}" if amount < 0 and text.strip("$0.") else text


def _head(found: dict[str, Any], paint: Paint) -> Iterator[str]:
    """What was done in all conversations together."""
    total = found["total"]
    requests, cached = plural(total["requests"], "request"), f"{total['cache_share']:.0%} read from the cache"
    share = f"({1 - total['ratio']:.0%})"
    if total["paid"] is None:
        sent, direct = format_tokens(total["sent_tokens"]), format_tokens(total["direct_tokens"])
        yield f"{requests}: price unknown; the price of {sent} tokens, directly of {direct} {share}; {cached}"
    else:
        paid, direct = _money(total["paid"], 2), _money(total["direct"], 2)
        saved = paint.bold(_money(total["saved"], 2))
        yield f"{requests}: paid {paid}, directly {direct}, saved {saved} {share}; {cached}"
        if total["unpriced"]:
            yield f"price unknown: {plural(total['unpriced'], 'request')} of these, which are in no dollars"
    if total["compactions"]:
        named = (
            f"{one['id']} ({one['model']}{f', {count} times' if (count := one['compactions']) > 1 else ''})"
            for one in found["sessions"]
            if one["compactions"]
        )
        yield f"compacted, because they did not fit the window: {', '.join(named)}"
    if total["reads"]:
        own = plural(total["rounds"], "request")
        yield f"read back with the tool of the proxy: {plural(total['reads'], 'result')}, in {own} of its own"
    if total["recalled"]:
        yield f"recall added {format_tokens(total['recalled'])} tokens of memories; their price is in what was paid"
    if found["failures"]:
        said = ", ".join(f"{name.replace('_', ' ')} {times}" for name, times in sorted(found["failures"].items()))
        yield paint.bad(f"failed inside Reverie, and passed on all the same: {said}")


def _lines(found: dict[str, Any], paint: Paint) -> Iterator[str]:
    yield from _head(found, paint)
    rows = [("conversation", "model", "requests", "prompt", "cache", "paid", "directly", "saved", "breaks")]
    for one in found["sessions"][:_ROWS]:
        breaks = ", ".join(f"{cause} {times}" for cause, times in one["breaks"].items())
        is_priced = one["paid"] is not None
        rows.append(
            (
                one["id"],
                one["model"],
                str(one["requests"]),
                format_tokens(one["fresh"] + one["read"] + one["written"]),
                f"{one['cache_share']:.0%}",
                _money(one["paid"], 4),
                _money(one["direct"], 4) if is_priced else "",
                _money(one["saved"], 4) if is_priced else f"{1 - one['ratio']:.0%}",
                f"{breaks}{'; stopped: ' + one['stopped'] if one['stopped'] else ''}",
            )
        )
    yield from table(rows, right=(2, 3, 4, 5, 6, 7))
    if len(found["sessions"]) > _ROWS:
        yield paint.dim(f"and {plural(len(found['sessions']) - _ROWS, 'conversation')} more: --json shows all")


def _run(port: int, cwd: Path, chosen: dict[str, Any], program: Sequence[str] = ()) -> int:
    import os

    from reverie.connect.children import check_upstream, child_of, upstreams_of
    from reverie.library.memory import Memory
    from reverie.models.catalogue import Catalogue
    from reverie.proxy.conversations import LAYERS
    from reverie.proxy.server import TOKEN_HEADER, create_app, running, serve
    from reverie.proxy.stats import RunTally, summary
    from reverie.runtime.loopback import address, listen
    from reverie.runtime.workers import supervise

    layers = tuple(one.strip() for one in chosen["layers"].split(",") if one.strip())
    if unknown := [one for one in layers if one not in LAYERS]:
        raise UserError(f"{unknown[0]!r} is not a layer of the proxy: choose from {', '.join(LAYERS)}.")
    upstream = check_upstream(chosen["upstream"], "--upstream") if chosen["upstream"] else ""
    if program and chosen["workers"] > 1:
        raise UserError("--workers is for a proxy that runs by itself: leave it out, or leave the program out.")
    settings, _places = load_places(cwd)
    home = settings.places.home
    catalogue = Catalogue.load(settings.catalogue.files)
    token = _token(chosen, home)
    uses_memory = chosen["learn"] or "recall" in layers
    if uses_memory:
        Memory.open(cwd=cwd).opened.require_on("the proxy can neither recall nor learn")

    tally = RunTally()

    def make_app(upstreams: Mapping[str, str]) -> Any:
        return create_app(
            home,
            upstreams,
            catalogue,
            layers=layers,
            memory=Memory.open(cwd=cwd) if uses_memory else None,
            learns=chosen["learn"],
            window=chosen["window"],
            markers=not chosen["no_markers"],
            token=token,
            tally=tally,
        )

    listener = listen(port, chosen["host"])
    url = f"{address(listener)}{f'/token/{token}' if token else ''}"
    try:
        if program:
            child = child_of(program, url, os.environ, upstream=upstream)
            click.echo(f"Reverie: {_where(child.upstreams)}", err=True)
            with running(make_app(child.upstreams), listener):
                code = _run_program(child)
            _report(summary(tally.rows(), {}, lambda model: catalogue.facts(model).priced))
            return code
        upstreams = upstreams_of(url, os.environ, upstream)
        click.echo(f"Proxy at {address(listener)} (Ctrl-C stops it)\n{_where(upstreams)}\n")
        click.echo(f"  export ANTHROPIC_BASE_URL={url}")
        click.echo(f"  export OPENAI_BASE_URL={url}/v1\n")
        if token:
            click.echo(f"The addresses have the token. Clients may also send it in the header {TOKEN_HEADER}.")
            if chosen["host"] not in url:
                click.echo("On other machines, write the name of this machine in place of the one in the addresses.")
        click.echo("`reverie proxy stats` shows what it saved.")
        if chosen["workers"] > 1:
            supervise(chosen["workers"], lambda: serve(make_app(upstreams), listener))
        else:
            serve(make_app(upstreams), listener)
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
    return 0


def _token(chosen: dict[str, Any], home: Path) -> str:
    """The token that clients must give; none on loopback, unless a file is named."""
    from reverie.runtime.loopback import is_here
    from reverie.storage.token_file import load_secret

    host = str(chosen["host"])
    if chosen["token_file"] is None and is_here(f"[{host}]" if ":" in host else host):
        return ""
    return load_secret(chosen["token_file"] or home / "proxy" / "token")


def _report(found: dict[str, Any]) -> None:
    """What the proxy did for a program, when that has ended."""
    if not found["total"]["requests"]:
        click.echo("Reverie: no request was answered through the proxy.", err=True)
        return
    for line in _head(found, get_paint(err=True)):
        click.echo(f"Reverie: {line}", err=True)


def _where(upstreams: Mapping[str, str]) -> str:
    """Which server gets the requests, and with them the keys."""
    from reverie.models.sdk import format_url

    anthropic, openai = format_url(upstreams["messages"]), format_url(upstreams["chat"])
    return f"requests to Anthropic's API go to {anthropic}, those to OpenAI's to {openai}"


def _run_program(child: Child) -> int:
    """Runs a client behind the proxy and returns its exit code. Ctrl-C belongs to the client."""
    import os
    import signal
    import subprocess

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        started = subprocess.Popen(child.arguments, env={**os.environ, **child.environment}, preexec_fn=_own_interrupt)
    except OSError as error:
        raise UserError(f"{child.arguments[0]} cannot be started: {error.strerror or error}.") from error
    try:
        code = started.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def _own_interrupt() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
