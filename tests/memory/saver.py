"""One of many processes that save into one memory directory; run by test_soak_saves.py, and killed by it at any moment.

Writes a line to its acknowledgements file after each save has returned, so that the test knows what must not be lost.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
from pathlib import Path

from reverie.memory.changes import ProposedWrite, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile

OWN_FILES = 12
SHARED_FILES = 4


def accept(proposed: ProposedWrite) -> None:
    del proposed


def body(worker: int, number: int) -> str:
    """Text of some length that says at its end whether all of it is there."""
    text = f"save {number} of worker {worker}\n" * (1 + number % 40)
    return f"{text}{hashlib.sha256(text.encode()).hexdigest()}\n"


def whole(text: str) -> bool:
    lines, _, last = text.rstrip("\n").rpartition("\n")
    return hashlib.sha256(f"{lines}\n".encode()).hexdigest() == last


def own_name(worker: int, number: int) -> str:
    return f"project_w{worker}_{number % OWN_FILES}.md"


def main(root: Path, acknowledged: Path, worker: int, first: int, last: int) -> None:
    directory = MemoryDirectory.open(root, gate=accept, lock_timeout_s=120)
    chance = random.Random(worker * 1_000 + first)
    log = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in range(first, last):
        info = WriteInfo(Writer.EXTRACTION, "soak", session=f"worker-{worker}", message=f"{worker}-{number}")
        name = own_name(worker, number)
        if number % 5 == 4:
            name = f"feedback_shared_{chance.randrange(SHARED_FILES)}.md"
            line = f"- {worker}-{number}\n"
            directory.edit(name, lambda now, line=line: now.with_changes(body=now.body + line), info)
            done = "shared"
        elif number % 17 == 16 and directory.exists(name):
            directory.remove(name, info)
            done = "removed"
        else:
            topic = TopicFile.new(
                name=f"Worker {worker}, {number % OWN_FILES}",
                description=f"save {number}",
                type=MemoryType.PROJECT,
                body=body(worker, number),
            )
            directory.update(name, topic, info)
            done = "saved"
        os.write(log, f"{number} {done} {name}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
