"""What `enrol` WOULD do, with nothing written but the scratch database of the rehearsal; the rules are `decide`'s.

What earlier chunks would have done stands in the scratch database, so that a record sees it as in the real run.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from frontdesk.clock import stored_time
from frontdesk.config import Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.db.scratch import scratch_database
from frontdesk.eligibility import store
from frontdesk.eligibility.decide import ChunkState
from frontdesk.eligibility.enrol import keys_by_scope, read_touched
from frontdesk.eligibility.member import Action, Enrolled, StoredMember, Submission
from frontdesk.eligibility.tables import members
from frontdesk.errors import FrontdeskError

# Where the ids of members that exist only in the rehearsal begin: no database gets there.
FIRST_REHEARSED_ID = 2**62


class Rehearsal:
    """Members as they would be after the chunks so far."""

    def __init__(self, scratch: Database, uniqueness: Uniqueness) -> None:
        self._scratch = scratch
        self._by_account = uniqueness is Uniqueness.ACCOUNT
        self._next_id = FIRST_REHEARSED_ID

    def enrol(
        self, tx: Tx, submissions: Sequence[Submission], *, now: datetime
    ) -> list[Enrolled | FrontdeskError]:
        """What `enrol` would answer. Reads through `tx`, locks and writes nothing there."""
        touched = read_touched(tx, submissions, by_account=self._by_account, lock=False)
        stored = touched.stored()
        with self._scratch.write() as scratch:
            ledger = ChunkState(
                self._as_rehearsed(scratch, stored, submissions),
                touched.known(stored_time(now), by_account=self._by_account),
            )
            results = [ledger.decide(submission) for submission in submissions]
            self._remember(scratch, submissions, results)
        return results

    def _as_rehearsed(
        self, scratch: Tx, stored: Sequence[StoredMember], submissions: Sequence[Submission]
    ) -> list[StoredMember]:
        """What is stored, overlaid with what the rehearsal has made of it."""
        wanted = keys_by_scope(submissions, by_account=self._by_account)
        found = [store.lock_members(scratch, scope, keys) for scope, keys in wanted.items()]
        found.append(store.find_by_ids(scratch, [member.values["id"] for member in stored]))
        ours = {row["id"]: StoredMember(store.stored_values(row)) for rows in found for row in rows.rows}
        return [*ours.values(), *(member for member in stored if member.values["id"] not in ours)]

    def _remember(
        self,
        scratch: Tx,
        submissions: Sequence[Submission],
        results: Sequence[Enrolled | FrontdeskError],
    ) -> None:
        touched = {
            id(result.stored): result.stored
            for submission, result in zip(submissions, results, strict=True)
            if isinstance(result, Enrolled) and submission.deed is not Action.COMPARE
        }
        changed = [member for member in touched.values() if member.is_new or member.is_changed]
        for member in changed:
            if member.is_new:
                member.values["id"] = self._next_id
                self._next_id += 1
            member.values.setdefault("created_at", member.values["updated_at"])
        if changed:
            store.delete_members(scratch, [member.values["id"] for member in changed])
            store.insert_members(scratch, [member.values for member in changed])


@contextmanager
def rehearsal(uniqueness: Uniqueness) -> Iterator[Rehearsal]:
    """A rehearsal with a scratch database of its own."""
    with scratch_database([members]) as scratch:
        yield Rehearsal(scratch, uniqueness)
