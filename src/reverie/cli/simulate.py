"""`reverie simulate`: a simulated Messages API on 127.0.0.1, for testing agents without paying.

Starts a server and prints how to point the SDKs at it. It sends nothing to the network.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from reverie.errors import UserError
from reverie.regular_files import read_regular

if TYPE_CHECKING:
    from reverie.simulator import RouteProfile

_EPILOG = """\b
Examples:
  reverie simulate --port 8787
  reverie simulate --script examples/port.script --ledger bill.jsonl
  reverie simulate --port 8787 --control-key for-my-tests
  reverie simulate --bridge requests/

\b
Then, in another terminal:
  export ANTHROPIC_BASE_URL=http://127.0.0.1:8787 ANTHROPIC_API_KEY=simulated
  curl -H 'x-sim-key: for-my-tests' http://127.0.0.1:8787/_sim/ledger
"""


_BRIDGE_HELP = "Write each request into this folder, and wait there for a file with the reply. See docs/simulator.md."
_PROFILE_HELP = "A JSON file with the latency and the faults of each route. See docs/simulator.md."
_THREADS_HELP = "Keep conversations, for clients that send a `thread`.  [default: refuse, and the client does without]"
_SCRIPT_HELP = "A file with the answers; docs/scripts.md has its format.  [default: echo the prompt]"


@click.command("simulate", epilog=_EPILOG)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, show_default="any free one", help="Local port.")
@click.option("--script", type=click.Path(path_type=Path), help=_SCRIPT_HELP)
@click.option("--bridge", type=click.Path(path_type=Path, file_okay=False), help=_BRIDGE_HELP)
@click.option("--bridge-wait", type=click.FloatRange(0), default=1_800.0, show_default=True, help="Seconds to wait.")
@click.option("--profile", type=click.Path(path_type=Path), help=_PROFILE_HELP)
@click.option("--threads", is_flag=True, help=_THREADS_HELP)
@click.option("--window", type=click.IntRange(1), help="Context window in tokens, for every model.")
@click.option("--ledger", type=click.Path(path_type=Path), help="Append requests and costs here, as JSON lines.")
@click.option("--control-key", default="", show_default="a random one", help="The header x-sim-key for /_sim/.")
def command(
    port: int,
    script: Path | None,
    bridge: Path | None,
    bridge_wait: float,
    profile: Path | None,
    threads: bool,
    window: int | None,
    ledger: Path | None,
    control_key: str,
) -> None:
    """Run a local simulator of Anthropic's Messages API and of OpenAI's chat completions and responses.

    It costs nothing. It caches prompts and computes costs as Anthropic's public documentation says. GET /_sim/ledger
    shows what every request read from the cache, wrote to it and would have cost, and the reason for each cache miss.
    POST /_sim/clock {"advance_s": 301} moves the simulator's own clock forward by 301 seconds, so that a cache of five
    minutes expires. Both need the control key, which is printed at the start, so that no other program can use them.
    """
    from reverie.models.script import Script
    from reverie.runtime.loopback import address, listen
    from reverie.simulator import BridgeResponder, Clock, Ledger, ScriptResponder, Simulator
    from reverie.simulator.http import serve

    if script is not None and bridge is not None:
        raise UserError("Choose --script or --bridge: only one of them can answer.")
    responder = ScriptResponder(Script.load(script)) if script is not None else None
    if bridge is not None:
        responder = BridgeResponder(bridge, wait_s=bridge_wait)
    if ledger is not None:
        Ledger.check_writable(ledger)
    key, seed = control_key.strip(), secrets.token_hex(8)
    book = Ledger(ledger)
    simulator = Simulator(
        responder, clock=Clock.running(), window=window, ledger=book, seed=seed, control_key=key, threads=threads
    )
    if profile is not None:
        simulator.behave(_read_profile(profile))
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


def _read_profile(path: Path) -> dict[str, RouteProfile]:
    from reverie.simulator.control import profile_of
    from reverie.simulator.errors import ApiError
    from reverie.simulator.reading import read_object

    try:
        return profile_of(read_object(read_regular(path)))
    except OSError as error:
        raise UserError(f"The profile {path} cannot be read: {error.strerror or error}.") from error
    except ApiError as error:
        raise UserError(f"The profile {path} is wrong: {error}.") from error
