"""What a file or an undo would do to the access of stored members, before it is applied: one pair of
before and after per member, and the rows for which a person may have to decide. They are kept in
the scratch database of the rehearsal, so that a million of them take no memory.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import orjson

from frontdesk.db import Tx
from frontdesk.db.spill import Spill
from frontdesk.eligibility.access_days import AccessPair, Loss, Span, Spans, compare_access
from frontdesk.files import model


class Cause(Enum):
    """Why access changes, as a sentence about one member goes on with it, and one about many."""

    ABSENCE = "because the file omits the member", "because the file omits them"
    END = "because the row ends it", "because their rows end them"
    DATES = "by the dates of the row", "by the dates of their rows"
    UNDO = "because the undo takes back what gave it", "because the undo takes back what gave it"

    @property
    def of_one(self) -> str:
        return self.value[0]

    @property
    def of_many(self) -> str:
        return self.value[1]


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
    """The numbers of a forecast. `losses` are by the plan of the member before, `unseen` those
    that no person has seen yet. `moved` counts members that move with their access,
    `other_people` the rows that are, or may be, about another person than their stored member.
    `later_begins` are, of a full file, members with access and rows that begin after today, although
    the access does not end the day before, and `missing` those that it omits and ends.
    `nameless` counts refused rows that name nobody: an omitted member may be theirs.
    """

    losses: dict[int, Counter[LossKind]] = field(default_factory=dict)
    unseen: Counter[int] = field(default_factory=Counter)
    gained: int = 0
    moved: int = 0
    other_people: int = 0
    later_begins: int = 0
    missing: int = 0
    nameless: int = 0

    @property
    def lost(self) -> int:
        return sum(kinds.total() for kinds in self.losses.values())


class Forecast:
    """The pairs and lines of one file, in a scratch database. `today` is the day on which the file
    began; `shown_ids` are, in order, the members with a loss that a person has approved.
    """

    def __init__(self, scratch: Tx, today: str, shown_ids: Sequence[int] = ()) -> None:
        self.today = today
        self._pairs = Spill(scratch, "access_pairs")
        self._lines = Spill(scratch, "noted_lines")
        self._shown_ids = shown_ids
        self._counts = Counter[str]()  # of the lines, by outcome
        self._missing = 0
        self._nameless = 0

    def note_pairs(self, pairs: Iterable[ForecastPair]) -> None:
        """Keep pairs. Of a member that has one, only the access after is new."""
        noted: dict[int, ForecastPair] = {}
        for pair in pairs:
            first = noted.get(pair.member_id, pair)
            noted[pair.member_id] = _joined(first, pair)
        for member_id, packed in self._pairs.find(noted).items():
            noted[member_id] = _joined(_unpacked(member_id, packed), noted[member_id])
        self._pairs.keep({member_id: _packed(pair) for member_id, pair in noted.items()})

    def note_lines(self, lines: Sequence[model.RowOutcome]) -> None:
        """Keep lines about rows: WOULD_BE_OTHER or WOULD_BE_LATER."""
        first = self._counts.total()
        packed = (orjson.dumps(tuple(line)) for line in lines)
        self._lines.keep(dict(enumerate(packed, first)))
        self._counts.update(line.outcome for line in lines)

    def note_nameless(self, number: int) -> None:
        self._nameless += number

    def note_missing(self, pairs: Sequence[ForecastPair]) -> None:
        """Keep the pairs of members that a full file omits and ends."""
        self._missing += len(pairs)
        self.note_pairs(pairs)

    def tally(self) -> Tally:
        """The numbers of all pairs and lines so far."""
        tally = Tally(
            other_people=self._counts[model.WOULD_BE_OTHER],
            later_begins=self._counts[model.WOULD_BE_LATER],
            missing=self._missing,
            nameless=self._nameless,
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
        return (_unpacked(member_id, packed) for member_id, packed in self._pairs)

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

    def lines(self) -> Iterator[model.RowOutcome]:
        return (model.RowOutcome(*orjson.loads(line)) for _, line in self._lines)

    def _is_shown(self, member_id: int) -> bool:
        place = bisect_left(self._shown_ids, member_id)
        return place < len(self._shown_ids) and self._shown_ids[place] == member_id


def _joined(first: ForecastPair, last: ForecastPair) -> ForecastPair:
    """The pair of a member with two of them."""
    access = AccessPair(first.access.before, last.access.after)
    return last._replace(plan_id=first.plan_id, access=access)


def _packed(pair: ForecastPair) -> bytes:
    before, after = ([tuple(span) for span in spans] for spans in pair.access)
    return orjson.dumps(
        (pair.external_id, pair.plan_id, before, after, pair.cause.name, pair.place)
    )


def _unpacked(member_id: int, packed: bytes) -> ForecastPair:
    external_id, plan_id, before, after, cause, place = orjson.loads(packed)
    access = AccessPair(_spans(before), _spans(after))
    return ForecastPair(member_id, external_id, plan_id, access, Cause[cause], place)


def _spans(packed: Iterable[Sequence[str | int]]) -> Spans:
    return [Span(str(begin), str(end), int(plan_id)) for begin, end, plan_id in packed]
