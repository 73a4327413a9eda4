"""Senders: each writes what it knows on a day as a file, by its own habits (pure).

With the content comes what the file says of each person, as its sender means it (`Statement`).
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from tests.formats.reading import GS, ISA, person, transaction
from tests.histories import days
from tests.histories.world import (
    DENTAL,
    MEDICAL,
    PLANS,
    Change,
    Enrolment,
    Person,
    Stretch,
    World,
    first_of_next_month,
)

CHANGE = "change 834"
FULL = "full 834"
TABLE = "table"
LISTED_AFTER_END = timedelta(days=31)
OPEN_ENROLMENT_MONTHS = (11, 12)
WAYS = {"code": "REF*0F+person_code", "card": "REF*23"}
LINES = {"Gold": "HLT*Gold", "Silver": "PPO*Silver", "Teeth": "DEN*Teeth"}


@dataclass(frozen=True, slots=True)
class Habits:
    """How the employers write their files.

    form: CHANGE, FULL or TABLE. begin_by and end_by: the qualifier of DTP. has_hd: an end of
    everything and a new name carry the coverages. is_ahead: changes are sent when they are known,
    else when they take effect. ends_first: the begin of a new plan comes one file after the end of
    the old one. is_one_loop: both are in one INS loop. end_code: INS03 of an end. cancel_by: HD01
    or INS03 of a coverage that was never effective. reinstate_by, audit_by: INS03; `025 HD` is 025
    with a coverage. has_dental: other coverages are sent too. dental_end_by: the qualifier of their
    end. purpose: BGN08 of a full 834. identify: the number of a person (card), or that of the
    family with the code of the person (code). names_plans: HD04 of a change 834
    names the plan. all_homes: dependents have an address. newborn: the first name of a child
    without one.

    Of tables. is_full: those that are omitted have ended. has_expiry: there is a column for the last
    day, which by `clears` says that there is none. has_names: later files have names too. lists_left:
    employees who have left are listed for a month with a status. lists: those who have access on the
    day (today), at open enrolment next year's coverage instead (next year), or those of the next
    month, beginning then (next month). hired: the begin is that of the first coverage, so nothing says
    that a list is that of next year.
    """

    form: str = CHANGE
    begin_by: str = "348"
    end_by: str = "349"
    has_hd: bool = True
    is_ahead: bool = True
    ends_first: bool = False
    is_one_loop: bool = False
    end_code: str = "024"
    cancel_by: str = "002"
    reinstate_by: str = "025"
    audit_by: str = "001"
    has_dental: bool = True
    dental_end_by: str = "349"
    purpose: str = "RX"
    identify: str = "code"
    names_plans: bool = False
    all_homes: bool = True
    newborn: str = ""
    is_full: bool = True
    has_expiry: bool = False
    clears: bool = False
    has_names: bool = True
    lists_left: bool = False
    lists: str = "today"
    hired: bool = False

    @property
    def has_plan_names(self) -> bool:
        """Whether the files say under which plan a coverage is."""
        return self.form == CHANGE and self.names_plans


@dataclass(slots=True)
class Statement:
    """What a file says of one enrolment: `gives` are the days on which its rows say that there is
    access. `rows` describe them. One that `is_omitted` has no row.
    """

    enrolment: Enrolment
    key: str
    gives: int = 0
    rows: list[str] = field(default_factory=list)
    is_omitted: bool = False


@dataclass(slots=True)
class SentFile:
    """A file and what it says. `told_before` are the days that files had told of each person."""

    day: date
    employer: int
    content: bytes
    mapping: dict[str, Any]
    is_full: bool
    statements: list[Statement]
    told_before: dict[Person, int]

    def about(self, person_: Person) -> Iterator[Statement]:
        return (each for each in self.statements if each.enrolment.person is person_)

    def people_of(self, key: str) -> list[Person]:
        """The people about whom the rows with this external_id are."""
        return [
            each.enrolment.person
            for each in self.statements
            if each.key == key and not each.is_omitted
        ]


@dataclass(frozen=True, slots=True)
class Level:
    """An HD: HD01, the coverage, its end and the qualifier of the end."""

    code: str
    stretch: Stretch
    end: date | None = None
    end_by: str = "349"


class Sender:
    """Writes the files of one employer."""

    def __init__(self, world: World, habits: Habits, employer: int) -> None:
        self._world = world
        self._habits = habits
        self._employer = employer
        self._is_first = True
        self._statements: dict[Enrolment, Statement] = {}
        self._day = date.min
        self._listed_day = date.min

    def write(self, day: date) -> SentFile | None:
        """The file of the day; None if there is nothing to say."""
        self._statements = {}
        self._day = day
        world = self._world
        told_before = {each: world.told(each) for each in world.people}
        form = self._habits.form
        if form == TABLE:
            rows = self._table_rows()
            content = _csv(rows) if rows else b""
        else:
            loops = self._full_loops() if form == FULL else self._change_loops()
            content = self._interchange(loops) if loops else b""
        if not content:
            return None
        self._is_first = False
        return SentFile(
            day=day,
            employer=self._employer,
            content=content,
            mapping=self._mapping(),
            is_full=form == TABLE and self._habits.is_full,
            statements=[*self._statements.values()],
            told_before=told_before,
        )

    def key(self, enrolment: Enrolment) -> str:
        """The external_id."""
        if self._habits.identify == "card":
            return enrolment.card
        return f"{enrolment.family}-{enrolment.code}"

    # Change 834

    def _change_loops(self) -> list[str]:
        sent = [each for each in self._world.changes if self._is_due(each)]
        if self._habits.ends_first:
            # The new plan waits for the file after the one with the end.
            sent = [each for each in sent if each.pair is None or each.pair not in sent]
        kept = [each for each in self._world.changes if each not in sent]
        self._world.changes[:] = kept
        loops = []
        paired = {}
        if self._habits.is_one_loop:
            paired = {each.pair: each for each in sent if each.pair in sent and each.is_in_force}
        for change in sent:
            if change in paired.values():
                continue
            loops.append(self._loop_of(change, paired.get(change)))
        return [loop for loop in loops if loop]

    def _is_due(self, change: Change) -> bool:
        if change.enrolment.employer != self._employer:
            return False
        return self._habits.is_ahead or change.effective <= self._day

    def _loop_of(self, change: Change, new: Change | None) -> str:
        """The INS loop of a change; of a change of the plan in one loop, `new` is the begin."""
        stretch = change.stretch
        if not change.is_in_force and change.kind != "cancel":
            return ""  # it was taken back before a file told it
        if stretch is not None and stretch.line == DENTAL:
            return self._dental_loop(change, stretch) if self._habits.has_dental else ""
        if change.kind == "add" and stretch is not None:
            return self._loop(change.enrolment, "021", [self._told_add(change.enrolment, stretch)])
        if change.kind == "end" and stretch is not None:
            return self._end_loop(change, stretch, new)
        if change.kind == "cancel" and stretch is not None:
            return self._cancel_loop(change.enrolment, stretch)
        if change.kind == "reinstate" and stretch is not None:
            return self._reinstate_loop(change.enrolment, stretch)
        levels = self._levels_in_force(change.enrolment) if self._habits.has_hd else []
        self._say(change.enrolment, "001 new name" + (" with HD" if levels else ""))
        return self._loop(change.enrolment, self._habits.audit_by, levels)

    def _told_add(self, enrolment: Enrolment, stretch: Stretch) -> Level:
        """The HD of a begin, with an end that is known."""
        end = self._told_end(stretch)
        self._tell(enrolment, stretch, end)
        self._say(enrolment, f"021 {stretch.plan} from {stretch.begin} to {end or 'open'}")
        return Level("021", stretch, end)

    def _told_end(self, stretch: Stretch) -> date | None:
        """The end that the sender tells of a coverage, if it has come or changes are sent ahead."""
        is_told = stretch.end is not None and (self._habits.is_ahead or stretch.end <= self._day)
        return stretch.end if is_told else None

    def _end_loop(self, change: Change, stretch: Stretch, new: Change | None) -> str:
        enrolment = change.enrolment
        if stretch.end is None:
            return ""  # it was taken back before a file told it
        end_by = self._habits.end_by
        others = union_told(enrolment, stretch)
        is_all = not others and new is None and not change_follows(self._world.changes, change)
        if end_by == "357" and not is_all:
            end_by = "349"
        stretch.told &= days.until(stretch.end)
        code = self._habits.end_code
        if is_all and not self._habits.has_hd and code == "024":
            for other in enrolment.stretches:
                other.told &= days.until(stretch.end)
            self._say(enrolment, f"024 without HD to {stretch.end}")
            dates = f"DTP*357*D8*{stretch.end:%Y%m%d}~"
            return self._loop(enrolment, code, [], dates=dates, reason=change.reason)
        dates = f"DTP*357*D8*{stretch.end:%Y%m%d}~" if end_by == "357" else ""
        levels = [Level("024", stretch, stretch.end, end_by)]
        self._say(enrolment, f"{code} HD*024 {stretch.plan} to {stretch.end} by {end_by}")
        if new is not None and new.stretch is not None:
            levels.append(self._told_add(enrolment, new.stretch))
            code = "001"
        return self._loop(enrolment, code, levels, dates=dates, reason=change.reason)

    def _cancel_loop(self, enrolment: Enrolment, stretch: Stretch) -> str:
        if not stretch.told:
            return ""
        stretch.told = 0
        self._say(enrolment, f"{self._habits.cancel_by} {stretch.plan} from {stretch.begin}")
        if self._habits.cancel_by == "002":
            return self._loop(enrolment, "001", [Level("002", stretch)])
        before = stretch.begin - timedelta(days=1)
        return self._loop(enrolment, "024", [Level("024", stretch, before)])

    def _reinstate_loop(self, enrolment: Enrolment, stretch: Stretch) -> str:
        code = self._habits.reinstate_by
        end = self._told_end(stretch)
        self._tell(enrolment, stretch, end)
        self._say(enrolment, f"reinstated by {code}, {stretch.plan} from {stretch.begin}")
        if code == "025":
            return self._loop(enrolment, "025", [])
        return self._loop(enrolment, code[:3], [Level(code[:3], stretch, end)])

    def _dental_loop(self, change: Change, stretch: Stretch) -> str:
        """A coverage that does not count. Medical access goes on unsaid."""
        enrolment = change.enrolment
        if change.kind == "add":
            self._say(enrolment, "dental begins")
            return self._loop(enrolment, "021", [Level("021", stretch, stretch.end)])
        if change.kind == "end" and stretch.end is not None:
            end_by = self._habits.dental_end_by
            dates = f"DTP*357*D8*{stretch.end:%Y%m%d}~" if end_by == "357" else ""
            level = Level("024", stretch, stretch.end, end_by)
            self._say(enrolment, f"dental ends by {end_by}, {self._habits.end_code}")
            return self._loop(enrolment, self._habits.end_code, [level], dates=dates)
        return ""

    # Full 834

    def _full_loops(self) -> list[str]:
        loops = []
        for enrolment in self._own():
            levels = self._levels_in_force(enrolment)
            if not enrolment.days & days.since(self._day) or not levels:
                self._omit(enrolment, self._day)
                continue
            enrolment.is_listed = True
            loops.append(self._loop(enrolment, "030", levels))
        return loops

    def _levels_in_force(self, enrolment: Enrolment) -> list[Level]:
        """The HDs of what is in force or, if changes are sent ahead, to come. In a full file they are
        all of the member from its earliest begin on.
        """
        listed = [
            each
            for each in enrolment.stretches
            if each.days & days.since(self._day)
            and (self._habits.is_ahead or each.begin <= self._day)
            and (each.line == MEDICAL or self._habits.has_dental)
        ]
        medical = [each for each in listed if each.line == MEDICAL]
        if not medical:
            return []
        if self._habits.form == FULL:
            self._forget_others(enrolment, medical)
        for stretch in medical:
            self._tell(enrolment, stretch, self._told_end(stretch))
        code = "030" if self._habits.form == FULL else self._habits.audit_by
        for stretch in medical:
            end = self._told_end(stretch)
            self._say(enrolment, f"HD {stretch.plan} from {stretch.begin} to {end or 'open'}")
        return [Level(code, each, self._told_end(each)) for each in listed]

    def _forget_others(self, enrolment: Enrolment, listed: Sequence[Stretch]) -> None:
        """The listed coverages are all, from the earliest begin on."""
        begin = min(each.begin for each in listed)
        for stretch in enrolment.of():
            stretch.told &= ~days.since(begin)
        for stretch in enrolment.stretches:
            if stretch.is_void:
                stretch.told = 0

    def _omit(self, enrolment: Enrolment, last_day: date) -> None:
        for stretch in enrolment.stretches:
            stretch.told &= days.until(last_day)
        if enrolment.is_listed:
            later = "a list of a later day" if last_day > self._day else "the list"
            self._say(enrolment, f"omitted from {later}")
            self._statement(enrolment).is_omitted = True
        enrolment.is_listed = False

    # Tables

    def _table_rows(self) -> list[dict[str, str]]:
        rows = []
        self._listed_day = self._day_of_list()
        last_day = self._day
        if self._listed_day > self._day and any(map(self._stretch_listed, self._own())):
            last_day = self._listed_day - timedelta(days=1)
        for enrolment in self._own():
            stretch = self._stretch_listed(enrolment)
            if stretch is not None:
                rows.append(self._active_row(enrolment, stretch))
                enrolment.is_listed = True
                continue
            left = self._left_row(enrolment) if self._habits.lists_left else None
            if left is not None:
                rows.append(left)
            elif self._habits.is_full:
                self._omit(enrolment, last_day)
        return rows

    def _day_of_list(self) -> date:
        """The day for which the table lists those who have access."""
        lists = self._habits.lists
        if lists == "next month":
            return first_of_next_month(self._day)
        new_year = date(self._day.year + 1, 1, 1)
        # Whose rows begin on the day of hire say nothing of a later day: nobody could read it.
        says_begin = not self._habits.hired
        if lists == "next year" and says_begin and self._day.month in OPEN_ENROLMENT_MONTHS:
            listed = [each for each in self._own() if days.contains(each.days, new_year)]
            renewed = [each for each in listed if any(s.begin == new_year for s in each.of())]
            if 2 * len(renewed) > len(listed):
                return new_year
        return self._day

    def _stretch_listed(self, enrolment: Enrolment) -> Stretch | None:
        """The coverage of the row: that on the day of the list, else if changes are sent ahead the
        next one.
        """
        day = self._listed_day
        for stretch in enrolment.of():
            if days.contains(stretch.days, day):
                return stretch
        coming = [each for each in enrolment.of() if each.begin > day and each.days]
        return coming[0] if coming and self._habits.is_ahead else None

    def _active_row(self, enrolment: Enrolment, stretch: Stretch) -> dict[str, str]:
        begin = stretch.begin
        if self._habits.lists == "next month":
            begin = max(begin, self._listed_day)
        elif self._habits.hired:
            begin = enrolment.of()[0].begin
        end = stretch.end if self._habits.has_expiry else None
        for other in enrolment.stretches:
            other.told &= 0 if other.is_void else ~days.since(begin)
        later = "as of a later day, " if self._listed_day > self._day else ""
        self._say(enrolment, f"listed {later}from {begin} to {end or 'open'}")
        self._give(enrolment, begin, end)
        stretch.told |= days.between(begin, end)
        row = self._row(enrolment) | {"effective_date": begin.isoformat()}
        if self._habits.has_expiry:
            row["expiry_date"] = end.isoformat() if end else "\\N" * self._habits.clears
        if self._habits.lists_left:
            row["status"] = "active"
        return row

    def _left_row(self, enrolment: Enrolment) -> dict[str, str] | None:
        """The row of one who has left within a month; None for others."""
        ends = [each.end for each in enrolment.of() if each.end is not None]
        last = max(ends, default=None)
        if last is None or not last <= self._day <= last + LISTED_AFTER_END:
            return None
        row = self._row(enrolment)
        row |= {"effective_date": enrolment.of()[-1].begin.isoformat(), "status": "terminated"}
        said = self._day
        if self._habits.has_expiry:
            row["expiry_date"] = last.isoformat()
            said = last
        for stretch in enrolment.stretches:
            stretch.told &= days.until(said)
        self._say(enrolment, f"listed as terminated, {said}")
        return row

    def _row(self, enrolment: Enrolment) -> dict[str, str]:
        someone = enrolment.person
        key = self.key(enrolment)
        row = {"external_id": key, "member_id": key}
        if self._habits.has_names or self._is_first:
            row |= {"first_name": self._first_name(someone), "last_name": someone.last}
        return row | {
            "dob": someone.dob.isoformat(),
            "gender": {"F": "female", "M": "male"}[someone.sex],
            "zipcode": "02134",
            "subscriber_relationship": "Primary" if enrolment.is_subscriber else "Dependent",
        }

    # Parts of all

    def _own(self) -> list[Enrolment]:
        return [each for each in self._world.enrolments if each.employer == self._employer]

    def _first_name(self, someone: Person) -> str:
        return someone.first or self._habits.newborn

    def _statement(self, enrolment: Enrolment) -> Statement:
        found = self._statements.get(enrolment)
        if found is None:
            found = self._statements[enrolment] = Statement(enrolment, self.key(enrolment))
        return found

    def _say(self, enrolment: Enrolment, text: str) -> None:
        self._statement(enrolment).rows.append(text)

    def _give(self, enrolment: Enrolment, begin: date, end: date | None) -> None:
        """A row says that there is access from the begin to the end."""
        self._statement(enrolment).gives |= days.between(begin, end)

    def _tell(self, enrolment: Enrolment, stretch: Stretch, end: date | None) -> None:
        """A row says that the coverage lasts to the end."""
        self._give(enrolment, stretch.begin, end)
        stretch.told = days.between(stretch.begin, end)

    def _hd(self, level: Level, begin_by: str) -> str:
        """An HD with its dates."""
        stretch = level.stretch
        text = f"HD*{level.code}**{LINES[stretch.plan]}~"
        is_end_by_303 = level.end is not None and level.end_by == "303"
        if begin_by == "348" and not is_end_by_303:
            text += f"DTP*348*D8*{stretch.begin:%Y%m%d}~"
        elif begin_by == "303" and not is_end_by_303:
            text += f"DTP*303*D8*{stretch.begin:%Y%m%d}~"
        if level.end is not None and level.end_by != "357":
            text += f"DTP*{level.end_by}*D8*{level.end:%Y%m%d}~"
        return text

    def _begin_by(self, levels: Sequence[Level]) -> str:
        """The qualifier of the begins of a loop. Only a lone begin is said for the member, or by the
        day of the change.
        """
        is_lone_begin = len(levels) == 1 and levels[0].code in ("021", "001", "025")
        return self._habits.begin_by if is_lone_begin else "348"

    def _loop(
        self,
        enrolment: Enrolment,
        code: str,
        levels: Sequence[Level],
        *,
        dates: str = "",
        reason: str = "28",
    ) -> str:
        someone = enrolment.person
        begin_by = self._begin_by(levels)
        if begin_by == "356":
            dates = f"DTP*356*D8*{levels[0].stretch.begin:%Y%m%d}~{dates}"
        number = f"REF*17*{enrolment.code}~REF*23*{enrolment.card}~{dates}"
        has_home = self._habits.all_homes or enrolment.is_subscriber
        text = person(
            self._first_name(someone),
            f"{someone.dob:%Y%m%d}",
            relation=enrolment.relation,
            code=code,
            family=enrolment.family,
            number=number,
            last=someone.last,
            coverage="".join(self._hd(level, begin_by) for level in levels),
            **({} if has_home else {"home": ""}),
        )
        text = text.replace(f"*{code}*28*A", f"*{code}*{reason}*A", 1)
        return text.replace("*F~", f"*{someone.sex}~", 1) if someone.sex == "M" else text

    def _interchange(self, loops: Sequence[str]) -> bytes:
        day = f"{self._day:%Y%m%d}"
        purpose = self._habits.purpose if self._habits.form == FULL else "2"
        isa = ISA.replace("*261120*", f"*{day[2:]}*")
        gs = GS.replace("*20261120*", f"*{day}*")
        body = transaction(*loops, purpose=purpose, day=day)
        return f"{isa}{gs}{body}GE*1*3~IEA*1*000000007~".encode()

    def _mapping(self) -> dict[str, Any]:
        if self._habits.form == TABLE:
            left = {"column": "status", "equals": ["terminated"]}
            return {"end": [left]} if self._habits.lists_left else {}
        way = WAYS[self._habits.identify]
        mapping: dict[str, Any] = {"834": {"identify": way, "verify": "full"}}
        if self._habits.has_plan_names:
            mapping["834"]["plan"] = "HD04"
            mapping["plans"] = {name: f"plan-{number}" for number, name in enumerate(PLANS)}
        return mapping


def union_told(enrolment: Enrolment, besides: Stretch) -> int:
    """The days that files have told of the other coverages that count, after this one's end."""
    assert besides.end is not None
    after = days.since(besides.end + timedelta(days=1))
    found = 0
    for each in enrolment.of():
        found |= each.told & after if each is not besides else 0
    return found


def change_follows(changes: Sequence[Change], change: Change) -> bool:
    """Whether the begin that belongs to this end is still to be sent."""
    return any(each.pair is change for each in changes)


def _csv(rows: Sequence[dict[str, str]]) -> bytes:
    columns = {name: None for row in rows for name in row}
    page = io.StringIO()
    writer = csv.DictWriter(page, list(columns), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return page.getvalue().encode()
