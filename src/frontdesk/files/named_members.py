"""The stored members that a file's rows name, looked up while the file is checked."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from frontdesk.db import Database
from frontdesk.eligibility import find_known, find_look_alikes, has_members, parse_member
from frontdesk.eligibility.model import Action
from frontdesk.eligibility.similar import PERSON_FIELDS
from frontdesk.files.model import EligibilityFile, FileMode, Row, UnreadRows
from frontdesk.plans import list_plans

LOOKUP_KEYS = 2000
FEWEST_SIMILAR = 25  # fewer new members who look alike hold no file


@dataclass(frozen=True, slots=True)
class NamedMembers:
    """The stored members that a file's rows name: the ids of all, in order, and of those that would leave another plan. `similar`
    has for each new member that looks like a stored one which the file does not name the id of that one and the row's place."""

    met: Sequence[int]
    moving: Sequence[int]
    similar: Sequence[tuple[int, int]]


class MemberLookup:
    """Looks up the members of a file's rows, refused rows too. Nothing is looked up where it does not matter any more."""

    def __init__(self, db: Database, file: EligibilityFile) -> None:
        self._db, self._file = db, file
        plans = db.ask(lambda tx: list_plans(tx, file.account_id))
        self._plan_ids = {plan.external_id: plan.id for plan in plans}
        self._is_decided = file.approved or (file.rows_done > 0 and not file.dry_run)
        # Fewer members can't be too many.
        some = partial(has_members, plan_ids=[plan.id for plan in plans], count=FEWEST_SIMILAR + 1)
        self._wants_similar = not self._is_decided and db.ask(some)
        self.begin("", FileMode.CHANGE)

    def begin(self, day: str, mode: FileMode) -> None:
        """Begin anew, with the date and the mode of the file."""
        self._day = day
        self._is_off = mode is FileMode.COMPARE or (self._is_decided and mode is not FileMode.FULL)
        self._waiting: list[tuple[str, int | None, Sequence[Row] | UnreadRows, int]] = []
        self._met, self._moving, self._similar = array("q"), array("q"), list[tuple[int, int]]()

    def add(self, key: str, row: Row) -> None:
        """Note a row and the identifier of its member."""
        named = self._file.plan_id if row.plan is None else self._plan_ids.get(row.plan)
        enrols = row.action is Action.ENROL and not row.faults
        self._add([(key, named if enrols else None, [row], 0)])

    def add_unread(self, rows: UnreadRows, keys: Sequence[str | None]) -> None:
        """Note rows of the file's plan with these identifiers; None where a row has none."""
        plan_id = self._file.plan_id
        self._add((key, plan_id, rows, position) for position, key in enumerate(keys) if key is not None)

    def _add(self, found: Iterable[tuple[str, int | None, Sequence[Row] | UnreadRows, int]]) -> None:
        if self._is_off:
            return
        self._waiting.extend(found)
        if len(self._waiting) >= LOOKUP_KEYS:
            self._look_up()

    def finish(self) -> NamedMembers:
        self._look_up()
        met = array("q", sorted(set(self._met)))
        similar = [(id_, place) for id_, place in self._similar if not _contains(met, id_)]
        return NamedMembers(met, array("q", sorted(set(self._moving))), similar)

    def _look_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        keys = [key for key, *_ in waiting]
        known = self._db.ask(partial(find_known, external_ids=keys, account_id=self._file.account_id))
        new = []
        for key, plan_id, rows, position in waiting:
            member = known.get(key)
            if member is not None:
                self._met.append(member.id)
                is_open = member.expiry_date is None or member.expiry_date > self._day
                if plan_id not in (None, member.plan_id) and is_open:
                    self._moving.append(member.id)
            elif plan_id is not None:
                new.append((rows, position))
        if new and self._wants_similar:
            rows_read = (rows.row(at) if isinstance(rows, UnreadRows) else rows[at] for rows, at in new)
            self._find_similar(rows_read)

    def _find_similar(self, rows: Iterable[Row]) -> None:
        people, places = [], []
        for row in rows:
            values = {name: row.values[name] for name in PERSON_FIELDS if name in row.values}
            given = parse_member(values, today=self._day).given
            if given.keys() >= PERSON_FIELDS:
                people.append({**given, "account_id": self._file.account_id})
                places.append(row.place)
        found = self._db.ask(partial(find_look_alikes, people=people, today=self._day))
        self._similar += [(id_, place) for id_, place in zip(found, places, strict=True) if id_ is not None]


def _contains(ids: Sequence[int], id_: int) -> bool:
    position = bisect_left(ids, id_)
    return position < len(ids) and ids[position] == id_
