"""The members that a file would take from other plans of its account, found while it is checked.

The feared day is the file of one plan that is sent to another: each of its rows would move a member (docs/files.md).
"""

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from frontdesk.db import Database
from frontdesk.eligibility import find_members_elsewhere
from frontdesk.files.model import EligibilityFile
from frontdesk.plans import list_plans

LOOKUP_KEYS = 2000


class MoveFinder:
    """Looks up the identifiers of a file's rows. Nothing is looked up where no member can move, or where it does not matter any
    more: the file is approved, or is being applied."""

    def __init__(self, db: Database, file: EligibilityFile) -> None:
        self._db, self._file = db, file
        is_decided = file.approved or (file.rows_done > 0 and not file.dry_run)
        plans = [] if is_decided else db.ask(lambda tx: list_plans(tx, file.account_id))
        self._is_off = len(plans) < 2
        self._plan_ids = {plan.external_id: plan.id for plan in plans}
        self._day = ""
        self.begin("")

    def begin(self, day: str) -> None:
        """Begin anew, with the date of the file."""
        self._day = day
        self._keys: defaultdict[int, list[str]] = defaultdict(list)
        self._members = array("q")

    def add(self, keys: Iterable[str], plan: str | None = None) -> None:
        """Note rows with these identifiers, for the plan that they name or else that of the file."""
        plan_id = self._file.plan_id if plan is None else self._plan_ids.get(plan)
        if self._is_off or plan_id is None:
            return
        of_plan = self._keys[plan_id]
        of_plan.extend(keys)
        if len(of_plan) >= LOOKUP_KEYS:
            self._look_up(plan_id, self._keys.pop(plan_id))

    def finish(self) -> Sequence[int]:
        """The ids of the members that would move, each once, in order."""
        while self._keys:
            self._look_up(*self._keys.popitem())
        return array("q", sorted(set(self._members)))

    def _look_up(self, plan_id: int, keys: Collection[str]) -> None:
        account_id = self._file.account_id
        self._members.extend(
            self._db.ask(
                partial(
                    find_members_elsewhere,
                    external_ids=keys,
                    account_id=account_id,
                    plan_id=plan_id,
                    day=self._day,
                )
            )
        )
