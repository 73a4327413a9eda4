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
from frontdesk.eligibility.enrol import read_chunk, submitted_keys
from frontdesk.eligibility.model import Action, Enrolled, StoredMember, Submission
from frontdesk.eligibility.tables import members
from frontdesk.errors import FrontdeskError

# Where the ids of members that exist only in the rehearsal begin: no database gets there.
FIRST_REHEARSED_ID = 2**62


class DryRun:
    """Members as they would be after the chunks so far."""

    def __init__(self, scratch: Database, uniqueness: Uniqueness) -> None:
        self._scratch = scratch
        self._uniqueness = uniqueness
        self._next_id = FIRST_REHEARSED_ID

    def enrol(
        self, tx: Tx, submissions: Sequence[Submission], *, now: datetime
    ) -> list[Enrolled | FrontdeskError]:
        """What `enrol` would answer. Reads through `tx`, locks and writes nothing there."""
        reads = read_chunk(tx, submissions, self._uniqueness, lock=False)
        stored = reads.stored()
        with self._scratch.write() as scratch:
            state = ChunkState(
                self._as_rehearsed(scratch, stored, submissions),
                reads.context(stored_time(now), self._uniqueness),
            )
            results = [state.decide(submission) for submission in submissions]
            self._remember(scratch, submissions, results)
        return results

    def _as_rehearsed(
        self, scratch: Tx, stored: Sequence[StoredMember], submissions: Sequence[Submission]
    ) -> list[StoredMember]:
        """What is stored, overlaid with what the rehearsal has made of it."""
        wanted = submitted_keys(submissions, self._uniqueness)
        found = [store.lock_members(scratch, scope, keys) for scope, keys in wanted.items()]
        found.append(store.find_by_ids(scratch, [member.values["id"] for member in stored]))
        ours = {member.values["id"]: member for member in store.stored_members(found)}
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
            if isinstance(result, Enrolled) and submission.action is not Action.COMPARE
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
def dry_run(uniqueness: Uniqueness) -> Iterator[DryRun]:
    """A rehearsal with a scratch database of its own."""
    with scratch_database([members]) as scratch:
        yield DryRun(scratch, uniqueness)
