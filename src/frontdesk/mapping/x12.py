"""Members of an 834: what an account's mapping makes of the INS loops (docs/834.md).

A member has the loops with its identifier, whose elements become the fields of a record. Names and birth dates stand in an
identifier only as a short keyed digest, and so does a social security number.
"""

import hmac
import pickle
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from operator import attrgetter
from tempfile import SpooledTemporaryFile
from typing import Any

from frontdesk.eligibility.fields import FIELDS, HIPAA_RELATIONSHIPS, X12_SUBSCRIBER, ZIPCODE_PATTERN
from frontdesk.eligibility.model import Action, PersonSaid, RowContext
from frontdesk.eligibility.persons import are_two_people, fold_name
from frontdesk.errors import Fault
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.formats.source import Source
from frontdesk.formats.x12 import Family, PlacedLoop, X12Reader, X12Taking
from frontdesk.formats.x12_loop import ADD, LONGEST_PERSON_CODE, PADDING, SSN_QUALIFIER, MemberLoop
from frontdesk.mapping.addresses import FamilyAddresses
from frontdesk.mapping.coverages import (
    NO_COVERAGE,
    Coverage,
    action_of,
    coverages_of,
    dates_of,
    effective_coverages,
    family_levels,
)
from frontdesk.mapping.model import (
    IDENTIFIER_SHARED,
    NO_MEDICAL_COVERAGE,
    REPEATED,
    ROW_FAULTS,
    UNKNOWN_PLAN,
    FamilyPart,
    FileHeader,
    Row,
    UnreadLoops,
)
from frontdesk.mapping.parser import DOB, FIRST_NAME, PERSON_CODE, SSN_WAY, Alternatives, FileMapping, Way
from frontdesk.mapping.suggest.identity import suggest_identity
from frontdesk.text import looks_like_ssn

_NINE_DIGITS = re.compile("[0-9]{9}")
_SSN_PREFIX, _SSN_LETTERS = "ssn1-", 20  # 80 bits, since a whole account may be called by them
_PERSON_BYTES = 4  # in one family
APART_LIMIT = 1000  # loops of one member: more are a mistake of the sender, and too much to hold
_IN_MEMORY = 8 * 1024**2
_BUCKETS = 256  # given back one at a time, so that a 256th of the loops is in memory


MEMBER_LOOPS_LIMIT = 100

_FROM_X12 = [
    (name, field.kind.from_x12)
    for name, field in FIELDS.items()
    if field.kind.from_x12 is not None and name not in ("effective_date", "expiry_date")  # read as they come
]
_duration = attrgetter("duration")


@dataclass(frozen=True, slots=True)
class X12Options:
    """How to read an 834. A `mode` goes before what the file says of itself; `secret` is the account's, for hashes.

    `apart` are the places, in ascending order, of the rows of members with others elsewhere in the file: they become one row.
    """

    mode: FileMode | None = None
    secret: bytes = b""
    apart: Sequence[int] = ()


DEFAULT_OPTIONS = X12Options()


class MappingNeeded(Exception):
    """The account's mapping does not say how an 834 names its members. `suggestion` is one, with its reasons, as JSON."""

    def __init__(self, suggestion: dict[str, Any]) -> None:
        super().__init__()
        self.suggestion = suggestion


def read_x12(
    source: Source, mapping: FileMapping, options: X12Options = DEFAULT_OPTIONS
) -> tuple[FileHeader, Iterator[UnreadLoops]]:
    """The header, from the first BGN, and the rows, before they are read. Raises Unreadable."""
    taking = X12Taking(options.mode, mapping.verify == "full", mapping.counts == "lenient")
    reader = X12Reader(source, taking)
    first = reader.begin()
    return FileHeader(Format.X12, first.mode, first.file_date), MemberReader(reader, mapping, options).items()


def suggest_x12(source: Source, *, is_cut: bool = False) -> dict[str, Any]:
    """How the 834 may name its members (suggest.identity); `is_cut` says that the file may end within a member. Raises
    Unreadable."""
    reader = X12Reader(source, X12Taking(), cuts_families=not is_cut)
    reader.begin()
    return suggest_identity(_loops(reader, is_cut=is_cut))


def _loops(reader: X12Reader, *, is_cut: bool) -> Iterator[MemberLoop]:
    with suppress(*([Unreadable] if is_cut else [])):
        for _, loop in reader.loops():
            yield loop


