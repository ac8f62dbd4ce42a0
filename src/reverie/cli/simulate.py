"""`reverie simulate`: a simulated Messages API on 127.0.0.1, for testing agents without paying.

Starts a server and prints how to point the SDKs at it. It sends nothing to the network.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from urllib.parse import quote

import click

_EPILOG = """\b
Examples:
  reverie simulate --port 8787
  reverie simulate --script examples/port.script --ledger bill.jsonl
  reverie simulate --port 8787 --control-key for-my-tests

\b
Then, in another terminal:
  export ANTHROPIC_BASE_URL=http://127.0.0.1:8787 ANTHROPIC_API_KEY=simulated
  curl -H 'x-sim-key: for-my-tests' http://127.0.0.1:8787/_sim/ledger
"""


_SCRIPT_HELP = "A file with the answers; docs/scripts.md has its format.  [default: echo the prompt]"


@click.command("simulate", epilog=_EPILOG)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, show_default="any free one", help="Local port.")
@click.option("--script", type=click.Path(path_type=Path), help=_SCRIPT_HELP)
@click.option("--window", type=click.IntRange(1), help="Context window in tokens, for every model.")
@click.option("--ledger", type=click.Path(path_type=Path), help="Append requests and costs here, as JSON lines.")
@click.option("--control-key", default="", show_default="a random one", help="The header x-sim-key for /_sim/.")
def command(port: int, script: Path | None, window: int | None, ledger: Path | None, control_key: str) -> None:
    """Run a local simulator of Anthropic's Messages API and OpenAI's chat completions.

    It costs nothing. It caches prompts and computes costs as Anthropic's public documentation says. GET /_sim/ledger
    shows what every request read from the cache, wrote to it and would have cost, and the reason for each cache miss.
    POST /_sim/clock {"advance_s": 301} moves the simulator's own clock forward by 301 seconds, so that a cache of five
    minutes expires. Both need the control key, which is printed at the start, so that no other program can use them.
    """
    from reverie.models.script import Script
    from reverie.simulator import Clock, Ledger, ScriptResponder, Simulator
    from reverie.simulator.http import address, listen, serve

    responder = ScriptResponder(Script.load(script)) if script is not None else None
    if ledger is not None:
        Ledger.check_writable(ledger)
    key, seed = control_key.strip(), secrets.token_hex(8)
    book = Ledger(ledger)
    simulator = Simulator(responder, clock=Clock.running(), window=window, ledger=book, seed=seed, control_key=key)
    listener = listen(port)
    url = address(listener)
    click.echo(f"Simulating the Messages API at {url} (Ctrl-C stops it)\n")
    click.echo(f"  export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=simulated")
    click.echo(f"  export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=simulated\n")
    click.echo(f"What it cost: {url}/_sim/ledger?key={quote(simulator.control_key, safe='')}")
    click.echo(f"Control key for /_sim/ (header x-sim-key): {simulator.control_key}")
    try:
        serve(simulator, listener)
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
    totals = simulator.ledger.totals()
    click.echo(
        f"\n{totals['requests']} requests, {totals['hit_rate']:.0%} of the prompt read from the cache, "
        f"{totals['misses']} misses; would have cost ${totals['cost_usd']:.4f}."
    )
