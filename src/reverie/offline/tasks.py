"""Which of the embedded model's tasks a request is: one module a task, chosen by what the request is for.

Every task is a pure function of the request, so the same request always gets the same answer. A task is loaded when it
is first asked for. Whatever is asked for in a schema and belongs to no task gets the smallest value that fits.
"""

from __future__ import annotations

import json

from reverie.models.base import Request
from reverie.offline.step import Answer, Step
from reverie.types import Purpose


def next_step(request: Request) -> Step:
    """What to do next about this request."""
    match request.purpose:
        case Purpose.COMPACTION:
            from reverie.offline import summarise

            return summarise.next_step(request)
        case Purpose.NOTES:
            from reverie.offline import notes

            return notes.next_step(request)
        case Purpose.DREAM:
            from reverie.offline.consolidate import task as consolidate

            return consolidate.next_step(request)
        case Purpose.EXTRACTION:
            from reverie.offline.extract import task

            return task.next_step(request)
        case Purpose.PROGRESS if request.output_schema is None:
            from reverie.offline import progress

            return progress.next_step(request)
        case Purpose.MAIN | Purpose.AGENT | Purpose.SIDE_QUESTION if request.output_schema is None:
            from reverie.offline import talk

            return talk.next_step(request)
        case _ if request.output_schema is not None:
            from reverie.offline.schema import smallest

            return Answer(json.dumps(smallest(request.output_schema)))
        case _:
            return Answer("Nothing to add.")
