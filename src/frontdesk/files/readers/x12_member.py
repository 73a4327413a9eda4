"""One member of an 834: the elements of its INS loops become the fields of a record (docs/834.md)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from frontdesk.eligibility.code_sets import HIPAA_RELATIONSHIPS, X12_SUBSCRIBER
from frontdesk.eligibility.fields import FIELDS, x12_date
from frontdesk.eligibility.model import Action
from frontdesk.errors import Fault
from frontdesk.files.mapping import (
    BIRTH_SEQUENCE,
    DEFAULT_KEY,
    OWN,
    PERSON_CODE,
    RELATIONSHIP,
    SUBSCRIBER,
    FileMapping,
)
from frontdesk.files.mapping_834 import Alternatives
from frontdesk.files.model import NO_MEDICAL_COVERAGE, REPEATED, UNKNOWN_PLAN, FileMode, Row
from frontdesk.files.readers.x12_access import NO_COVERAGE, Coverage, access_of

# The elements of a segment, the tag first.
Segment = list[str]

_FROM_X12 = {name: field.kind.from_x12 for name, field in FIELDS.items() if field.kind.from_x12 is not None}
_NEVER_EFFECTIVE, _END, _REINSTATE, _AUDIT = "002", "024", "025", "030"
_ACTIONS = {
    "001": Action.ENROL,
    "021": Action.ENROL,
    _REINSTATE: Action.ENROL,
    _END: Action.END,
    _AUDIT: Action.COMPARE,
}
_CORRECTED, _WRONG = "74", "70"
_PEOPLE = {"IL", _CORRECTED}  # NM1*70 is the old, wrong value
_ABOUT_PERSON = {"NM1", "N4", "DMG"}  # the name, the place, the birth
_PHONES = ("CP", "HP", "TE")
_LONGEST_PERSON_CODE = 3  # a REF*17 that is longer says something about a group of people

_SSN = "34"
_OWN_NAMES = {"MI", "ZZ", "II", _SSN}

# These begin providers, other payors, reporting categories, disabilities: their references and dates are not the member's.
_OTHER_LOOPS = {"LX", "COB", "LS", "DSB"}

# The begin of a coverage and of the member's eligibility, each with its end; a range of days (RD8) says both.
_END_OF = {"348": "349", "356": "357"}
_RANGE_LENGTH = len("20260101-20261231")

# A segment may be shorter than the element that is read.
_PADDING = ("",) * 18


@dataclass(slots=True)
class Transaction:
    """What a transaction says of all its members, before the first of them."""

    mode: FileMode
    file_date: str
    payor_name: str = ""
    references: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Level:
    """References and dates by their qualifiers: those of the member, or of one coverage, which begins with its HD."""

    references: dict[str, str]
    hd: Sequence[str] = _PADDING
    dates: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class MemberLoop:
    """What one INS loop says of a member; `person` has the segments about the member itself, by their tag."""

    transaction: Transaction
    ins: Sequence[str]
    own: _Level
    coverages: list[_Level] = field(default_factory=list)
    contacts: dict[str, str] = field(default_factory=dict)
    person: dict[str, Sequence[str]] = field(default_factory=dict)
    is_corrected: bool = False
    key: str = ""

    @property
    def family(self) -> str:
        """The subscriber's number, which repeats on the dependents."""
        return self.own.references.get("0F", "")

    @property
    def code(self) -> str:
        return self.ins[3].strip()

    @property
    def action(self) -> Action | None:
        """A file for comparing changes nothing; an audit (030) enrols in a full file. None for an unknown code."""
        action, mode = _ACTIONS.get(self.code), self.transaction.mode
        if action is None or mode is FileMode.COMPARE:
            return action and Action.COMPARE
        return Action.ENROL if self.code == _AUDIT and mode is FileMode.FULL else action


def read_loop(segments: list[Segment], transaction: Transaction, mapping: FileMapping) -> MemberLoop:
    """One INS loop; `segments` begin with its INS."""
    loop = MemberLoop(transaction, (*segments[0], *_PADDING), _Level(dict(transaction.references)))
    _sort(segments, loop)
    loop.key = _first(mapping.external_id, loop, mapping)
    return loop


