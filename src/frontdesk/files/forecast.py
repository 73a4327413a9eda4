"""What a file or an undo would do to the access of stored members, before it is applied: one pair of
before and after per member, and the rows for which a person may have to decide. They are kept in
the scratch database of the rehearsal, so that a million of them take no memory.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from frontdesk.db import Tx
from frontdesk.eligibility.access_days import AccessPair, Loss, Span, Spans, compare_access
from frontdesk.files import model

READ_TOGETHER = 5000

scratch_metadata = sa.MetaData()
_pairs = sa.Table(
    "access_pairs",
    scratch_metadata,
    sa.Column("member_id", sa.BigInteger(), primary_key=True),
    sa.Column("external_id", sa.Text()),
    sa.Column("plan_id", sa.BigInteger()),
    sa.Column("before", sa.LargeBinary()),
    sa.Column("after", sa.LargeBinary()),
    sa.Column("cause", sa.Text()),
    sa.Column("place", sa.Integer()),
)
_lines = sa.Table(
    "noted_lines",
    scratch_metadata,
    sa.Column("number", sa.Integer(), primary_key=True),
    sa.Column("line", sa.LargeBinary()),
)
SCRATCH_TABLES = (_pairs, _lines)


class Cause(StrEnum):
    """Why the access of a member changes, as a sentence goes on with it."""

    ABSENCE = "because the file omits them"
    END = "because their rows end them"
    DATES = "by the dates of their rows"
    UNDO = "because the undo takes back what gave it"


class ForecastPair(NamedTuple):
    """The access of a member before and after. `plan_id` is that of its record before; `place` is
    the row's, None for a member without one.
    """

    member_id: int
    external_id: str
    plan_id: int
    access: AccessPair
    cause: Cause
    place: int | None = None


class LossKind(NamedTuple):
    """Losses that a sentence can tell together."""

    cause: Cause
    first_day: str
    returns: str


@dataclass(slots=True)
class Tally:
    """The numbers of a forecast. `losses` are by the plan of the member before, `unseen` those of
    members whose loss no person has seen yet. `moved` counts members that move with their access,
    `other_people` the rows that are, or may be, about another person than their stored member.
    `later_begins` are, of a full file, members with access whose rows begin after today, although
    their access does not end the day before, and `missing` those that it omits and ends.
    """

    losses: dict[int, Counter[LossKind]] = field(default_factory=dict)
    unseen: Counter[int] = field(default_factory=Counter)
    gained: int = 0
    moved: int = 0
    other_people: int = 0
    later_begins: int = 0
    missing: int = 0

    @property
    def lost(self) -> int:
        return sum(kinds.total() for kinds in self.losses.values())


class Forecast:
    """The pairs and lines of one file, in a scratch database. `today` is the day on which the file
    began; `shown_ids` are, in order, the members whose loss a person has seen and approved.
    """

    def __init__(self, scratch: Tx, today: str, shown_ids: Sequence[int] = ()) -> None:
        self._scratch = scratch
        self.today = today
        self._shown_ids = shown_ids
        self._other_people = 0
        self._later_begins = 0
        self._missing = 0

    def note_pairs(self, pairs: Iterable[ForecastPair]) -> None:
        """Keep pairs. Of a member that has one, only the access after is new."""
        rows = [
            {
                **pair._asdict(),
                "before": _packed(pair.access.before),
                "after": _packed(pair.access.after),
            }
            for pair in pairs
        ]
        if not rows:
            return
        for row in rows:
            del row["access"]
        query = insert(_pairs)
        later = {name: query.excluded[name] for name in ("after", "cause", "place")}
        query = query.on_conflict_do_update(index_elements=["member_id"], set_=later)
        self._scratch.execute(query, rows)
        self._scratch.commit()

    def note_other_people(self, lines: Sequence[model.RowOutcome]) -> None:
        """Keep lines about rows that are, or may be, about other people."""
        self._other_people += len(lines)
        if lines:
            rows = [{"line": orjson.dumps(tuple(line))} for line in lines]
            self._scratch.execute(sa.insert(_lines), rows)
            self._scratch.commit()

    def note_later_begins(self, number: int) -> None:
        self._later_begins += number

    def note_missing(self, pairs: Sequence[ForecastPair]) -> None:
        """Keep the pairs of members that a full file omits and ends."""
        self._missing += len(pairs)
        self.note_pairs(pairs)

    def tally(self) -> Tally:
        """The numbers of all pairs and lines so far."""
        tally = Tally(
            other_people=self._other_people, later_begins=self._later_begins, missing=self._missing
        )
        for pair in self.pairs():
            change = compare_access(*pair.access, self.today)
            tally.gained += bool(change.gained_from)
            tally.moved += change.is_moved
            if change.loss is None:
                continue
            kind = LossKind(pair.cause, change.loss.first_day, change.loss.returns)
            tally.losses.setdefault(pair.plan_id, Counter())[kind] += 1
            tally.unseen[pair.plan_id] += not self._is_shown(pair.member_id)
        return tally

    def pairs(self) -> Iterator[ForecastPair]:
        """All pairs, by the ids of their members."""
        after = 0
        while True:
            query = sa.select(_pairs).where(_pairs.c.member_id > after)
            found = self._scratch.execute(
                query.order_by(_pairs.c.member_id).limit(READ_TOGETHER)
            ).all()
            for row in found:
                access = AccessPair(_unpacked(row.before), _unpacked(row.after))
                owner = (row.member_id, row.external_id, row.plan_id)
                yield ForecastPair(*owner, access, Cause(row.cause), row.place)
            if len(found) < READ_TOGETHER:
                return
            after = found[-1].member_id

    def losses(self) -> Iterator[tuple[ForecastPair, Loss]]:
        """The pairs of members that lose access, with what they lose first."""
        for pair in self.pairs():
            loss = compare_access(*pair.access, self.today).loss
            if loss is not None:
                yield pair, loss

    def moves(self) -> Iterator[ForecastPair]:
        """The pairs of members that move to another plan with their access."""
        for pair in self.pairs():
            if compare_access(*pair.access, self.today).is_moved:
                yield pair

    def other_people(self) -> Iterator[model.RowOutcome]:
        after = 0
        while True:
            query = sa.select(_lines).where(_lines.c.number > after).order_by(_lines.c.number)
            found = self._scratch.execute(query.limit(READ_TOGETHER)).all()
            for row in found:
                yield model.RowOutcome(*orjson.loads(row.line))
            if len(found) < READ_TOGETHER:
                return
            after = found[-1].number

    def _is_shown(self, member_id: int) -> bool:
        place = bisect_left(self._shown_ids, member_id)
        return place < len(self._shown_ids) and self._shown_ids[place] == member_id


def _packed(spans: Spans) -> bytes:
    return orjson.dumps([tuple(span) for span in spans])


def _unpacked(packed: bytes) -> Spans:
    return [Span(*span) for span in orjson.loads(packed)]
