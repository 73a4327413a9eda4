"""Families, their employments and what happens to them: the truth for each day (pure).

A `History` is plain data, drawn by hypothesis or written into a test. `World` plays it: it is the
personnel system of the employers. An event is known on the day of a round, and takes effect then,
earlier or later. What is known on a day is the truth that a file of this day can carry.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from tests.histories import days

SUBSCRIBER = "18"
SPOUSE = "01"
CHILD = "19"
ADOPTED = "09"
MEDICAL = "HLT"
DENTAL = "DEN"
PLANS = ("Gold", "Silver")
FEMALE = ("Maria", "Gabriela", "Kim", "Ana", "Robin", "Kimberly")
MALE = ("José", "Gabriel", "John", "Lee", "Robin", "Bela")
LAST = ("Sample", "Muñoz", "Doe", "Sample")
BEGIN = date(2026, 1, 1)  # of the first coverages
Choices = Mapping[str, Sequence[Any]]  # the values of each field


@dataclass(frozen=True, slots=True)
class Event:
    """What becomes known before a file. It takes effect `lag` days after the day of the file (before
    it, if negative). `who` and `variant` select the family, the person and the way.
    """

    kind: str
    who: int = 0
    lag: int = 0
    variant: int = 0


@dataclass(frozen=True, slots=True)
class Round:
    """Some days pass, events become known, and each employer sends a file."""

    gap: int
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """A family at the beginning. `employer` is 0 or 1, `plan` an index of PLANS."""

    spouse: bool = False
    children: int = 0
    are_twins: bool = False
    employer: int = 0
    plan: int = 0
    has_dental: bool = False


@dataclass(slots=True, eq=False)
class Person:
    """`names` are (first, last), the newest last; a newborn has no first name."""

    id: int
    dob: date
    sex: str
    names: list[tuple[str, str]]

    @property
    def first(self) -> str:
        return self.names[-1][0]

    @property
    def last(self) -> str:
        return self.names[-1][1]

    def __str__(self) -> str:
        return f"{self.first or 'newborn'} {self.last} ({self.dob}, {self.sex})"


@dataclass(slots=True, eq=False)
class Stretch:
    """One coverage. One that `is_void` was never effective. `told` are the days that files have told
    of it so far.
    """

    line: str
    plan: str
    begin: date
    end: date | None = None
    is_void: bool = False
    told: int = 0

    @property
    def days(self) -> int:
        return 0 if self.is_void else days.between(self.begin, self.end)


@dataclass(slots=True, eq=False)
class Enrolment:
    """A person under a number: `family` (REF*0F) with the person's `code`, and the number of a
    `card`.
    """

    person: Person
    employer: int
    family: str
    code: str
    card: str
    relation: str
    stretches: list[Stretch] = field(default_factory=list)
    is_listed: bool = False  # by the last full file

    @property
    def is_subscriber(self) -> bool:
        return self.relation == SUBSCRIBER

    def of(self, line: str = MEDICAL) -> list[Stretch]:
        """The coverages of a line, without those that were never effective."""
        return [each for each in self.stretches if each.line == line and not each.is_void]

    @property
    def days(self) -> int:
        return union(each.days for each in self.of())

    @property
    def told(self) -> int:
        return union(each.told for each in self.stretches if each.line == MEDICAL)

    def open_on(self, day: date) -> bool:
        """Whether there is access on the day or later."""
        return bool(self.days & days.since(day))


@dataclass(slots=True, eq=False)
class Change:
    """What a change file has to say: `kind` is add, end, cancel, reinstate or person. `pair` is the
    end that belongs to this begin, of a change of the plan.
    """

    kind: str
    enrolment: Enrolment
    effective: date
    stretch: Stretch | None = None
    reason: str = "28"  # INS04
    pair: "Change | None" = None


def union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


class World:
    """The employers' personnel system. `changes` are those that no file has carried yet."""

    def __init__(self, families: Iterable[Family]) -> None:
        self.people: list[Person] = []
        self.enrolments: list[Enrolment] = []
        self.changes: list[Change] = []
        self.today = BEGIN
        for family in families:
            self._found_family(family)

    def known(self, person: Person) -> int:
        """The days of access of the person, by what is known."""
        return union(each.days for each in self.of(person))

    def told(self, person: Person) -> int:
        """The days of access of the person that files have told so far."""
        return union(each.told for each in self.of(person))

    def of(self, person: Person) -> Iterator[Enrolment]:
        return (each for each in self.enrolments if each.person is person)

    def apply(self, event: Event) -> None:
        """Let an event become known today; one that does not apply does nothing."""
        handler = _HANDLERS[event.kind]
        handler(self, event, self.today + timedelta(days=event.lag))

    # What happens

    def marry(self, event: Event, day: date) -> None:
        """The subscriber of a family marries. By the variant the spouse takes the last name."""
        subscriber = self._subscriber(event.who, day)
        if subscriber is None or self._relative(subscriber, (SPOUSE,), day):
            return
        last = subscriber.person.last if event.variant % 2 else LAST[(event.variant // 2) % 4]
        sex = "M" if subscriber.person.sex == "F" else "F"
        spouse = self._person(event.variant, sex, last, date(1981, 1, 1))
        self._join(subscriber, spouse, SPOUSE, day)

    def take_name(self, event: Event, day: date) -> None:
        """A person changes the last name."""
        enrolment = self._any(event.who, day)
        if enrolment is None:
            return
        person = enrolment.person
        person.names.append((person.first, LAST[event.variant % 4] + "-Lind"))
        self._say_person(person)

    def divorce(self, event: Event, day: date) -> None:
        subscriber = self._subscriber(event.who, day)
        for each in self._relative(subscriber, (SPOUSE,), day):
            self._end(each, day, "04")

    def birth(self, event: Event, day: date) -> None:
        """A child without a name; two if the variant is odd."""
        subscriber = self._subscriber(event.who, day)
        if subscriber is None:
            return
        born = min(day, self.today)
        for number in range(1 + event.variant % 2):
            sex = "MF"[(event.variant // 2 + number * (event.variant // 4)) % 2]
            child = self._person(number, sex, subscriber.person.last, born)
            child.dob = born
            child.names = [("", subscriber.person.last)]
            self._join(subscriber, child, CHILD, born)

    def name_child(self, event: Event, day: date) -> None:
        """A newborn gets a name; without one, a child is born."""
        unnamed = [each for each in self.people if not each.first]
        if not unnamed:
            self.birth(event, day)
            return
        child = unnamed[event.who % len(unnamed)]
        names = FEMALE if child.sex == "F" else MALE
        taken = {each.first for each in self.people if each.dob == child.dob}
        free = [name for name in names if name not in taken]
        child.names.append((free[event.variant % len(free)], child.last))
        self._say_person(child)

    def adopt(self, event: Event, day: date) -> None:
        subscriber = self._subscriber(event.who, day)
        if subscriber is not None:
            sex = "FM"[event.variant % 2]
            child = self._person(event.variant, sex, subscriber.person.last, date(2016, 1, 1))
            self._join(subscriber, child, ADOPTED, day)

    def die(self, event: Event, day: date) -> None:
        """The subscriber dies. Variants: the family ends with a row for each; without rows; the
        spouse becomes the subscriber under the own number; or under the number of the dead.
        """
        subscriber = self._subscriber(event.who, day)
        if subscriber is None:
            return
        family = self._relative(subscriber, (SPOUSE, CHILD, ADOPTED), day)
        spouse = next((each for each in family if each.relation == SPOUSE), None)
        self._end(subscriber, day, "03")
        way = event.variant % 4
        if way < 2 or spouse is None:
            for each in family:
                self._end(each, day, "03", is_said=way == 0)
        elif way == 2:
            spouse.relation = SUBSCRIBER
            self._say_person(spouse.person)
        else:
            plan = spouse.of()[-1].plan
            self._end(spouse, day, "03")
            heir = Enrolment(
                spouse.person,
                subscriber.employer,
                subscriber.family,
                subscriber.code,
                subscriber.card,
                SUBSCRIBER,
            )
            self.enrolments.append(heir)
            self._add(heir, plan, day + timedelta(days=1))

    def leave(self, event: Event, day: date) -> None:
        """The employment ends, by the variant at the end of the month."""
        subscriber = self._subscriber(event.who, day)
        if subscriber is None:
            return
        last_day = end_of_month(day) if event.variant % 2 else day
        for each in (subscriber, *self._relative(subscriber, (SPOUSE, CHILD, ADOPTED), last_day)):
            self._end(each, last_day, "08")

    def rehire(self, event: Event, day: date) -> None:
        """A family that has left comes back, with its old numbers; without one, one leaves."""
        gone = [
            each
            for each in self.enrolments
            if each.is_subscriber and each.of() and not each.open_on(day)
        ]
        gone = [each for each in gone if not self._is_taken(each)]
        if not gone:
            self.leave(event, day)
            return
        subscriber = gone[event.who % len(gone)]
        plan = PLANS[event.variant % 2]
        ended = subscriber.of()[-1].end
        for each in self._family_of(subscriber):
            if each.of() and each.of()[-1].end == ended and not each.open_on(day):
                self._add(each, plan, day)

    def switch(self, event: Event, day: date) -> None:
        """A family has another plan from the turn of the year on."""
        subscriber = self._subscriber(event.who, day)
        if subscriber is not None:
            for each in self._family_of(subscriber):
                self._renew(each, is_other=True)

    def renew_all(self, event: Event, day: date) -> None:
        """Open enrolment: each family is enrolled anew from the turn of the year on, the one that the
        event selects under another plan.
        """
        families = [*dict.fromkeys(each.family for each in self.enrolments)]
        other = families[event.who % len(families)]
        for each in self.enrolments:
            self._renew(each, is_other=each.family == other)

    def reuse(self, event: Event, day: date) -> None:
        """A new employee gets the numbers of one who has left; without one, one leaves."""
        gone = [
            each
            for each in self.enrolments
            if each.is_subscriber
            and each.of()
            and not each.open_on(day)
            and not self._is_taken(each)
        ]
        if not gone:
            self.leave(event, day)
            return
        old = gone[event.who % len(gone)]
        person = self._person(event.variant, "MF"[event.variant % 2], "Okafor", date(1990, 1, 1))
        new = Enrolment(person, old.employer, old.family, old.code, old.card, SUBSCRIBER)
        self.enrolments.append(new)
        self._add(new, PLANS[event.variant % 2], day)

    def second_job(self, event: Event, day: date) -> None:
        """A new employee of the other employer, who by the variant has a number that the first
        employer uses too; or the spouse of a family, who is then covered twice.
        """
        subscriber = self._subscriber(event.who, day)
        if subscriber is None:
            return
        spouses = self._relative(subscriber, (SPOUSE,), day)
        if spouses and event.variant % 2:
            person = spouses[0].person
        else:
            person = self._person(event.variant, "F", "Ngata", date(1975, 1, 1))
        family = subscriber.family
        card = subscriber.card
        employer = 1 - subscriber.employer
        is_same_number = event.variant % 4 == 0
        taken = any(each.employer == employer and each.family == family for each in self.enrolments)
        if not is_same_number or taken:
            family = self._new_family()
            card = self._new_card()
        new = Enrolment(person, employer, family, "01", card, SUBSCRIBER)
        self.enrolments.append(new)
        self._add(new, PLANS[event.variant % 2], day)

    def reinstate(self, event: Event, day: date) -> None:
        """The last end of an enrolment was a mistake; without one, a family leaves."""
        ended = [
            each
            for each in self.enrolments
            if each.of() and each.of()[-1].end is not None and not self._is_taken(each)
        ]
        if not ended:
            self.leave(event, day)
            return
        enrolment = ended[event.who % len(ended)]
        stretch = enrolment.of()[-1]
        stretch.end = None
        self.changes.append(Change("reinstate", enrolment, self.today, stretch))

    def cancel(self, event: Event, day: date) -> None:
        """A coverage was never effective: one that is yet to begin if there is one, else a last. The one
        that it replaced goes on.
        """
        having = [each for each in self.enrolments if each.open_on(self.today)]
        coming = [each for each in having if each.of()[-1].begin > self.today]
        having = coming or having
        if not having:
            return
        enrolment = having[event.who % len(having)]
        *earlier, stretch = enrolment.of()
        stretch.is_void = True
        self.changes.append(Change("cancel", enrolment, self.today, stretch))
        if earlier and earlier[-1].end == stretch.begin - timedelta(days=1):
            earlier[-1].end = None
            self.changes.append(Change("reinstate", enrolment, self.today, earlier[-1]))

    def age_out(self, event: Event, day: date) -> None:
        """The access of a child ends."""
        children = [
            each for each in self.enrolments if each.relation == CHILD and each.open_on(day)
        ]
        if children:
            self._end(children[event.who % len(children)], end_of_month(day), "07")

    def start_dental(self, event: Event, day: date) -> None:
        enrolment = self._any(event.who, day)
        if enrolment is not None and not any(each.end is None for each in enrolment.of(DENTAL)):
            stretch = Stretch(DENTAL, "Teeth", day)
            enrolment.stretches.append(stretch)
            self.changes.append(Change("add", enrolment, day, stretch))

    def end_dental(self, event: Event, day: date) -> None:
        having = [
            each for each in self.enrolments if each.of(DENTAL) and each.of(DENTAL)[-1].end is None
        ]
        if having:
            enrolment = having[event.who % len(having)]
            stretch = enrolment.of(DENTAL)[-1]
            stretch.end = max(day, stretch.begin)
            self.changes.append(Change("end", enrolment, day, stretch))

    def correct(self, event: Event, day: date) -> None:
        """The personnel office corrects a birth date, or a first name."""
        enrolment = self._any(event.who, day)
        if enrolment is None or not enrolment.person.first:
            return
        person = enrolment.person
        if event.variant % 2:
            person.dob = person.dob.replace(year=person.dob.year - 1)
        else:
            person.names.append((person.first + " Lee", person.last))
        self._say_person(person)

    # Parts of them

    def _found_family(self, family: Family) -> None:
        number = len(self.enrolments)
        sex = "FM"[number % 2]
        subscriber = Enrolment(
            self._person(number, sex, LAST[number % 3], date(1979, 1, 1)),
            family.employer,
            self._new_family(),
            "01",
            self._new_card(),
            SUBSCRIBER,
        )
        self.enrolments.append(subscriber)
        self._add(subscriber, PLANS[family.plan], BEGIN)
        last = subscriber.person.last
        if family.spouse:
            spouse = self._person(number + 1, "MF"[number % 2], last, date(1980, 1, 1))
            self._join(subscriber, spouse, SPOUSE, BEGIN)
        for child in range(family.children):
            person = self._person(number + child, "FM"[child % 2], last, date(2014, 1, 1))
            if child and family.are_twins:
                person.dob = self.people[-2].dob
            self._join(subscriber, person, CHILD, BEGIN)
        if family.has_dental:
            for each in self._family_of(subscriber):
                stretch = Stretch(DENTAL, "Teeth", BEGIN)
                each.stretches.append(stretch)
                self.changes.append(Change("add", each, BEGIN, stretch))

    def _person(self, choice: int, sex: str, last: str, about: date) -> Person:
        """A new person with a birth date of the own, after `about`."""
        number = len(self.people)
        names = FEMALE if sex == "F" else MALE
        dob = about + timedelta(days=37 * number)
        person = Person(number, dob, sex, [(names[choice % len(names)], last)])
        self.people.append(person)
        return person

    def _new_family(self) -> str:
        return f"F{len({each.family for each in self.enrolments}) + 1}00"

    def _new_card(self) -> str:
        return f"W{len(self.enrolments) + 1:04}"

    def _family_of(self, subscriber: Enrolment) -> list[Enrolment]:
        """The subscriber and the dependents."""
        return [
            each
            for each in self.enrolments
            if each.family == subscriber.family and each.employer == subscriber.employer
        ]

    def _join(self, subscriber: Enrolment, person: Person, relation: str, day: date) -> None:
        code = f"{len({each.code for each in self._family_of(subscriber)}) + 1:02}"
        card = self._new_card()
        new = Enrolment(person, subscriber.employer, subscriber.family, code, card, relation)
        self.enrolments.append(new)
        covering = [each for each in subscriber.of() if each.days & days.since(day)]
        for number, stretch in enumerate(covering):
            begin = max(day, stretch.begin) if number == 0 else stretch.begin
            self._add(new, stretch.plan, begin)
            new.stretches[-1].end = stretch.end
            if stretch.end is not None:
                self.changes.append(Change("end", new, stretch.end, new.stretches[-1]))

    def _add(self, enrolment: Enrolment, plan: str, day: date) -> Change:
        stretch = Stretch(MEDICAL, plan, day)
        enrolment.stretches.append(stretch)
        change = Change("add", enrolment, day, stretch)
        self.changes.append(change)
        return change

    def _end(self, enrolment: Enrolment, day: date, reason: str, *, is_said: bool = True) -> None:
        """End the coverages of all lines. One that is yet to begin becomes void; then the end of the
        one that it would have replaced is said again.
        """
        coming = [each for each in enrolment.stretches if each.days and each.begin > day]
        for stretch in coming:
            stretch.is_void = True
            if is_said:
                self.changes.append(Change("cancel", enrolment, day, stretch, reason))
        next_day = days.since(day + timedelta(days=1))
        for stretch in enrolment.stretches:
            is_last = bool(coming) and stretch.end == day
            if not stretch.days & next_day and not is_last:
                continue
            stretch.end = day
            if is_said:
                self.changes.append(Change("end", enrolment, day, stretch, reason))

    def _renew(self, enrolment: Enrolment, *, is_other: bool) -> None:
        """A new coverage from the next turn of the year on, in place of the one in force."""
        new_year = date(self.today.year + 1, 1, 1)
        stretch = next((each for each in enrolment.of() if each.end is None), None)
        if stretch is None or stretch.begin >= new_year:
            return
        stretch.end = new_year - timedelta(days=1)
        end = Change("end", enrolment, stretch.end, stretch)
        self.changes.append(end)
        plan = PLANS[1 - PLANS.index(stretch.plan)] if is_other else stretch.plan
        self._add(enrolment, plan, new_year).pair = end

    def _say_person(self, person: Person) -> None:
        for each in self.of(person):
            if each.open_on(self.today):
                self.changes.append(Change("person", each, self.today))

    def _subscriber(self, who: int, day: date) -> Enrolment | None:
        found = [each for each in self.enrolments if each.is_subscriber and each.open_on(day)]
        return found[who % len(found)] if found else None

    def _relative(
        self, subscriber: Enrolment | None, relations: tuple[str, ...], day: date
    ) -> list[Enrolment]:
        if subscriber is None:
            return []
        family = self._family_of(subscriber)
        return [each for each in family if each.relation in relations and each.open_on(day)]

    def _any(self, who: int, day: date) -> Enrolment | None:
        found = [each for each in self.enrolments if each.open_on(day)]
        return found[who % len(found)] if found else None

    def _is_taken(self, enrolment: Enrolment) -> bool:
        """Whether somebody else has the number by now."""
        return any(
            each is not enrolment
            and each.employer == enrolment.employer
            and each.family == enrolment.family
            and each.code == enrolment.code
            for each in self.enrolments
        )


_HANDLERS = {
    "marry": World.marry,
    "take_name": World.take_name,
    "divorce": World.divorce,
    "birth": World.birth,
    "name_child": World.name_child,
    "adopt": World.adopt,
    "die": World.die,
    "leave": World.leave,
    "rehire": World.rehire,
    "switch": World.switch,
    "renew_all": World.renew_all,
    "reuse": World.reuse,
    "second_job": World.second_job,
    "reinstate": World.reinstate,
    "cancel": World.cancel,
    "age_out": World.age_out,
    "start_dental": World.start_dental,
    "end_dental": World.end_dental,
    "correct": World.correct,
}
# Those that touch dates of access come twice as often.
_OF_ACCESS = ("leave", "rehire", "switch", "renew_all", "reinstate", "cancel", "die", "reuse")
KINDS = (*_HANDLERS, *_OF_ACCESS)


def end_of_month(day: date) -> date:
    return first_of_next_month(day) - timedelta(days=1)


def first_of_next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


# What each part of a history may be: the choices of hypothesis and of a seed.
EVENT: Choices = {
    "kind": KINDS,
    "who": (*range(6),),
    "lag": (0, -1, 1, 12, 45, -20, -60),
    "variant": (*range(8),),
}
FAMILY: Choices = {
    "spouse": (True, False),
    "children": (0, 1, 2),
    "are_twins": (False, True),
    "employer": (0, 0, 0, 0, 1),
    "plan": (0, 1),
    "has_dental": (False, True),
}
GAPS = (1, 7, 30, 14, 61, 3, 330)
