"""A dry run of `enrol`: the same decisions, written only to a scratch database.

The scratch database holds what earlier chunks would have done, so that later records see it as in the real run. What a chunk
would have done is kept once its outcomes are committed: until then a lost race or a dead connection may run it again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.db.engine import scratch_database
from frontdesk.db.sets import insert_set
from frontdesk.eligibility import store
from frontdesk.eligibility.decide import ChunkState
from frontdesk.eligibility.enrol import read_chunk, submitted_keys
from frontdesk.eligibility.model import FIRST_DRY_RUN_ID, Action, Enrolled, StoredMember, Submission
from frontdesk.eligibility.probes import TAKEN_PER_DAY, ProbeLimit, sources_of
from frontdesk.eligibility.similar import SimilarSearch, with_warnings
from frontdesk.eligibility.tables import members
from frontdesk.errors import FrontdeskError


@dataclass(slots=True)
class DryRun:
    """Members as they would be after the chunks so far. Of each: `begin_chunk`, `enrol`, commit its outcomes, `keep_chunk`."""

    _scratch: Tx
    _uniqueness: Uniqueness
    _probe_limit: ProbeLimit
    _next_id: int = FIRST_DRY_RUN_ID

    def begin_chunk(self) -> None:
        """Begin the next chunk, or the last one again: what was not kept is forgotten."""
        self._scratch.rollback()

    def keep_chunk(self) -> None:
        self._scratch.commit()

    def enrol(
        self, tx: Tx, submissions: Sequence[Submission], *, now: datetime, reopens_absent: bool
    ) -> list[Enrolled | FrontdeskError]:
        """The answers that `enrol` would give. Reads through `tx` and locks nothing there; only probes are counted."""
        stored, context, told = read_chunk(
            tx, submissions, self._uniqueness, self._probe_limit, now=now, lock=False
        )
        members = self._with_dry_run(stored, submissions)
        probes = self._probe_limit.begin(told, sources_of(submissions), members, now=now)
        state = ChunkState(members, replace(context, reopens_absent=reopens_absent), probes)
        results = [state.decide(submission) for submission in submissions]
        self._probe_limit.end(tx, probes)  # may have to be decided again, on the same scratch database
        with self._scratch.begin_nested():
            return with_warnings(results, self._write(tx, submissions, results, today=context.today))

    def _with_dry_run(
        self, stored: Sequence[StoredMember], submissions: Sequence[Submission]
    ) -> list[StoredMember]:
        """The stored members, each as the dry run would have left it."""
        scratch = self._scratch
        wanted = submitted_keys(submissions, self._uniqueness)
        found = [store.lock_members(scratch, scope, keys) for scope, keys in wanted.items()]
        found.append(store.find_by_ids(scratch, [member.values["id"] for member in stored]))
        ours = {member.values["id"]: member for member in store.stored_members(found)}
        return [*ours.values(), *(member for member in stored if member.values["id"] not in ours)]

    def _write(
        self,
        tx: Tx,
        submissions: Sequence[Submission],
        results: Sequence[Enrolled | FrontdeskError],
        *,
        today: str,
    ) -> dict[int, int]:
        """Returns the ids of members that look like new ones, by the ids of these."""
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
        similar = self._find_similar(tx, changed, today)
        if changed:
            store.delete_members(self._scratch, [member.values["id"] for member in changed])
            insert_set(self._scratch, members, [member.values for member in changed])
        return similar

    def _find_similar(self, tx: Tx, changed: Sequence[StoredMember], today: str) -> dict[int, int]:
        created = [member for member in changed if member.is_new]
        ours, stored = SimilarSearch(self._scratch, created, today), SimilarSearch(tx, created, today)
        earlier = store.find_by_ids(self._scratch, [row["id"] for row in stored.found])
        present = [
            member.values for member in (*store.stored_members([earlier]), *changed) if not member.is_new
        ]
        return ours.ids(present) | stored.ids(present)


@contextmanager
def dry_run(uniqueness: Uniqueness, *, probe_limit: ProbeLimit | None = None) -> Iterator[DryRun]:
    """A dry run with a scratch database of its own."""
    with scratch_database([members]) as db, db.engine.connect() as scratch:
        yield DryRun(scratch, uniqueness, probe_limit or ProbeLimit(TAKEN_PER_DAY, uniqueness))
