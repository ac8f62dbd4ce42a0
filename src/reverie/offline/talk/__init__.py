"""Talk without a model that thinks: an honest librarian.

Answers from the conversation, memory, instruction files, the repository and earlier sessions, always with the source;
keeps and forgets on request; runs the commands it is given; says clearly what it cannot do. A pure function of the
request: the next step follows from the question and the results of this turn's calls.
"""

from reverie.offline.talk.next_step import next_step

__all__ = ["next_step"]
