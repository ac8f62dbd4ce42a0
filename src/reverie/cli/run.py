"""`reverie run`: one prompt, one answer, an exit code. For scripts, pipes and quick questions.

The argument is the request, standard input is material for it. Bytes that are not UTF-8 are replaced and counted, never
an error; an input that does not end is waited for, and after a while the user is told so.
"""

from __future__ import annotations

import sys
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.opening import Opening, opening, session_options
from reverie.cli.options import examples, json_lines_option
from reverie.errors import UserError
from reverie.origins import NO_REQUEST, fence, split_material
from reverie.types import Origin, TextBlock

if TYPE_CHECKING:
    from reverie.cli.run_view import RunView
    from reverie.cli.running import Signals
    from reverie.types import TextBlock


@click.command(
    "run",
    epilog=examples(
        'reverie run "What does this project do?"',
        'git diff | reverie run "Write a commit message for this" --quiet',
        'reverie run --continue "And the tests?"',
        'reverie run "Fix the typo in README.md" --permission-mode accept_edits',
        'reverie run "Which port is used?" --json | jq -r \'select(.type == "turn_ended").text\'',
    ),
)
@click.argument("prompt", required=False)
@json_lines_option
@click.option("-q", "--quiet", is_flag=True, help="The answer only: no tool calls, no retries.")
@session_options
def command(prompt: str | None, as_json: bool, quiet: bool, **options: Any) -> int:
    """Run one prompt and print the answer.

    The prompt is the argument. Standard input is material for it, never a request; with `-` in place of the argument,
    standard input is the prompt. The answer goes to standard output and nothing else does; tool calls, retries and
    notices go to standard error. Nobody can be asked, so what
    would need a permission is refused unless --allow or --permission-mode says otherwise. Ctrl-C cancels cleanly.

    Exit codes: 0 answered, 1 refused, stopped or cut off, 2 usage, 3 session busy, 4 storage, 5 model, 6 window full,
    130 cancelled.
    """
    from reverie.cli.run import read_prompt

    wanted = opening(**options)
    said, told = read_prompt(prompt)
    for line in told:
        print(f"reverie: {line}", file=sys.stderr)

    from reverie.cli.run_view import JsonView, TextView
    from reverie.cli.running import run_async

    view = JsonView() if as_json else TextView(wanted.cwd, quiet=quiet)
    return run_async(lambda signals: _run(signals, wanted, said, view))


async def _run(signals: Signals, wanted: Opening, said: list[TextBlock], view: RunView) -> int:
    from reverie.events import TurnEnded

    code = 1
    async with await wanted.open(interactive=False) as session:
        signals.cancel = session.cancel
        signals.closing = lambda: session.closing
        async with aclosing(session.send(said)) as events:
            async for event in events:
                view.show(event)
                if isinstance(event, TurnEnded):
                    code = event.exit_code
        session.listen(view.show)  # what still happens in the background until the session is closed
    return code


_PATIENCE_S = 3.0


def read_prompt(argument: str | None) -> tuple[list[TextBlock], list[str]]:
    """The prompt with the origin of each part, and what there is to say about it. UserError if there is none."""
    # An argument whose bytes were not UTF-8 arrives with half characters in it, which no server takes.
    sound = (argument or "").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    given = "" if argument == "-" else sound
    request = split_material(given, Origin.TYPED if on_a_terminal() else Origin.ENTERED) if given.strip() else []
    if sys.stdin.isatty():
        if argument == "-" or not request:
            raise UserError("There is no prompt: give it as an argument or on standard input.")
        return request, []
    piped, replaced = _read_all()
    told = [f"standard input is not UTF-8; {replaced} bytes of it were replaced"] if replaced else []
    if not piped.strip():
        if not request:
            raise UserError("There is no prompt: the argument and standard input are both empty.")
        return request, told
    if argument == "-":
        return split_material(piped, Origin.ENTERED), told
    if not request:
        told.append("standard input is material, not a request; `reverie run -` takes it as the prompt")
    return [*request, fence(Origin.PIPED, piped.strip("\n"), note="" if request else NO_REQUEST)], told


def on_a_terminal() -> bool:
    """Whether somebody sits at a terminal: one of the standard streams is one, whatever the others are."""
    return any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _read_all() -> tuple[str, int]:
    def told() -> None:
        print("reverie: waiting for standard input to end (</dev/null if there is none)…", file=sys.stderr, flush=True)

    waiting = threading.Timer(_PATIENCE_S, told)
    waiting.daemon = True
    waiting.start()
    try:
        raw = sys.stdin.buffer.read()
    finally:
        waiting.cancel()
    text = raw.decode("utf-8", "replace")
    return text.removeprefix("\ufeff"), text.count("\ufffd") - raw.count("\ufffd".encode())