class MemberReader:
    """One pass over the loops of a file, which are to be read in its order."""

    def __init__(self, reader: X12Reader, mapping: FileMapping, options: X12Options) -> None:
        self._reader, self._mapping = reader, mapping
        self._names = MemberNames(mapping, options.secret)
        self._apart = LoopsApart(options.apart)
        self._addresses = FamilyAddresses()
        self._subscriber: MemberLoop | None = None  # the last one
        self._loops: list[PlacedLoop] = []
        self._part: FamilyPart | None = None  # of the last loop

    def items(self) -> Iterator[UnreadLoops]:
        """The rows come a loop late, since loops of a member that follow one another make one row."""
        if self._mapping.identify is None:
            raise MappingNeeded(suggest_identity(loop for _, loop in self._reader.loops()))
        with closing(self._apart):
            for item in self._reader.members():
                if isinstance(item, Family):
                    yield UnreadLoops(partial(self._rows_of_family, item), item, self._flush)
                else:
                    yield UnreadLoops(partial(self._loop, *item))
            yield UnreadLoops(self._rest)

    def _rows_of_family(self, family: Family) -> Iterator[Row]:
        for number, (place, loop) in enumerate(family.loops()):
            is_plain = not (loop.nested or loop.is_untidy or loop.is_corrected)
            yield from self._loop(place, loop, (family, number) if is_plain else None)

    def _rest(self) -> Iterator[Row]:
        """The last member, those with loops apart, and the dependents that have waited for an address; the first of them is
        warned of a file that is not as the book wants it."""
        for row in self._rest_of_rows():
            if self._reader.is_untidy:
                row.warnings += ("untidy_file",)
                self._reader.is_untidy = False
            yield row

    def _rest_of_rows(self) -> Iterator[Row]:
        yield from self._flush()
        for loops in self._apart.members():
            yield from self._rows_of(loops)
        yield from self._addresses.rest()

    def _subscriber_of(self, dependent: MemberLoop) -> MemberLoop | None:
        """The subscriber before a dependent, if both have one REF*0F or one last name."""
        subscriber = self._subscriber
        if subscriber is None or subscriber.transaction is not dependent.transaction:
            return None
        last_name = fold_name(dependent.element("NM1", 3))
        is_same_name = bool(last_name) and last_name == fold_name(subscriber.element("NM1", 3))
        is_same_family = bool(dependent.family) and dependent.family == subscriber.family
        return subscriber if is_same_family or is_same_name else None

    def _take_from_subscriber(self, loop: MemberLoop, subscriber: MemberLoop) -> None:
        """Give a dependent without an address that of the subscriber before it; without a coverage, those of a family."""
        address = subscriber.address()
        if not loop.element("N4", 3) and ZIPCODE_PATTERN.fullmatch(str(address.get("zipcode", ""))):
            loop.address_before = address
        if not loop.coverages:
            levels = family_levels(loop, subscriber, self._mapping)
            if self._mapping.family_coverage == "subscriber":
                loop.coverages = levels
            loop.covered_by = levels[0].hd[5].strip() if levels else ""

    def _loop(self, place: int, loop: MemberLoop, part: FamilyPart | None = None) -> Iterator[Row]:
        """Fold the loop with those of the same member just before it, unless it repeats one letter by letter."""
        self._reader.is_untidy |= loop.is_untidy
        loop.key = self._names.external_id(loop)
        if loop.is_subscriber:
            self._subscriber = loop
        elif (subscriber := self._subscriber_of(loop)) is not None:
            self._take_from_subscriber(loop, subscriber)
        loops = self._loops
        is_same = loops and loop.key and loop.key == loops[-1][1].key and loop.action and loops[-1][1].action
        if not is_same or loop == loops[-1][1] or len(loops) == MEMBER_LOOPS_LIMIT:
            yield from self._flush()
        self._loops.append((place, loop))
        self._part = part
        for position in loop.nested:
            fault = Fault("INS", "nested_dependent", ROW_FAULTS["nested_dependent"])
            yield Row(place + position, {}, faults=(fault,))

    def _flush(self) -> Iterator[Row]:
        loops, self._loops = self._loops, []
        part = self._part if len(loops) == 1 else None
        if loops and self._apart.takes(loops[0][0]):
            # Dependents need the address before all loops of their subscriber are there.
            (place, _), (_, last) = loops[0], loops[-1]
            row = read_member(place, [loop for _, loop in loops], self._mapping, self._names)
            self._addresses.note(row, last.family)
            self._apart.keep(loops)
        elif loops:
            yield from self._rows_of(loops, part)

    def _rows_of(self, placed: list[PlacedLoop], part: FamilyPart | None = None) -> Iterator[Row]:
        """The row of a member; of two people with one identifier, a refused row for each loop."""
        place, last = placed[0][0], placed[-1][1]
        loops = [loop for _, loop in placed]
        if len(loops) > 1 and name_two_people(loops, self._names):
            for at, loop in placed:
                yield Row(at, {"external_id": loop.key}, faults=(IDENTIFIER_SHARED,))
            return
        row = read_member(place, loops, self._mapping, self._names, part)
        if len(loops) > APART_LIMIT:
            row.faults += (REPEATED,)
        yield from self._addresses.take(row, last.family, last.address_before)


