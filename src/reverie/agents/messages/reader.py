"""One reader of one mailbox: what its transcript shows is what it has, and everything else is new.

Hands each letter out once, watches the transcript for it, and lets the mailbox archive it then. A new process over the
same transcript goes on where the last one was killed. It shows letters to nobody: whoever asks records them.
"""

from __future__ import annotations

import asyncio

from reverie.agents.messages.mailbox import Mail, Mailbox
from reverie.agents.messages.message import letters_in
from reverie.storage.transcript.session_log import SessionLog


class Reader:
    """`look` for new letters; record every one of them in the log, or say that it is `done` with."""

    def __init__(self, mailbox: Mailbox, log: SessionLog) -> None:
        self.mailbox = mailbox
        self._log = log
        self._read = 0
        self._recorded = set[str]()
        self._handed = set[str]()
        self._stamp: object = None

    def look_now(self) -> Mail:
        """What is new: each letter once, in the order of the mailbox. Blocks for the lock and the disk."""
        self._catch_up()
        return self._handing(self.mailbox.collect(self._recorded, handed=self._handed))

    async def look(self) -> Mail:
        """The same without blocking the loop; costs one look at the file's date while nothing happens."""
        moved = self._catch_up()
        stamp = self.mailbox.stamp
        if not moved and stamp == self._stamp:
            return Mail(())
        mail = await asyncio.to_thread(self.mailbox.collect, frozenset(self._recorded), handed=frozenset(self._handed))
        self._stamp = stamp  # taken before the look: what came during it is found the next time
        return self._handing(mail)

    def done(self, id: str) -> None:
        """This letter needs no place in the transcript: it was for the program and has been acted on."""
        self._recorded.add(id)
        self._stamp = None

    def _handing(self, mail: Mail) -> Mail:
        self._handed |= {letter.id for letter in mail.letters}
        return mail

    def _catch_up(self) -> bool:
        """Whether the transcript shows letters of ours that it did not show before."""
        if self._log.unsaved:  # what is only in memory is gone with the process: the letters stay where they are
            return False
        records = self._log.records
        new = letters_in(records[self._read :])
        self._read = len(records)
        self._recorded |= new
        return bool(new)
