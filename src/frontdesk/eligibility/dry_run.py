"""A dry run: the decisions of `enrol`, written to a scratch database only, so that later chunks see
them.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from frontdesk.clock import account_day
from frontdesk.config import Uniqueness
from frontdesk.db import Tx, sets
from frontdesk.db.engine import scratch_database
from frontdesk.eligibility import model, store
from frontdesk.eligibility.decide import Result, decide_chunk
from frontdesk.eligibility.enrol import read_chunk, touched_members, with_owners
from frontdesk.eligibility.fitting import add_fitting
from frontdesk.eligibility.model import Enrolled, StoredMember, Submission
from frontdesk.eligibility.row_access import FileTerms
from frontdesk.eligibility.similar import SimilarSearch, SimilarWarnings
from frontdesk.eligibility.tables import members
from frontdesk.eligibility.unique_keys import submitted_keys


@dataclass(slots=True)
class DryRun:
    """Members as they would be after the chunks so far. Of each: `begin_chunk`, `enrol`, commit its
    outcomes, `keep_chunk`: until then a lost race or a dead connection may run it again.
    """

    scratch: Tx
    _uniqueness: Uniqueness
    _next_id: int = model.FIRST_DRY_RUN_ID

    def begin_chunk(self) -> None:
        """Begin the next chunk, or repeat the last: state that was not kept is dropped."""
        self.scratch.rollback()

    def keep_chunk(self) -> None:
        self.scratch.commit()

    def enrol(
        self,
        tx: Tx,
        submissions: Sequence[Submission],
        *,
        now: datetime,
        file: FileTerms | None = None,
        counts_probes: bool = True,
    ) -> list[Result]:
        """The answers that `enrol` would give. Reads through `tx` and locks nothing there; only
        probes are counted, unless the load is to follow, which counts them.
        """
        scratch = self.scratch
        stored = read_chunk(
            tx, submissions, now=now, uniqueness=self._uniqueness, lock=False, file=file
        )
        changed_before = self._changed_members(submissions, stored.members)
        stored.members.update(changed_before)
        if file is not None:
            add_fitting(stored.members, submissions, tx, scratch)
        plans = with_owners(tx, stored.plans, submissions, changed_before.values())
        stored = stored._replace(plans=plans)
        pairs, probes = decide_chunk(stored, submissions, file)
        if counts_probes:
            probes.save(tx)
        results = [result for _, result in pairs]
        accepted = [result for result in results if isinstance(result, Enrolled)]
        created, updated = touched_members(tx, (result.stored for result in accepted))
        with scratch.begin_nested():
            for member in created:
                member.values["id"] = self._next_id
                self._next_id += 1
            similar = SimilarSearch(created, account_day(now, None).earliest, tx, scratch)
            earlier = store.lock_by_ids(scratch, similar.stored_ids(), lock=False)
            warnings = similar.warnings_of([*earlier.values(), *updated])
            for member in updated:
                member.values.setdefault("created_at", member.values["updated_at"])
            changed = [member.values for member in (*created, *updated)]
            sets.delete_set(scratch, members, [{"id": values["id"]} for values in changed])
            sets.insert_set(scratch, members, changed)
        return [_warned(result, warnings) for result in results]

    def _changed_members(
        self, submissions: Sequence[Submission], read: Collection[int]
    ) -> dict[int, StoredMember]:
        """The members with a key of the submissions that earlier chunks have made, and those of
        `read` that they have changed.
        """
        keys = submitted_keys(submissions, self._uniqueness)
        by_id = store.stored_members(store.lock_by_keys(self.scratch, keys, lock=False))
        ids = set(read) - by_id.keys()
        return by_id | store.lock_by_ids(self.scratch, ids, lock=False)


def _warned(result: Result, warnings: SimilarWarnings | None) -> Result:
    if warnings is None or not isinstance(result, Enrolled):
        return result
    warning = warnings.warning_of(result)
    return result if warning is None else result._replace(warnings=(*result.warnings, warning))


@contextmanager
def dry_run(uniqueness: Uniqueness) -> Iterator[DryRun]:
    """A dry run with a scratch database of its own."""
    with scratch_database([members]) as db, db.engine.connect() as scratch:
        yield DryRun(scratch, uniqueness)