class LoopsApart:
    """The loops that are kept. `places` are those of the groups of loops to keep, in ascending order."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places, self._next = places, 0
        self._kept: SpooledTemporaryFile[bytes] | None = None
        self._offsets = [array("Q") for _ in range(_BUCKETS)]

    def takes(self, place: int) -> bool:
        """Whether the loops at this place, which is after the last one that was asked for, are to be kept."""
        is_next = self._next < len(self._places) and self._places[self._next] == place
        self._next += is_next
        return is_next

    def keep(self, loops: list[PlacedLoop]) -> None:
        if self._kept is None:
            self._kept = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - see close
        self._offsets[zlib.crc32(loops[0][1].key.encode()) % _BUCKETS].append(self._kept.tell())
        pickle.dump(loops, self._kept, pickle.HIGHEST_PROTOCOL)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def members(self) -> Iterator[list[PlacedLoop]]:
        """The loops of each member with their places, in the order of the file; not more than APART_LIMIT + 1 of them."""
        file = self._kept
        if file is None:
            return
        for offsets in self._offsets:
            members: dict[str, list[PlacedLoop]] = {}
            for offset in offsets:
                file.seek(offset)
                loops = pickle.load(file)  # noqa: S301 - written by this process
                kept = members.setdefault(loops[0][1].key, [])
                kept += loops[: APART_LIMIT + 1 - len(kept)]
            yield from members.values()


class MemberNames:
    """Makes the identifiers of one file's members. `secret` is the account's, so that the digests of its files agree, and no
    other's."""

    def __init__(self, mapping: FileMapping, secret: bytes) -> None:
        self._mapping, self._secret = mapping, secret
        self._last_family = ("", "")  # the number of the member before, and its digest

    def external_id(self, loop: MemberLoop) -> str:
        """The identifier; "" where the loop lacks a part of the way."""
        ways = self._mapping.identify
        return self._made(ways.of(is_subscriber=loop.is_subscriber), loop) if ways else ""

    def former_id(self, loop: MemberLoop) -> str:
        """The identifier before a correction; "" where that is the same."""
        ways = self._mapping.identify
        way = ways.of(is_subscriber=loop.is_subscriber) if ways and loop.is_corrected else ()
        if FIRST_NAME not in way and DOB not in way:
            return ""
        former = self._made(way, loop, is_former=True)
        return former if former != loop.key else ""

    def member_id(self, loop: MemberLoop) -> str:
        ways = self._mapping.member_id
        return self._made(ways.of(is_subscriber=loop.is_subscriber), loop) if ways else loop.key

    def plan(self, loop: MemberLoop, coverage: Coverage) -> str:
        """What the member calls its plan: the first alternative that is complete. A reference of the coverage goes first."""
        alternatives: Alternatives = self._mapping.plan
        for sources in alternatives:
            found = [self._plan_part(source, loop, coverage) for source in sources]
            if all(found):
                return "-".join(found)
        return ""

    def person(self, loop: MemberLoop) -> PersonSaid:
        """Who the loop is about, for the person check."""
        return PersonSaid(
            first_name=loop.element("NM1", 4),
            last_name=loop.element("NM1", 3),
            dob=loop.dob,
            role="Primary" if loop.is_subscriber else "Dependent",
            family=self.family_digest(loop.family),
            sequence=loop.ins[17].strip(),
            former_first_name=loop.former_first_name,
            former_last_name=loop.former_last_name,
            former_dob=loop.former_dob,
        )

    def family_digest(self, family: str) -> str:
        """Stands for the family in the database; "" without one. Accounts share no family."""
        if self._last_family[0] != family:
            digest = blake2b(family.encode(), key=self._secret, digest_size=16).hexdigest() if family else ""
            self._last_family = family, digest
        return self._last_family[1]

    def _made(self, way: Way, loop: MemberLoop, *, is_former: bool = False) -> str:
        parts: list[str] = []
        of_person: list[str] = []
        for part in way:
            found = self._part(part, loop, is_former=is_former)
            if not found:
                return ""
            (of_person if part in (FIRST_NAME, DOB) else parts).append(found)
        if of_person:
            digest = blake2b(" ".join(of_person).encode(), key=self._secret, digest_size=_PERSON_BYTES)
            parts.append(digest.hexdigest())
        return "-".join(parts)

    def _part(self, part: str, loop: MemberLoop, *, is_former: bool) -> str:
        if part == FIRST_NAME:
            return fold_name((is_former and loop.former_first_name) or loop.element("NM1", 4))
        if part == DOB:
            return (is_former and loop.former_dob) or loop.dob
        if part == SSN_WAY:
            number = _ssn_of(loop)
            return number if self._mapping.ssn == "plain" else self._hashed(number)
        if part == "relationship":
            return "R" + code if (code := loop.ins[2].strip()) else ""
        if part == "birth_sequence":
            return "B" + number if (number := loop.ins[17].strip()) else ""
        if part == PERSON_CODE:
            code = loop.own.references.get(self._mapping.person_code[4:], "")
            return code if len(code) <= LONGEST_PERSON_CODE else ""
        if part == "NM109":
            number = loop.element("NM1", 9)
            is_ssn = loop.element("NM1", 8) == SSN_QUALIFIER
        else:
            number, is_ssn = loop.own.references.get(part[4:], ""), part == "REF*SY"
        is_hidden = (is_ssn or looks_like_ssn(number)) and self._mapping.ssn != "plain"
        return self._hashed(number) if is_hidden else number

    def _plan_part(self, source: str, loop: MemberLoop, coverage: Coverage) -> str:
        if source == "HD03":
            return coverage.line
        if source == "HD04":
            return coverage.description
        if source.startswith("REF*") and source[4:] in coverage.references:
            return coverage.references[source[4:]]
        return self._part(source, loop, is_former=False)

    def _hashed(self, number: str) -> str:
        """The digest of a social security number; "" for what stands for none, such as 999999999."""
        digits = number.replace("-", "").replace(" ", "")
        if not _NINE_DIGITS.fullmatch(digits) or len(set(digits)) == 1:
            return ""
        return _SSN_PREFIX + hmac.digest(self._secret, digits.encode(), "sha256").hex()[:_SSN_LETTERS]


