"""The digests of a file's rows. A row with the digest of its stored member changes nothing, and
need not be parsed (docs/decisions/0075).
"""

from collections.abc import Sequence
from hashlib import blake2b

import orjson

from frontdesk.db import Database, sets
from frontdesk.eligibility.meaning import row_meaning
from frontdesk.eligibility.model import Action
from frontdesk.files.families import FamilyRecogniser
from frontdesk.files.model import EligibilityFile
from frontdesk.formats.model import FileMode
from frontdesk.mapping.model import FileHeader, Row, UnreadRows, keys_of
from frontdesk.plans.model import Plan
from frontdesk.text import keyed_hash

DIGEST_BYTES = 16

# Of rows: their plan, their external_ids, and their digests, None for rows that are always parsed.
SeenRows = tuple[int | None, Sequence[str | None], Sequence[str | None]]


class RowDigests:
    """Makes the digests of a file's rows. Rows for an inactive plan have none: each gets a warning.
    Nor have those of a file that is only compared.
    """

    def __init__(
        self,
        db: Database,
        file: EligibilityFile,
        header: FileHeader,
        plans: Sequence[Plan],
        *,
        mode: FileMode,
        families: FamilyRecogniser | None,
    ) -> None:
        self._plan_ids = {None: file.plan_id} | {plan.external_id: plan.id for plan in plans}
        key = db.ask(sets.installation_key)
        self._hasher = blake2b(row_meaning(), digest_size=DIGEST_BYTES, key=key)
        self._text_hasher = self._hasher.copy()
        self._families = families or FamilyRecogniser(db, file, plans)
        meaning = (file.plan_id, header.columns, file.mapping)
        self._text_hasher.update(orjson.dumps(meaning, option=orjson.OPT_SORT_KEYS))
        is_compared = mode is FileMode.COMPARE
        self._always_parsed = {
            plan.id for plan in plans if is_compared or not plan.accepting_patients
        }

    def plan_of(self, name: str | None) -> int | None:
        """The id of the account's plan with this external_id; for None that of the file's plan."""
        return self._plan_ids.get(name)

    def see(self, item: Row | UnreadRows) -> SeenRows:
        plan_id = self._plan_of_rows(item)
        return plan_id, keys_of(item), self._digests_under(item, plan_id)

    def digests_of(self, item: Row | UnreadRows) -> Sequence[str | None]:
        """They cover the plan and every value, and so the account and the identifier."""
        return self._digests_under(item, self._plan_of_rows(item))

    def _plan_of_rows(self, item: Row | UnreadRows) -> int | None:
        return self._plan_ids.get(None if isinstance(item, UnreadRows) else item.plan)

    def _digests_under(self, item: Row | UnreadRows, plan_id: int | None) -> Sequence[str | None]:
        if plan_id in self._always_parsed:
            return [None] * (1 if isinstance(item, Row) else len(item))
        if isinstance(item, UnreadRows):
            return [keyed_hash(text, self._text_hasher) for text in item.texts]
        return [self._digest_of_row(item, plan_id)]

    def _digest_of_row(self, row: Row, plan_id: int | None) -> str | None:
        if row.skipped or row.faults or row.is_warned or row.action is not Action.ENROL:
            return None
        if row.part is not None:
            return self._families.digest_of(row.part)
        hasher = self._hasher.copy()
        try:
            person = row.context.person and tuple(row.context.person)
            shares_home = row.context.shares_home
            coverages = [(each.kind.name, *each[1:5], each.plan) for each in row.context.coverages]
            said = (plan_id, row.values, row.values_of_new, person, shares_home, coverages)
            hasher.update(orjson.dumps(said))
        except TypeError:  # half of a surrogate pair, or a number that no field takes
            return None
        return hasher.hexdigest()
