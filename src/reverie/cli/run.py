"""`reverie run`: one prompt, one answer, an exit code. For scripts, pipes and quick questions.

The argument is the prompt, standard input is data for it. Bytes that are not UTF-8 are replaced and counted.
"""

from __future__ import annotations

import sys
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.below_agent import text_origin
from reverie.cli.options import examples, json_lines_option
from reverie.cli.session_opening import Opening, make_opening, session_options
from reverie.errors import UserError
from reverie.origins import NO_REQUEST, fence, split_material
from reverie.types import Origin, TextBlock

if TYPE_CHECKING:
    from reverie.cli.event_loop import CommandSignals
    from reverie.cli.run_view import RunView


@examples(
    'reverie run "What does this project do?"',
    'git diff | reverie run "Write a commit message for this" --quiet',
    'reverie run --continue "And the tests?"',
    'reverie run "Fix the typo in README.md" --permission-mode accept_edits',
    'reverie run "Which port is used?" --json | jq -r \'select(.type == "turn_ended").text\'',
)
@click.command("run")
@click.argument("prompt", required=False)
@json_lines_option
@click.option("-q", "--quiet", is_flag=True, help="Print only the answer: no tool calls, no retries.")
@session_options
def command(prompt: str | None, as_json: bool, quiet: bool, **options: Any) -> int:
    """Run one prompt and print the answer.

    The argument is the prompt. Text from standard input is added to the prompt as data, not as instructions. With `-`
    as the argument, standard input is the prompt. Only the answer goes to standard output; tool calls, retries and
    notices go to standard error. Tool calls that need permission are refused, unless --allow or --permission-mode
    allows them. Ctrl-C cancels.

    Exit codes: 0: answered; 1: refused, stopped, or the answer is incomplete (output limit); 2: wrong usage; 3: the
    session is open in another process; 4: storage error; 5: the model could not answer; 6: the window is full; 130:
    cancelled.
    """
    wanted = make_opening(**options)
    said, notes = read_prompt(prompt)
    for line in notes:
        print(f"reverie: {line}", file=sys.stderr)

    from reverie.cli.event_loop import run_async
    from reverie.cli.run_view import JsonView, TextView

    view = JsonView() if as_json else TextView(wanted.cwd, quiet=quiet)
    return run_async(lambda signals: _run(signals, wanted, said, view))


async def _run(signals: CommandSignals, wanted: Opening, said: list[TextBlock], view: RunView) -> int:
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
        session.listen(view.show)  # events of background work until the session is closed
    return code


_PATIENCE_S = 3.0


def read_prompt(argument: str | None) -> tuple[list[TextBlock], list[str]]:
    """The prompt with the origin of each part, and notes for the user. Raises UserError if there is no prompt."""
    # An argument that is not UTF-8 contains surrogates, which no server accepts.
    sound = (argument or "").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    given = "" if argument == "-" else sound
    request = _own_words(given) if given.strip() else []
    if sys.stdin.isatty():
        if argument == "-" or not request:
            raise UserError("There is no prompt: give it as an argument or on standard input.")
        return request, []
    piped, replaced = _read_stdin()
    notes = [f"standard input is not UTF-8; {replaced} bytes of it were replaced"] if replaced else []
    if not piped.strip():
        if not request:
            raise UserError("There is no prompt: the argument and standard input are both empty.")
        return request, notes
    if argument == "-":
        return _own_words(piped), notes
    if not request:
        notes.append("standard input is data, not a prompt; `reverie run -` uses it as the prompt")
    return [*request, fence(Origin.PIPED, piped.strip("\n"), note="" if request else NO_REQUEST)], notes


def _own_words(text: str) -> list[TextBlock]:
    """A prompt with its origin. What an agent asks for is a task, and never the user's words."""
    origin = text_origin()
    return [fence(Origin.AGENT, text)] if origin is Origin.MODEL else split_material(text, origin)


def _read_stdin() -> tuple[str, int]:
    def report_waiting() -> None:
        print("reverie: waiting for standard input to end (</dev/null if there is none)…", file=sys.stderr, flush=True)

    waiting = threading.Timer(_PATIENCE_S, report_waiting)
    waiting.daemon = True
    waiting.start()
    try:
        raw = sys.stdin.buffer.read()
    finally:
        waiting.cancel()
    text = raw.decode("utf-8", "replace")
    return text.removeprefix("\ufeff"), text.count("\ufffd") - raw.count("\ufffd".encode())