def read_member(place: int, loops: Sequence[MemberLoop], mapping: FileMapping) -> Row:
    """The row of one member by all its loops, in the order of the file."""
    last = loops[-1]
    faults = [fault for loop in loops for fault in _faults(loop)]
    coverages = [coverage for loop in loops for coverage in _coverages(loop, mapping)]
    counted = [coverage for coverage in coverages if coverage.line]
    has_others = not counted and any(loop.coverages for loop in loops)
    action = _action(loops, coverages)
    dates, dates_of_new = _dates(loops, coverages, mapping)
    # A reference of the coverage goes before the member's own.
    lasting = max(counted, key=lambda each: each.duration, default=NO_COVERAGE)
    plan: str | None = _first(mapping.plan, last, mapping, lasting) or None
    if plan is not None and mapping.plans:
        plan = mapping.plans.get(plan)
        if not plan:
            faults.insert(0, UNKNOWN_PLAN)
    if action is Action.END:
        values = {"external_id": last.key, "expiry_date": dates["expiry_date"]}
        return Row(place, values, action, plan, tuple(faults))
    values, is_contradictory = _told(loops, mapping)
    if is_contradictory:
        faults.append(REPEATED)
    if counted:
        values["medical_plan_description"] = lasting.description or lasting.line
    needs_coverage = not counted and mapping.lines is not None
    return Row(
        place,
        values | dates,
        action or Action.COMPARE,
        plan,
        tuple(faults),
        (NO_MEDICAL_COVERAGE.code,) if has_others else (),
        causes=(NO_MEDICAL_COVERAGE,) if needs_coverage else (),
        values_of_new=dates_of_new,
        is_weak_key=mapping.external_id is DEFAULT_KEY
        and last.key == f"{last.family}-R{last.ins[2].strip()}",
    )


def _action(loops: Sequence[MemberLoop], coverages: Sequence[Coverage]) -> Action | None:
    """What all loops ask for together: to end the member only if none of them enrols it."""
    actions = [loop.action for loop in loops]
    if any(action is not Action.END for action in actions):
        return next(action for action in actions if action is not Action.END)
    # The end of coverages that don't count is no end of the member.
    return Action.END if coverages else Action.ENROL


def _coverages(loop: MemberLoop, mapping: FileMapping) -> list[Coverage]:
    """The coverages that count, and the end of the member if the loop says one."""
    file_date, first_day, last_day = loop.transaction.file_date, *map(loop.own.dates.get, ("356", "357"))
    counted = [
        level
        for level in loop.coverages
        if level.hd[1].strip() != _NEVER_EFFECTIVE
        and (mapping.lines is None or level.hd[3].strip() in mapping.lines)
    ]
    ends_member = loop.code == _END
    end_of_all = last_day or (
        ends_member and max((level.dates.get("349", "") for level in counted), default="")
    )
    found = []
    for level in counted:
        is_end = ends_member or level.hd[1].strip() == _END
        end = level.dates.get("349", "")
        if ends_member:
            end = last_day or end or end_of_all or file_date
        elif is_end:
            end = end or last_day or file_date
        end = min(filter(None, (end, last_day)), default="")
        line, description = level.hd[3].strip(), level.hd[4].strip()
        begin = level.dates.get("348") or first_day or ""
        found.append(Coverage(line or "?", description, begin, end, is_end, level.references))
    if not found and (last_day or (ends_member and not loop.coverages)):
        begin = (first_day or "") if mapping.lines is None else ""
        found.append(Coverage("", "", begin, last_day or file_date, is_end=True))
    return found


