"""Processes that write to and read from one mailbox, to be killed.

python -m tests.agents.mail_driver write MAILBOX SENDER COUNT
python -m tests.agents.mail_driver read MAILBOX TRANSCRIPT SEED
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from reverie.agents.messages.inbox_file import InboxFile, InboxReader
from reverie.agents.messages.message import message_blocks, new_message
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message


def write(mailbox: InboxFile, sender: str, count: int) -> None:
    for number in range(count):
        mailbox.put(new_message(sender, "reader", f"{sender} {number}"))


def read(mailbox: InboxFile, transcript: Path, seed: int) -> None:
    """Says that it begins, and reads for ever. Pauses between the steps, so that a kill can fall between any two."""
    dice = random.Random(seed)
    log = SessionLog(transcript, "reader", cwd=transcript.parent, version="test")
    if transcript.exists():
        log.load(transcript)
    reader = InboxReader(mailbox, log)
    print("reading", flush=True)
    while True:
        messages = reader.look_now().messages
        time.sleep(dice.choice((0, 0.002, 0.02)))
        for start in range(0, len(messages), 50):
            log.append_message(Message("user", tuple(message_blocks(messages[start : start + 50]))), isMeta=True)
            time.sleep(dice.choice((0, 0, 0.002)))
        if not messages:
            time.sleep(0.02)


if __name__ == "__main__":
    box = InboxFile(Path(sys.argv[2]), lock_wait_s=120)
    if sys.argv[1] == "write":
        write(box, sys.argv[3], int(sys.argv[4]))
    else:
        read(box, Path(sys.argv[3]), int(sys.argv[4]))
