"""`reverie run`: one prompt, one answer, an exit code. For scripts, pipes and quick questions."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.opening import Opening, opening, session_options
from reverie.cli.options import json_lines_option

if TYPE_CHECKING:
    from reverie.cli.run_view import RunView
    from reverie.cli.running import Signals
    from reverie.types import TextBlock


@click.command("run")
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

    \b
    Examples:
      reverie run "What does this project do?"
      git diff | reverie run "Write a commit message for this" --quiet
      reverie run --continue "And the tests?"
      reverie run "Fix the typo in README.md" --permission-mode accept_edits
      reverie run "Which port is used?" --json | jq -r 'select(.type == "turn_ended").text'

    Exit codes: 0 answered, 1 refused, stopped or cut off, 2 usage, 3 session busy, 4 storage, 5 model, 6 window full,
    130 cancelled.
    """
    from reverie.cli.prompt_input import read_prompt

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
