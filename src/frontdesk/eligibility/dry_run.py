"""A dry run of `enrol`: the same decisions, written only to a scratch database.

The scratch database holds what earlier chunks would have done, so that later records see it as in the real run. What a chunk
would have done is kept once its outcomes are committed: until then a lost race or a dead connection may run it again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from frontdesk.clock import stored_time
from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.db.engine import scratch_database
from frontdesk.db.sets import insert_set
from frontdesk.eligibility import store
from frontdesk.eligibility.enrol import accepted_of, decide_chunk, submitted_keys, touched_by
from frontdesk.eligibility.model import FIRST_DRY_RUN_ID, Enrolled, StoredMember, Submission
from frontdesk.eligibility.probes import TAKEN_PER_DAY, ProbeLimit
from frontdesk.eligibility.similar import SimilarSearch, with_warnings
from frontdesk.eligibility.tables import members
from frontdesk.errors import FrontdeskError


@dataclass(slots=True)
class DryRun:
    """Members as they would be after the chunks so far. Of each: `begin_chunk`, `enrol`, commit its outcomes, `keep_chunk`."""

    _scratch: Tx
    _limit: ProbeLimit
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

        def overlay(stored: list[StoredMember]) -> list[StoredMember]:
            wanted = submitted_keys(submissions, self._limit.uniqueness)
            found = [store.lock_members(self._scratch, scope, keys) for scope, keys in wanted.items()]
            found.append(store.find_by_ids(self._scratch, [member.values["id"] for member in stored]))
            by_id = {member.values["id"]: member for member in (*stored, *store.stored_members(found))}
            return [*by_id.values()]

        results = decide_chunk(
            tx, submissions, self._limit, now=now, reopens_absent=reopens_absent, overlay=overlay
        )
        created, updated = touched_by(accepted_of(submissions, results))
        with self._scratch.begin_nested():
            return with_warnings(results, self._write(tx, created, updated, today=stored_time(now)[:10]))

    def _write(
        self, tx: Tx, created: Sequence[StoredMember], updated: Sequence[StoredMember], *, today: str
    ) -> dict[int, int]:
        """Returns the ids of members that look like new ones, by the ids of these."""
        for member in created:
            member.values["id"] = self._next_id
            self._next_id += 1
        search = SimilarSearch(created, today, tx, self._scratch)
        earlier = store.find_by_ids(self._scratch, [row["id"] for row in search.found])
        similar = search.ids([*store.stored_members([earlier]), *updated])
        for member in updated:
            member.values.setdefault("created_at", member.values["updated_at"])
        if changed := [member.values for member in (*created, *updated)]:
            store.delete_members(self._scratch, [values["id"] for values in changed])
            insert_set(self._scratch, members, changed)
        return similar


@contextmanager
def dry_run(uniqueness: Uniqueness, *, probe_limit: ProbeLimit | None = None) -> Iterator[DryRun]:
    """A dry run with a scratch database of its own."""
    with scratch_database([members]) as db, db.engine.connect() as scratch:
        yield DryRun(scratch, probe_limit or ProbeLimit(TAKEN_PER_DAY, uniqueness))