def _dates(
    loops: Sequence[MemberLoop], coverages: Sequence[Coverage], mapping: FileMapping
) -> tuple[dict[str, object], dict[str, object] | None]:
    """The dates of the access, and those that only a member that is not stored yet takes."""
    if coverages:
        access = access_of(coverages, loops[-1].transaction.file_date)
        dates: dict[str, object] = {"expiry_date": access.end or None}
        if access.begin:
            return dates | {"effective_date": access.begin}, None
        return dates, {"effective_date": access.begin_of_new} if access.begin_of_new else None
    dates = {}
    if not any(loop.coverages for loop in loops):
        if any(loop.code == _REINSTATE for loop in loops):
            dates["expiry_date"] = None
        if mapping.lines is None and (begin := loops[-1].own.dates.get("356")):
            dates["effective_date"] = begin
    return dates, None


def _told(loops: Sequence[MemberLoop], mapping: FileMapping) -> tuple[dict[str, object], bool]:
    """The fields about the person, and whether two loops contradict each other: two values of a field for the same day.

    A loop of a later day (DTP*303, else the date of the file) is news. An end says nothing of the person.
    """
    told: dict[str, object] = {}
    days: dict[str, str] = {}
    is_contradictory = False
    enrolling = [loop for loop in loops if loop.action is not Action.END] or loops
    for loop in enrolling:
        day = loop.own.dates.get("303") or loop.transaction.file_date
        for name, value in _values(loop, mapping).items():
            is_contradictory |= told.get(name, value) != value and days[name] == day
            told[name], days[name] = value, day
    return told, is_contradictory


def _values(loop: MemberLoop, mapping: FileMapping) -> dict[str, object]:
    """The fields about the person that the loop carries."""
    name, place, birth = (loop.person.get(tag, _PADDING) for tag in ("NM1", "N4", "DMG"))
    contacts = loop.contacts
    code, subscriber = loop.ins[2].strip(), loop.ins[1].strip()
    has_one_key = mapping.member_id == mapping.external_id
    found = {
        "external_id": loop.key,
        "member_id": loop.key if has_one_key else _first(mapping.member_id, loop, mapping),
        "first_name": name[4].strip(),
        "last_name": name[3].strip(),
        "middle_name": name[5].strip(),
        "dob": birth[2].strip(),
        "gender": birth[3].strip(),
        "email": contacts.get("EM"),
        "phone": next((contacts[kind] for kind in _PHONES if kind in contacts), None),
        "zipcode": place[3].strip(),
        "city": place[1].strip(),
        "county": place[6].strip() if place[5].strip() == "CY" else None,
        "state": place[2].strip(),
        "payor_name": loop.transaction.payor_name,
        "relationship_code": HIPAA_RELATIONSHIPS.get(code),
        "relationship_code_hipaa": code,
        "subscriber_relationship": subscriber if subscriber in X12_SUBSCRIBER else None,
    }
    values: dict[str, object] = {name: value for name, value in found.items() if value}
    for field_name, convert in _FROM_X12.items():
        if field_name in values:
            values[field_name] = convert(str(values[field_name]))
    if loop.is_corrected and "last_name" in values:
        values.setdefault("middle_name", None)
    return values


def _first(
    alternatives: Alternatives, loop: MemberLoop, mapping: FileMapping, coverage: Coverage = NO_COVERAGE
) -> str:
    """The joined parts of the first alternative that is complete, else ""."""
    for sources in alternatives:
        found = [_source(source, loop, mapping, coverage) for source in sources]
        if all(found):
            return "-".join(found)
    return ""


def _source(source: str, loop: MemberLoop, mapping: FileMapping, coverage: Coverage) -> str:
    if source == "HD03":
        return coverage.line
    if source == "HD04":
        return coverage.description
    if own := _OF_MEMBER.get(source):
        return own(loop, mapping)
    qualifier = source[4:]
    return coverage.references.get(qualifier) or loop.own.references.get(qualifier, "")


def _person_code(loop: MemberLoop, mapping: FileMapping) -> str:
    code = loop.own.references.get(mapping.person_code[4:], "")
    return code if len(code) <= _LONGEST_PERSON_CODE else ""


def _birth_sequence(loop: MemberLoop, _mapping: FileMapping) -> str:
    return "B" + number if (number := loop.ins[17].strip()) else ""


