"""Which of the offline mind's tasks a request is: one module per task, chosen by the purpose of the request.

Every task is a pure function of the request, so the same request always gets the same answer. A task is loaded when it
is first needed. A request with a schema that belongs to no task gets the smallest value that fits.
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
            from reverie.models.forced import smallest

            return Answer(json.dumps(smallest(request.output_schema)))
        case _:
            return Answer("Nothing to add.")
