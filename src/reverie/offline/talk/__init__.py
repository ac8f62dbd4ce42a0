"""Talking without a model that thinks: an honest librarian.

Answers from the conversation, memory, instruction files, the repository and earlier sessions, always with where it
found it; keeps and forgets what it is told to; runs the commands it is given; says plainly what it cannot do. A pure
function of the request: what it does next follows from what was asked and what its calls of this turn brought.
"""

from reverie.offline.talk.next_step import next_step

__all__ = ["next_step"]
