"""The order in which a dream plans: dates, joins, logs, what the user said, and what only the index says.

Pure: it takes what was seen and returns the planned topic files. The index is planned afterwards, from the files that
could really be written.
"""

from __future__ import annotations

from reverie.offline.consolidate.desk import Desk
from reverie.offline.consolidate.gather import Seen
from reverie.offline.consolidate.index_detail import keep_detail
from reverie.offline.consolidate.learning import learn
from reverie.offline.consolidate.lessons import find_lessons
from reverie.offline.consolidate.log_entries import find_log_lessons
from reverie.offline.consolidate.losses import find_lost
from reverie.offline.consolidate.merging import join_files
from reverie.offline.consolidate.relative_dates import date_files


def think(seen: Seen) -> Desk:
    """Plans every change of topic files, with a reason for each.

    No statement is lost: if joining a file would lose one, everything is planned again without joining that file.
    """
    apart: frozenset[str] = frozenset()
    while gone := find_lost(desk := _thought(seen, apart)):
        apart |= gone
    return desk


def _thought(seen: Seen, apart: frozenset[str]) -> Desk:
    desk = Desk(seen, apart)
    date_files(desk)
    desk.dated = dict(desk.texts)
    join_files(desk)
    keep_detail(desk)
    for name in sorted(seen.logs):
        for lesson in find_log_lessons(name, seen.logs[name]):
            learn(desk, lesson)
    for said in seen.said:
        for lesson in find_lessons(said):
            learn(desk, lesson)
    join_files(desk)  # a lesson can repeat a memory; joined now, so that a second dream finds nothing
    return desk
