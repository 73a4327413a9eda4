"""The segments of one INS loop of an 834, sorted by their subject (docs/834.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frontdesk.eligibility.field_kinds import x12_date
from frontdesk.eligibility.model import Action
from frontdesk.formats.model import FileMode

# The elements of a segment, the tag first.
Segment = list[str]

ADD = "021"
CHANGE = "001"
END = "024"
REINSTATE = "025"
# A coverage that was never effective, and one that only the dependents have (HD01).
DELETED = "002"
OF_DEPENDENTS = "032"
TERMINATED = "TE"  # the status of the employment (INS08)
_ACTIONS = dict.fromkeys(("001", "021", REINSTATE, "026", "030"), Action.ENROL) | {END: Action.END}
_MISSPELT_0F = "OF"  # the letter O for the zero
MISSPELT_FAMILY = "REF*OF for REF*0F"
# NM101 of a correction: the right values, and the old ones
_CORRECTED = "74"
_WRONG = "70"
_PEOPLE = {"IL", _CORRECTED, _WRONG}
# These begin providers, other payors, reporting categories, disabilities: their references and
# dates are not the member's.
_OTHER_LOOPS = {"LX", "COB", "LS", "LE", "DSB"}

# The begin of a coverage and of the member's eligibility, each with its end; a range of days (RD8)
# says both.
_END_OF = {"348": "349", "356": "357"}
_OF_COVERAGE = {"348", "349"}
LONGEST_PERSON_CODE = 3  # a longer REF*17 names a class of people
SSN_QUALIFIER = "34"
_OPEN_YEAR = "9999"
_DAY_LENGTH = len("20260101")
_RANGE_LENGTH = len("20260101-20261231")

# A segment may be shorter than the element that is read.
PADDING = ("",) * 18


@dataclass(slots=True)
class Transaction:
    """A transaction's data about all its members, before the first of them. `number` counts the STs of
    the file.
    """

    mode: FileMode
    file_date: str
    payor_name: str = ""
    references: dict[str, str] = field(default_factory=dict)
    number: int = field(default=0, compare=False)


@dataclass(slots=True)
class Level:
    """References and dates by their qualifiers: those of the member, or of one coverage, which
    begins with its HD.
    """

    references: dict[str, str]
    hd: Sequence[str] = PADDING
    dates: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class MemberLoop:
    """The data of one INS loop; `person` has the segments about the member, by their tag, and
    `former` those with the corrected (old) values.

    `key` is its identifier by the mapping. `nested` are the positions of names inside LS and LE, in
    segments from the INS on: a dependent there would need an INS loop of its own. `address_before`
    is the address of the subscriber before a dependent without one, which `has_no_home` if that is
    the subscriber of its family with another last name; `covered_by` is the level (HD05)
    of the subscriber's coverage that may cover a dependent without one. `action` is None for an
    unknown code. `ordinal` counts the INS of the transaction.
    """

    transaction: Transaction
    ins: Sequence[str]
    own: Level
    coverages: list[Level] = field(default_factory=list)
    contacts: dict[str, str] = field(default_factory=dict)
    person: dict[str, Sequence[str]] = field(default_factory=dict)
    former: dict[str, Sequence[str]] = field(default_factory=dict)
    is_corrected: bool = False
    is_untidy: bool = False
    has_two_names: bool = False
    nested: list[int] = field(default_factory=list)
    address_before: dict[str, object] = field(default_factory=dict)
    has_no_home: bool = False
    covered_by: str = ""
    key: str = ""
    action: Action | None = None
    ordinal: int = field(default=0, compare=False)

    @property
    def family(self) -> str:
        """The subscriber's number, which repeats on the dependents."""
        return self.own.references.get("0F", "")

    @property
    def is_subscriber(self) -> bool:
        return self.ins[1] == "Y"

    @property
    def dob(self) -> str:
        return x12_date(self.element("DMG", 2))

    def element(self, tag: str, position: int) -> str:
        """An element about the person, "" without one."""
        return self.person.get(tag, PADDING)[position].strip()

    def named(self, segments: Mapping[str, Sequence[str]]) -> tuple[str, str, str, str]:
        """First name, last name with its suffix, birth date and code of the sex by these segments,
        `person` or `former`.
        """
        name = segments.get("NM1", PADDING)
        birth = segments.get("DMG", PADDING)
        suffix = name[7].strip()
        # A number there is NM108, written one element too early.
        last_name = f"{name[3].strip()} {'' if suffix.isdigit() else suffix}".strip()
        return name[4].strip(), last_name, x12_date(birth[2].strip()), birth[3].strip().upper()

    def address(self) -> dict[str, object]:
        """The fields of the member's address that the loop carries."""
        names = {"zipcode": 3, "city": 1, "state": 2}
        if self.element("N4", 5).upper() == "CY":
            names["county"] = 6
        return {name: value for name, at in names.items() if (value := self.element("N4", at))}