def _ssn_of(loop: MemberLoop) -> str:
    """The social security number that the loop says is its member's: NM109 with NM108 = 34, else REF*SY."""
    if loop.element("NM1", 8) == SSN_QUALIFIER and (number := loop.element("NM1", 9)):
        return number
    return loop.own.references.get("SY", "")


def read_member(
    place: int,
    loops: Sequence[MemberLoop],
    mapping: FileMapping,
    names: MemberNames,
    part: FamilyPart | None = None,
) -> Row:
    """The row of one member by all its loops, in the order of the file. It is a `part` of its family unless the date of the file
    decides which of its coverages hold."""
    last = loops[-1]
    faults = [fault for loop in loops for fault in _faults(loop, mapping)]
    coverages = effective_coverages(coverage for loop in loops for coverage in coverages_of(loop, mapping))
    counted = [coverage for coverage in coverages if coverage.line]
    action = action_of(loops, coverages)
    dates, dates_of_new = dates_of(loops, coverages, mapping)
    lasting = counted[0] if len(counted) == 1 else max(counted, key=_duration, default=NO_COVERAGE)
    plan: str | None = names.plan(last, lasting) or None
    if plan is not None and mapping.plans:
        plan = mapping.plans.get(plan)
        if not plan:
            faults.insert(0, UNKNOWN_PLAN)
    context = RowContext(person=names.person(last), former_id=names.former_id(last))
    if action is Action.END:
        values: dict[str, object] = {"external_id": last.key, "expiry_date": dates["expiry_date"]}
        return Row(place, values, action, plan, tuple(faults), context=context._replace(ends_access=True))
    values, is_contradictory = _values_of_all(loops, names)
    ends = [coverage.end for coverage in coverages if coverage.end]
    if is_contradictory:
        faults.append(REPEATED)
    is_deleted = any(coverage.is_deleted for coverage in counted)
    if counted and not is_deleted:
        values["medical_plan_description"] = lasting.description or lasting.line
    needs_coverage = is_deleted or (not counted and mapping.lines is not None)
    return Row(
        place,
        values | dates,
        action or Action.COMPARE,
        plan,
        tuple(faults),
        tuple(_warnings(loops, coverages)),
        {**_constants(mapping), **(dates_of_new or {})} or None,
        context._replace(
            causes=(_no_coverage(last),) if needs_coverage else (),
            ends_access=bool(coverages) and all(coverage.is_end for coverage in coverages),
        ),
        part=None if ends and (len(coverages) > 1 or coverages[0].is_end) else part,
    )


