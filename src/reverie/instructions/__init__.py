"""Instruction files, AGENTS.md and CLAUDE.md alike: found from the root down, includes in place, rules by path.

`load_instructions` is all a caller needs. What a repository's files may reach is limited here, since a stranger may
have written them; what they say is never judged.
"""

from __future__ import annotations

from reverie.instructions.find import InstructionScope
from reverie.instructions.load import InstructionFile, Instructions, load_instructions
from reverie.instructions.rules import ConditionalRule

__all__ = ["ConditionalRule", "InstructionFile", "InstructionScope", "Instructions", "load_instructions"]
