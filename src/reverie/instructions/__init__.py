"""Instruction files (AGENTS.md and CLAUDE.md): found from the root down, with includes and rules by path.

Callers need only `load_instructions`. A stranger may have written the files of a repository, so their reach is limited.
"""

from __future__ import annotations

from reverie.instructions.find import InstructionScope
from reverie.instructions.load import InstructionFile, Instructions, load_instructions
from reverie.instructions.rules import ConditionalRule

__all__ = ["ConditionalRule", "InstructionFile", "InstructionScope", "Instructions", "load_instructions"]
