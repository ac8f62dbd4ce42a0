"""`command:PROGRAM`: any program that reads a prompt on its standard input and prints the answer (docs/models.md).

It runs without a shell. It knows no schemas, so the prompt names a key that an answer with calls must repeat.
"""

from __future__ import annotations

from reverie.models.base import Request
from reverie.models.programs.failures import program_error
from reverie.models.programs.frame import Frame
from reverie.models.programs.model import ProgramAnswer, ProgramModel
from reverie.models.programs.running import Scratch

MISSING = "Write command:PROGRAM, with the options that make it read a prompt and print the answer."


class CommandModel(ProgramModel):
    """A program of the user's own."""

    keyed = True

    async def ask(self, framed: Frame, request: Request, scratch: Scratch) -> ProgramAnswer:
        ran = await self._program.run((), f"{framed.system}\n\n{framed.prompt}\n", scratch)
        if ran.exit_code != 0:
            raise program_error(self._program.shown, f"exit code {ran.exit_code}: {ran.complaint}", login="")
        return ProgramAnswer(ran.stdout.strip())
