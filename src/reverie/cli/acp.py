"""`reverie acp`: Reverie as an agent inside an editor (Zed, JetBrains, Toad, …), over the Agent Client Protocol.

The editor starts this command. Standard output carries the protocol only; everything else goes to standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.options import examples
from reverie.cli.session_opening import Opening, make_opening, opening_options
from reverie.quick import dataclass
from reverie.types import Json, TextBlock

if TYPE_CHECKING:
    from reverie.cli.event_loop import CommandSignals
    from reverie.connect.acp.host import OfferedCommand
    from reverie.session.session import Session


@examples(
    "reverie acp",
    "reverie acp --model anthropic:claude-sonnet-5-5",
    "reverie acp --permission-mode accept_edits --allow 'Bash(npm test:*)'",
)
@click.command("acp")
@opening_options
def command(**options: Any) -> int:
    """Run as an agent inside an editor, over the Agent Client Protocol.

    The editor starts this command and talks to it on standard input and output. The options hold for every session that
    the editor opens. docs/acp.md shows how to set it up in Zed, JetBrains and Toad.
    """
    from reverie.cli.event_loop import run_async

    wanted = make_opening(**options, go_on=False, resume=None, cwd=Path.cwd())
    return run_async(lambda signals: _serve(signals, wanted))


async def _serve(signals: CommandSignals, wanted: Opening) -> int:
    from reverie.connect.acp.server import EditorServer

    server = EditorServer()
    signals.cancel = server.stop
    signals.closing = lambda: server.closing
    await server.run(lambda: EditorHost(wanted))
    return 0


@dataclass(frozen=True, slots=True)
class EditorHost:
    """What the protocol side needs from the command line (`connect/acp/host.py`)."""

    wanted: Opening

    async def open(
        self,
        cwd: Path,
        *,
        model: str | None = None,
        resume: str | None = None,
        session_id: str | None = None,
        mcp_servers: Mapping[str, object] | None = None,
    ) -> Session:
        chosen = model or self.wanted.model
        wanted = replace(
            self.wanted, cwd=cwd, model=chosen, resume=resume, session_id=session_id, mcp_servers=mcp_servers
        )
        return await wanted.open(interactive=True)

    def title(self, tool: str, given: Json, cwd: Path) -> str:
        from reverie.cli.tool_lines import call_text

        return call_text(tool, given, cwd)

    def printable(self, text: str) -> str:
        from reverie.cli.screen import printable

        return printable(text)

    def commands(self, session: Session) -> list[OfferedCommand]:
        from reverie.cli.chat.in_editor import list_commands

        return list_commands(session)

    async def run_command(self, session: Session, said: Sequence[TextBlock], say: Callable[[str], None]) -> bool:
        from reverie.cli.chat.in_editor import run_command

        return await run_command(session, said, say)
