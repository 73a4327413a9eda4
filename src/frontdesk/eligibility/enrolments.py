"""The enrolment of many callers together: concurrent POSTs share one transaction."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from frontdesk.clock import Clock
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.pipeline import GroupWriter
from frontdesk.db.sets import SetTransaction
from frontdesk.deadlines import Deadlines
from frontdesk.eligibility.decide import Result
from frontdesk.eligibility.enrol import enrol
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.invitations.model import NotInvitedReason

SCRIPTED = "sandbox-"  # begins each external_id whose outcome a sandbox scripts

Write = Callable[[Sequence[Submission]], Iterable[Result]]


class Enrolments(GroupWriter[Submission, Enrolled]):
    """Enrols the records of many callers together (docs/decisions/0013, 0028).

    `await submit(submission)` returns the record's result after the commit. Raises NotFound,
    Invalid, TooManyTaken, PreconditionFailed, Conflict, Unavailable. A sandbox sets `intercept`: it
    gets each chunk with a record whose outcome is scripted, and the function that writes records.
    """

    def __init__(self, db: Database, config: Config, clock: Clock, deadlines: Deadlines) -> None:
        super().__init__(db, deadlines)
        self._clock = clock
        self._uniqueness = config.uniqueness
        self.intercept: Callable[[Sequence[Submission], Write], Iterable[Result]] | None = None

    def work(self, tx: SetTransaction, items: Sequence[Submission]) -> Iterable[Result]:
        write = partial(enrol, tx, now=self._clock(), uniqueness=self._uniqueness)
        if self.intercept and any(
            (item.record.external_id or "").startswith(SCRIPTED) for item in items
        ):
            return self.intercept(items, write)
        return write(items)

    async def commit_group(self, items: Sequence[Submission]) -> Sequence[Enrolled | Exception]:
        results = await super().commit_group(items)
        if any(isinstance(each, Enrolled) and _is_work(each) for each in results):
            self.db.announce_work()
        return results


def _is_work(result: Enrolled) -> bool:
    """Whether a worker has an event to send, or an invitation."""
    return result.has_event or not isinstance(result.invitation, NotInvitedReason)
