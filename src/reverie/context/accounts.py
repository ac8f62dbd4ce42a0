"""The accounts of one session: books every response under its purpose and watches the prompt cache of every thread.

A fork has its own account, which books on the session's transcript. A cache break is recorded with its cause and cost.
A break that nobody announced is also shown to the user, in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from reverie.context.cache_watch import NOBODYS_CHANGE, CacheWatch, Prediction, describe_break
from reverie.context.day_book import Caps, DayBook
from reverie.context.ledger import RunningLedger, make_entry, record_time
from reverie.errors import BudgetSpent
from reverie.events import Event, Notice
from reverie.models.base import Request, Response
from reverie.models.catalogue import Catalogue
from reverie.models.wire import model_id
from reverie.storage.transcript.records import ForkUsage
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Purpose


class Accounts:
    """What all accounts of a session share: its transcript, the day book, the caps and the running ledger."""

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
        """Returns the account of the conversation. After a resume it knows what the last response left in the cache."""
        watch = CacheWatch(self.catalogue, window=self._window)
        for record in reversed(self._log.records):
            usage = record.message.usage if record.message is not None and not record.is_sidechain else None
            at = record_time(record)
            if usage is not None and at is not None:
                watch.resumed(usage, at, str(record.message.fields.get("model") or "") if record.message else "")
                break
        return Account(self, watch, beside=False)

    def may_spend(self, purpose: Purpose, *, tell: bool = True) -> str | None:
        """Returns None if such work may begin, else why not. With `tell`, shows a new reason to the user once."""
        reason = self._caps.may_spend(purpose)
        if tell and reason is not None and purpose not in self._refused:
            self._refused.add(purpose)
            self._emit(Notice(f"{purpose.value} was left out: {reason}", "warning", "budget"))
        return reason

    def book(self, request: Request, response: Response) -> None:
        """Books a request that is not part of the conversation, on the transcript and in the day book."""
        usage = response.usage
        model = response.model or model_id(request.model)
        record = self._log.append(ForkUsage(request.purpose.value, model, usage.wire(), request.thread))
        session = self._log.session_id
        one = make_entry(
            usage, model, self.catalogue, purpose=request.purpose.value, at=record_time(record), session=session
        )
        self._book.add(one)

    def watch(self, watch: CacheWatch, request: Request, response: Response, at: datetime) -> None:
        """Lets the watch judge a response, records a break and shows it to the user if nobody announced it."""
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
            self._emit(Notice(describe_break(broken, priced=priced), level, "cache"))


class Account:
    """The account of one thread."""

    def __init__(self, accounts: Accounts, watch: CacheWatch, *, beside: bool) -> None:
        self._accounts = accounts
        self._watch = watch
        self._beside = beside

    def forked(self) -> Account:
        """Returns the account of a new fork, which is expected to read this thread's cache."""
        return Account(self._accounts, self._watch.forked(), beside=True)

    def afresh(self) -> Account:
        """Returns the account of work with a prefix of its own: nothing of it is expected in the cache."""
        return Account(self._accounts, self._watch.afresh(), beside=True)

    def predict(self, request: Request, now: datetime) -> Prediction:
        """Predicts what a request would read from the cache if it were sent now, and what prevents more."""
        return self._watch.predict(request, now)

    def sending(self, request: Request, now: datetime) -> None:
        """Compares a request with the last one before it is sent, so that the cause of a break is known beforehand.

        Raises BudgetSpent if background work has reached its cap meanwhile.
        """
        if self._beside and (reason := self._accounts.may_spend(request.purpose, tell=False)) is not None:
            raise BudgetSpent(reason)
        if self._accounts.watching():
            self._watch.predict(request, now)

    def finished(self, request: Request, response: Response, at: datetime) -> None:
        """Takes in the response to a request that was sent `at`."""
        if self._beside:
            self._accounts.book(request, response)
        self._accounts.watch(self._watch, request, response, at)

    def failed(self, request: Request) -> None:
        """Takes in that a request failed. A break that it announced counts for the next request."""
        self._watch.failed(request)
