"""Processes that write to and read from one mailbox, to be killed.

python -m tests.agents.mail_driver write MAILBOX SENDER COUNT
python -m tests.agents.mail_driver read MAILBOX TRANSCRIPT SEED
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from reverie.agents.messages.mailbox import Mailbox, Reader
from reverie.agents.messages.message import blocks_of, new_letter
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message


def write(mailbox: Mailbox, sender: str, count: int) -> None:
    for number in range(count):
        mailbox.put(new_letter(sender, "reader", f"{sender} {number}"))


def read(mailbox: Mailbox, transcript: Path, seed: int) -> None:
    """Says that it begins, and reads for ever. Pauses between the steps, so that a kill can fall between any two."""
    dice = random.Random(seed)
    log = SessionLog(transcript, "reader", cwd=transcript.parent, version="test")
    if transcript.exists():
        log.load(transcript)
    reader = Reader(mailbox, log)
    print("reading", flush=True)
    while True:
        letters = reader.look_now().letters
        time.sleep(dice.choice((0, 0.002, 0.02)))
        for start in range(0, len(letters), 50):
            log.append_message(Message("user", tuple(blocks_of(letters[start : start + 50]))), isMeta=True)
            time.sleep(dice.choice((0, 0, 0.002)))
        if not letters:
            time.sleep(0.02)


if __name__ == "__main__":
    box = Mailbox(Path(sys.argv[2]), lock_wait_s=120)
    if sys.argv[1] == "write":
        write(box, sys.argv[3], int(sys.argv[4]))
    else:
        read(box, Path(sys.argv[3]), int(sys.argv[4]))