def read_loop(segments: list[Segment], transaction: Transaction) -> MemberLoop:
    """One INS loop; `segments` begin with its INS."""
    # Some senders write codes in small letters, or without zeros.
    ins = [*map(str.strip, map(str.upper, segments[0])), *PADDING]
    ins[2] = _filled(ins[2], 2)
    ins[3] = _filled(ins[3], 3)
    loop = MemberLoop(transaction, ins, Level(dict(transaction.references)))
    _sort(segments, loop)
    own = loop.own
    if _MISSPELT_0F in own.references:
        own.references.setdefault("0F", own.references[_MISSPELT_0F])
        loop.is_untidy = True
    for coverage in loop.coverages:
        # Some senders write the dates of the coverage before its HD: they are those of a coverage
        # without its own.
        if not coverage.dates.keys() & _OF_COVERAGE:
            coverage.dates.update(
                {name: own.dates[name] for name in own.dates.keys() & _OF_COVERAGE}
            )
    loop.action = _ACTIONS.get(ins[3])
    if loop.action and transaction.mode is FileMode.COMPARE:  # a comparison changes nothing
        loop.action = Action.COMPARE
    return loop


def _sort(segments: list[Segment], loop: MemberLoop) -> None:
    """A REF or DTP belongs to the member, to a coverage after HD, and is ignored in loops about
    others.
    """
    level: Level | None = loop.own
    entity = ""
    is_inside = False
    for position, segment in enumerate(segments):
        tag = segment[0]
        if tag == "NM1" and is_inside:
            if element(segment, 1).upper() in _PEOPLE:
                loop.nested.append(position)
        elif tag == "NM1":
            entity = "" if loop.coverages else element(segment, 1).upper()
            level = loop.own if entity in ("IL", _CORRECTED) else None
            _take_about_person(segment, entity, loop)
        elif tag == "HD":
            # The codes as the guide writes them; the description of the plan keeps its letters.
            code = _filled(element(segment, 1), 3)
            line = element(segment, 3).upper()
            level = Level({}, ("HD", code, "", line, *segment[4:], *PADDING))
            is_inside = False
            loop.coverages.append(level)
        elif tag in _OTHER_LOOPS:
            level = None
            entity = ""
            is_inside = tag == "LS" or (is_inside and tag != "LE")
        elif level is not None and tag == "REF" and len(segment) > 2:
            level.references[segment[1].strip().upper()] = segment[2].strip()
        elif level is not None and tag == "DTP" and len(segment) > 3:
            _take_date(segment, level.dates)
        else:
            _take_about_person(segment, entity, loop)


def _take_about_person(segment: Segment, entity: str, loop: MemberLoop) -> None:
    """Take NM1, N4, DMG or PER of the person that the last NM1 is about, as NM101 says: the member,
    now or before.
    """
    tag = segment[0]
    if entity not in _PEOPLE:
        return
    if tag == "NM1":
        loop.is_corrected |= entity != "IL"
        before = loop.person.get(tag) if entity != _WRONG else None
        loop.has_two_names |= before is not None and _names(before) != _names(segment)
    if tag in ("NM1", "N4", "DMG"):
        (loop.former if entity == _WRONG else loop.person)[tag] = (*segment, *PADDING)
    elif tag == "PER" and entity != _WRONG:
        for at in range(3, len(segment) - 1, 2):
            loop.contacts.setdefault(segment[at].strip().upper(), segment[at + 1].strip())


def _filled(code: str, length: int) -> str:
    return code and code.zfill(length)


def _names(segment: Sequence[str]) -> tuple[str, str]:
    return element(segment, 3).casefold(), element(segment, 4).casefold()


def _take_date(segment: Segment, dates: dict[str, str]) -> None:
    """A day (D8), a day and a time (DT), or a range (RD8): its first day is a begin, its last day
    the matching end. Blank days and placeholders for an open end are absent.
    """
    qualifier = segment[1].strip()
    text = segment[3].strip()
    if segment[2].strip().upper() == "DT":
        text = text[:_DAY_LENGTH]
    first, _, last = text.partition("-") if len(text) == _RANGE_LENGTH else (text, "", "")
    if qualifier in _END_OF.values():
        first = last or first
    for name, day in ((qualifier, first), (_END_OF.get(qualifier), last)):
        is_open = name in _END_OF.values() and day.startswith(_OPEN_YEAR)
        if name and day.strip("0") and not is_open and (name == qualifier or name not in dates):
            dates[name] = x12_date(day)


def element(segment: Sequence[str], position: int) -> str:
    """The element without space around it; "" when the segment ends before it."""
    return segment[position].strip() if len(segment) > position else ""
