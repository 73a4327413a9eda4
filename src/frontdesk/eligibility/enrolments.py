"""Enrols the records of many callers together: concurrent POSTs share one transaction (docs/decisions/0014, 0028)."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from frontdesk.clock import Clock
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.group_commit import GroupCommit
from frontdesk.db.pipeline import PipelineDatabase, run_in_event_loop
from frontdesk.db.races import Writable, WriteTogether
from frontdesk.db.set_transaction import SetTransaction
from frontdesk.deadlines import Deadlines
from frontdesk.eligibility.enrol import enrol
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.eligibility.probes import ProbeLimit
from frontdesk.invitations.model import Delivery

POSTGRESQL_LANES = 2  # SQLite has one writer, so a second lane would only wait


class Enrolments(GroupCommit[Submission, Enrolled]):
    """`await submit(submission)` returns what became of the record, once it is committed.

    Raises NotFound, Invalid, TooManyTaken, Unavailable.
    """

    def __init__(self, db: Database, config: Config, clock: Clock, deadlines: Deadlines) -> None:
        super().__init__(deadlines=deadlines, lanes=1 if db.is_sqlite else POSTGRESQL_LANES)
        self._db = db
        self._clock = clock
        self._uniqueness = config.uniqueness
        self._probe_limit = ProbeLimit(config.taken_per_day, config.uniqueness)
        self._pipeline_db = None if db.is_sqlite else PipelineDatabase(config.database_url, db.outage)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="enrol")

    async def commit_group(self, items: Sequence[Submission]) -> Sequence[Enrolled | Exception]:
        if self._pipeline_db is not None:
            return await run_in_event_loop(self._enrol, self._pipeline_db, items)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._enrol, self._db, items)

    def _enrol(
        self, db: Writable[SetTransaction], items: Sequence[Submission]
    ) -> Sequence[Enrolled | Exception]:
        writing = WriteTogether[SetTransaction, Submission, Enrolled](db, items)
        for attempt in writing:
            with attempt:
                attempt.results = enrol(
                    attempt.tx,
                    attempt.items,
                    now=self._clock(),
                    uniqueness=self._uniqueness,
                    probe_limit=self._probe_limit,
                )
        if any(
            isinstance(each, Enrolled) and isinstance(each.invitation, Delivery) for each in writing.results
        ):
            self._db.announce_work()
        return writing.results

    def shorten_waits(self, seconds: float) -> None:
        """The process is to stop: a database that says nothing for so long is given up."""
        if self._pipeline_db is not None:
            self._pipeline_db.shorten_waits(seconds)

    async def close(self) -> None:
        await super().close()
        self._thread.shutdown(wait=False, cancel_futures=True)  # a wait would block the event loop
        if self._pipeline_db is not None:
            self._pipeline_db.close()