def name_two_people(loops: Sequence[MemberLoop], names: MemberNames) -> bool:
    """Whether loops with one identifier are about two people, by the person check."""
    first, *others = map(names.person, loops)
    return any(are_two_people(other, first) and are_two_people(first, other) for other in others)


def _constants(mapping: FileMapping) -> dict[str, object]:
    """What the mapping says for new members whose row does not carry it."""
    rules = mapping.fields.items()
    return {name: rule.constant for name, rule in rules if rule.constant is not None and name in FIELDS}


def _no_coverage(loop: MemberLoop) -> Fault:
    if not loop.covered_by:
        return NO_MEDICAL_COVERAGE
    rule = (
        f"The member carries no coverage of its own. Its subscriber's has the level {loop.covered_by} (HD05). If that covers the "
        'member, say so in the mapping: {"834": {"family_coverage": "subscriber"}}'
    )
    return NO_MEDICAL_COVERAGE._replace(message=rule)


def _warnings(loops: Sequence[MemberLoop], coverages: Sequence[Coverage]) -> Iterator[str]:
    if not any(coverage.line for coverage in coverages) and any(loop.coverages for loop in loops):
        yield NO_MEDICAL_COVERAGE.code
    if coverages and all(each.is_end for each in coverages) and any(loop.code == ADD for loop in loops):
        yield "added_and_ended"


def _values_of_all(loops: Sequence[MemberLoop], names: MemberNames) -> tuple[dict[str, object], bool]:
    """The fields about the person, and whether two loops contradict each other: two values of a field for the same day.

    A loop of a later day (DTP*303, else the date of the file) is news. An end says nothing of the person.
    """
    if len(loops) == 1:
        return _values(loops[0], names), False
    values: dict[str, object] = {}
    days: dict[str, str] = {}
    is_contradictory = False
    enrolling = [loop for loop in loops if loop.action is not Action.END] or loops
    for loop in enrolling:
        day = loop.own.dates.get("303") or loop.transaction.file_date
        for name, value in _values(loop, names).items():
            is_contradictory |= values.get(name, value) != value and days[name] == day
            values[name], days[name] = value, day
    return values, is_contradictory


def _values(loop: MemberLoop, names: MemberNames) -> dict[str, object]:
    """The fields about the person that the loop carries."""
    name, birth = (loop.person.get(tag, PADDING) for tag in ("NM1", "DMG"))
    contacts = loop.contacts
    code, subscriber = loop.ins[2].strip(), loop.ins[1].strip()
    found = {
        "external_id": loop.key,
        "member_id": names.member_id(loop),
        "first_name": name[4].strip(),
        # A number there is NM108, written one element too early.
        "last_name": f"{name[3].strip()} {'' if name[7].strip().isdigit() else name[7].strip()}".strip(),
        "middle_name": name[5].strip(),
        "dob": birth[2].strip(),
        "gender": birth[3].strip().upper(),
        "email": contacts.get("EM"),
        "phone": contacts.get("CP") or contacts.get("HP") or contacts.get("TE"),
        "payor_name": loop.transaction.payor_name,
        "relationship_code": HIPAA_RELATIONSHIPS.get(code),
        "relationship_code_hipaa": code,
        "subscriber_relationship": subscriber if subscriber in X12_SUBSCRIBER else None,
    }
    values: dict[str, object] = {name: value for name, value in found.items() if value} | loop.address()
    for field_name, convert in _FROM_X12:
        if field_name in values:
            values[field_name] = convert(str(values[field_name]))
    if loop.is_corrected and "last_name" in values:
        values.setdefault("middle_name", None)
    return values


def _faults(loop: MemberLoop, mapping: FileMapping) -> list[Fault]:
    faults = []
    if loop.action is None:
        faults.append(Fault("INS03", "unknown_code", "must be 001, 021, 024, 025, 026 or 030"))
    if loop.ins[1].strip() not in X12_SUBSCRIBER:
        faults.append(Fault("INS01", "unknown_code", "must be Y or N"))
    if loop.has_two_names:
        message = "has two names (NM1*IL) that differ; each member needs an INS loop of its own"
        faults.append(Fault("last_name", REPEATED.code, message))
    if not loop.key:
        way = mapping.identify.of(is_subscriber=loop.is_subscriber) if mapping.identify else ()
        message = (
            f"the member does not carry all of {' + '.join(way)}, by which the mapping names members (identify): ask the sender "
            "for it, or name members in another way"
        )
        faults.append(Fault("external_id", "no_identifier", message))
    return faults