def _relationship(loop: MemberLoop, _mapping: FileMapping) -> str:
    return "R" + code if (code := loop.ins[2].strip()) else ""


def _subscriber(loop: MemberLoop, _mapping: FileMapping) -> str:
    return loop.family if loop.ins[1].strip() == "Y" else ""


def _name_reference(loop: MemberLoop, mapping: FileMapping) -> str:
    """NM109; a social security number only where the mapping says so."""
    name = loop.person.get("NM1", _PADDING)
    return name[9].strip() if mapping.ssn or name[8].strip() != _SSN else ""


def _own_reference(loop: MemberLoop, mapping: FileMapping) -> str:
    """The member's own number. A short one is a person code, one without a digit a category, REF*0F is the family's."""
    kind = loop.person.get("NM1", _PADDING)[8].strip()
    name = _name_reference(loop, mapping) if kind in _OWN_NAMES else ""
    references = loop.own.references
    for found in (references.get("23", ""), name, references.get("ZZ", ""), references.get("17", "")):
        if len(found) > _LONGEST_PERSON_CODE and found != loop.family and any(map(str.isdigit, found)):
            return found
    return ""


_OF_MEMBER: dict[str, Callable[[MemberLoop, FileMapping], str]] = {
    "NM109": _name_reference,
    OWN: _own_reference,
    PERSON_CODE: _person_code,
    BIRTH_SEQUENCE: _birth_sequence,
    RELATIONSHIP: _relationship,
    SUBSCRIBER: _subscriber,
}


def _faults(loop: MemberLoop) -> list[Fault]:
    faults = []
    if loop.action is None:
        faults.append(Fault("INS03", "unknown_code", "must be 001, 021, 024, 025 or 030"))
    if loop.ins[1].strip() not in X12_SUBSCRIBER:
        faults.append(Fault("INS01", "unknown_code", "must be Y or N"))
    if not loop.key:
        message = "the member has none of the parts that the mapping names"
        faults.append(Fault("external_id", "no_match_key", message))
    return faults


def _sort(segments: list[Segment], loop: MemberLoop) -> None:
    """A REF or DTP belongs to the member until the first NM1, to a coverage after HD, and is ignored elsewhere."""
    level: _Level | None = loop.own
    is_person = False
    for segment in segments:
        tag = segment[0]
        if tag == "NM1":
            who = element(segment, 1)
            level, is_person = None, who in _PEOPLE and not loop.coverages
            loop.is_corrected |= who in (_CORRECTED, _WRONG) and not loop.coverages
        if level is not None and len(segment) > 2 and tag == "REF":
            level.references[segment[1]] = segment[2].strip()
        elif level is not None and len(segment) > 3 and tag == "DTP":
            _take_date(segment, level.dates)
        elif tag == "HD":
            level = _Level({}, (*segment, *_PADDING))
            loop.coverages.append(level)
        elif tag in _OTHER_LOOPS:
            level, is_person = None, False
        elif is_person and tag == "PER":
            for at in range(3, len(segment) - 1, 2):
                loop.contacts.setdefault(segment[at].strip(), segment[at + 1].strip())
        elif is_person and tag in _ABOUT_PERSON:
            loop.person[tag] = (*segment, *_PADDING)


def _take_date(segment: Segment, dates: dict[str, str]) -> None:
    """A day (D8), or a range (RD8): its first day is a begin, its last day the end that belongs to it."""
    qualifier, text = segment[1].strip(), segment[3].strip()
    first, _, last = text.partition("-") if len(text) == _RANGE_LENGTH else (text, "", "")
    if qualifier in _END_OF and last:
        dates.setdefault(_END_OF[qualifier], x12_date(last))
    dates[qualifier] = x12_date(last if last and qualifier in _END_OF.values() else first)


def element(segment: Segment, position: int) -> str:
    """The element without space around it; "" when the segment ends before it."""
    return segment[position].strip() if len(segment) > position else ""
