"""One session's accounts: every response is booked to what caused it, and the cache of every thread is watched.

The conversation tells its account of each response; a fork has an account of its own, which books on the session's
transcript. What a break was and what it cost is recorded and, unless it was announced, told in one line. Decides
nothing but whether background work may still spend.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from reverie.context.cache_watch import NOBODYS_CHANGE, CacheWatch, Prediction, told
from reverie.context.day_book import Caps, DayBook
from reverie.context.ledger import RunningLedger, entry, when
from reverie.events import Event, Notice
from reverie.models.base import Request, Response
from reverie.models.catalogue import Catalogue
from reverie.models.wire import model_id
from reverie.storage.transcript.records import ForkUsage
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Purpose


class Accounts:
    """What a session shares: its transcript, the day's book, the caps and the running ledger."""

    def __init__(
        self,
        log: SessionLog,
        catalogue: Catalogue,
        *,
        window: int,
        emit: Callable[[Event], None],
        watching: Callable[[], bool],
        book: DayBook,
        caps: Caps,
    ) -> None:
        self.catalogue = catalogue
        self.ledger = RunningLedger(log.records, catalogue)
        self._log = log
        self._window = window
        self._emit = emit
        self.watching = watching
        self._book = book
        self._caps = caps
        self._refused = set[str]()

    def main(self) -> Account:
        """The account of the conversation itself; after a resume it knows what the last response left cached."""
        watch = CacheWatch(self.catalogue, window=self._window)
        for record in reversed(self._log.records):
            usage = record.message.usage if record.message is not None and not record.is_sidechain else None
            at = when(record)
            if usage is not None and at is not None:
                watch.resumed(usage, at)
                break
        return Account(self, watch, beside=False)

    def may_spend(self, purpose: Purpose, *, tell: bool = True) -> str | None:
        """None if work for this purpose may be begun; else why not. With `tell` a new reason is also told, once."""
        reason = self._caps.may_spend(purpose)
        if tell and reason is not None and purpose not in self._refused:
            self._refused.add(purpose)
            self._emit(Notice(f"{purpose.value} was left out: {reason}", "warning", "budget"))
        return reason

    def book(self, request: Request, response: Response) -> None:
        """Books a request made beside the conversation: on this transcript, and on the day's book."""
        usage = response.usage
        model = response.model or model_id(request.model)
        record = self._log.append(ForkUsage(request.purpose.value, model, usage.wire(), request.thread))
        session = self._log.session_id
        one = entry(usage, model, self.catalogue, purpose=request.purpose.value, at=when(record), session=session)
        self._book.add(one)

    def watch(self, watch: CacheWatch, request: Request, response: Response, at: datetime) -> None:
        """Has the watch judge a response, records what it finds, and tells what nobody announced."""
        if not self.watching():
            watch.forget()
            return
        broken = watch.finished(request, response, at)
        if broken is None:
            return
        self._log.append(broken)
        if broken.announcement is None:
            level = "info" if broken.cause in NOBODYS_CHANGE else "warning"
            priced = self.catalogue.facts(model_id(request.model)).priced
            self._emit(Notice(told(broken, priced=priced), level, "cache"))


class Account:
    """The account of one thread."""

    def __init__(self, accounts: Accounts, watch: CacheWatch, *, beside: bool) -> None:
        self._accounts = accounts
        self._watch = watch
        self._beside = beside

    def forked(self) -> Account:
        """The account of a fork made now: it is expected to read this thread's cache."""
        return Account(self._accounts, self._watch.forked(), beside=True)

    def afresh(self) -> Account:
        """The account of work beside this thread that shares no prefix with it: nothing is expected to be cached."""
        return Account(self._accounts, self._watch.afresh(), beside=True)

    def predict(self, request: Request, now: datetime) -> Prediction:
        """What a request would read from the cache if it were sent now, and what stands in its way."""
        return self._watch.predict(request, now)

    def sending(self, request: Request, now: datetime) -> None:
        """Has the watch look at a request before it is sent, so that a cause is known and not made up afterwards."""
        if self._accounts.watching():
            self._watch.predict(request, now)

    def finished(self, request: Request, response: Response, at: datetime) -> None:
        """Takes in the response to a request that was begun `at`."""
        if self._beside:
            self._accounts.book(request, response)
        self._accounts.watch(self._watch, request, response, at)

    def failed(self, request: Request) -> None:
        """Takes in that a request was given up: what it announced still holds for the next."""
        self._watch.failed(request)
