"""Members of an 834: what an account's mapping makes of the INS loops (docs/834.md).

The elements of the loops with a member's identifier become the fields of its record. Names and
birth dates stand in an identifier only as a short keyed digest, and so does a social security
number.
"""

import pickle
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, groupby
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from frontdesk import codes
from frontdesk.codes import Code
from frontdesk.eligibility import field_kinds
from frontdesk.eligibility.coverages import ChangeKind, CoverageChange
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import Action, MemberWarning, RowContext, StatedPerson
from frontdesk.eligibility.persons import names_in
from frontdesk.eligibility.same_person import compare_people
from frontdesk.errors import Fault, fault_of
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.formats.source import Source
from frontdesk.formats.x12 import Family, PlacedLoop, X12Reader
from frontdesk.formats.x12_loop import ADD, CHANGE, MISSPELT_FAMILY, TERMINATED, Level, MemberLoop
from frontdesk.mapping import model
from frontdesk.mapping.addresses import FamilyAddresses
from frontdesk.mapping.coverages import (
    StatedCoverage,
    action_of,
    coverages_of,
    family_levels,
    lasting_of,
)
from frontdesk.mapping.member_names import MemberNames
from frontdesk.mapping.parser import APPLIED, FileMapping
from frontdesk.mapping.suggest.identity import suggest_identity

UNKNOWN_GENDER = "unknown"
_ENDING = {ChangeKind.END, ChangeKind.REMOVE}
APART_LIMIT = 1000  # loops of one member: more are a mistake of the sender, and too much to hold
_IN_MEMORY = 8 * 1024**2
_OFFSET_BITS = 40
MEMBER_LOOPS_LIMIT = 100
DESCRIPTIONS_LIMIT = 30  # of one person in its loops, which are compared in pairs


@dataclass(frozen=True, slots=True)
class X12Options:
    """Options for reading an 834. A `mode` overrides BGN08; `secret` is the account's, for the
    digests in identifiers, of tables too.

    `apart` are the ascending places of rows whose member has other rows elsewhere in the file: they
    become one row.
    """

    mode: FileMode | None = None
    secret: bytes = b""
    apart: Sequence[int] = ()


DEFAULT_OPTIONS = X12Options()


class MappingNeeded(Exception):
    """The account's mapping lacks `identify`. `suggestion` proposes one, with its reasons, as JSON."""

    def __init__(self, suggestion: dict[str, Any]) -> None:
        super().__init__()
        self.suggestion = suggestion


def read_x12(
    source: Source, mapping: FileMapping, options: X12Options = DEFAULT_OPTIONS
) -> tuple[model.FileHeader, Iterator[model.UnreadLoops]]:
    """The header, from the first BGN, and the rows, before they are read. Raises Unreadable."""
    verifies_full = mapping.verify == "full"
    is_lenient = mapping.counts == "lenient"
    reader = X12Reader(source, options.mode, verifies_full=verifies_full, is_lenient=is_lenient)
    first = reader.begin()
    is_test = reader.is_test and mapping.tests != APPLIED
    header = model.FileHeader(
        Format.X12, first.mode, first.file_date, is_test=is_test, sender=reader.sender or None
    )
    return header, _items(reader, mapping, options)


def _items(
    reader: X12Reader, mapping: FileMapping, options: X12Options
) -> Iterator[model.UnreadLoops]:
    if mapping.identify is None:
        raise MappingNeeded(suggest_identity(loop for _, loop in reader.loops()))
    with SpooledTemporaryFile(_IN_MEMORY) as scratch:
        apart = LoopsApart(options.apart, scratch)
        yield from MemberReader(reader, MemberNames(mapping, options.secret), apart).items()


def suggest_x12(source: Source) -> dict[str, Any]:
    """How the 834 may name its members (suggest.identity), by its members up to what can't be read.
    Raises Unreadable.
    """
    reader = X12Reader(source, mode=None)
    reader.begin()
    return suggest_identity(_readable(loop for _, loop in reader.loops()))


def _readable(loops: Iterator[MemberLoop]) -> Iterator[MemberLoop]:
    with suppress(Unreadable):
        yield from loops


class MemberReader:
    """One pass over the loops of a file, which are to be read in its order."""

    def __init__(self, reader: X12Reader, names: "MemberNames", apart: "LoopsApart") -> None:
        self._reader = reader
        self._names = names
        self._apart = apart
        self._addresses = FamilyAddresses()
        self._subscriber: MemberLoop | None = None  # the last one
        self._loops: list[PlacedLoop] = []
        self._part: model.FamilyPart | None = None  # of the last loop

    def items(self) -> Iterator[model.UnreadLoops]:
        """The rows come a loop late, since loops of a member that follow one another make one row."""
        for item in self._reader.members():
            if isinstance(item, Family):
                yield model.UnreadLoops(partial(self._rows_of_family, item), item, self._flush)
            else:
                yield model.UnreadLoops(partial(self._loop, *item))
        yield model.UnreadLoops(self._rest)

    def _rows_of_family(self, family: Family) -> Iterator[model.Row]:
        for number, (place, loop) in enumerate(family.loops()):
            is_plain = not (loop.nested or loop.is_untidy or loop.is_corrected)
            yield from self._loop(place, loop, (family, number) if is_plain else None)

    def _rest(self) -> Iterator[model.Row]:
        """The last member, those with loops apart, and the dependents that have waited for an
        address; the first of them is warned of a file that is not as the book wants it.
        """
        of_apart = chain.from_iterable(map(self._rows_of, self._apart.members()))
        for row in chain(self._flush(), of_apart, self._addresses.rest()):
            if self._reader.untidy:
                detail = f"has {', '.join(self._reader.untidy)}"
                row.warnings += (MemberWarning.of(codes.rows.UNTIDY_FILE, detail=detail),)
                self._reader.untidy.clear()
            yield row

    def _take_from_subscriber(self, loop: MemberLoop) -> None:
        """Give a dependent without an address that of the subscriber before it, if both have one
        last name; without a coverage, those of a family, if both have one REF*0F or one last name.
        """
        subscriber = self._subscriber
        if subscriber is None or subscriber.transaction is not loop.transaction:
            return
        names = names_in(loop.element("NM1", 3))
        is_same_name = not names.isdisjoint(names_in(subscriber.element("NM1", 3)))
        is_same_family = bool(loop.family) and loop.family == subscriber.family
        if not is_same_name and not is_same_family:
            return
        address = subscriber.address()
        if not is_same_name:
            loop.has_no_home = True
        elif not loop.element("N4", 3) and field_kinds.ZIPCODE_PATTERN.fullmatch(
            str(address.get("zipcode", ""))
        ):
            loop.address_before = address
        if not loop.coverages:
            levels = family_levels(loop, subscriber, self._names.mapping)
            if self._names.mapping.family_coverage == "subscriber":
                loop.coverages = levels
            loop.covered_by = levels[0].hd[5].strip() if levels else ""

    def _loop(
        self, place: int, loop: MemberLoop, part: model.FamilyPart | None = None
    ) -> Iterator[model.Row]:
        """Fold the loop with those of the same member just before it, unless it repeats one letter
        by letter.
        """
        if loop.is_untidy:
            self._reader.note(MISSPELT_FAMILY)
        loop.key = self._names.external_id(loop)
        if loop.is_subscriber:
            self._subscriber = loop
        else:
            self._take_from_subscriber(loop)
        loops = self._loops
        is_same = (
            loops
            and loop.key
            and loop.key == loops[-1][1].key
            and loop.action
            and loops[-1][1].action
        )
        if not is_same or loop == loops[-1][1] or len(loops) == MEMBER_LOOPS_LIMIT:
            yield from self._flush()
        self._loops.append((place, loop))
        self._part = part
        for position in loop.nested:
            fault = fault_of(codes.rows.NESTED_DEPENDENT)
            family = StatedPerson(family=self._names.person(loop).family)
            row = model.Row(
                place + position, {}, faults=(fault,), context=RowContext(person=family)
            )
            yield _placed(row, loop)

    def _flush(self) -> Iterator[model.Row]:
        loops = self._loops
        self._loops = []
        if loops and self._apart.keep(loops):
            # Dependents need the address before all loops of their subscriber are there.
            self._addresses.note(read_member(loops, self._names), loops[-1][1].family)
        elif loops:
            yield from self._rows_of(loops, self._part if len(loops) == 1 else None)

    def _rows_of(
        self, placed: list[PlacedLoop], part: model.FamilyPart | None = None
    ) -> Iterator[model.Row]:
        """The row of a member; of two people with one identifier, a refused row for each loop."""
        last = placed[-1][1]
        if len(placed) > 1 and _are_of_two_people(self._names.person(loop) for _, loop in placed):
            for place, loop in placed:
                row = model.Row(place, {"external_id": loop.key}, faults=(model.IDENTIFIER_SHARED,))
                row.context = RowContext(person=self._names.person(loop))
                yield _placed(row, loop)
            return
        row = _placed(read_member(placed, self._names, part), placed[0][1])
        if len(placed) > APART_LIMIT:
            row.faults += (model.REPEATED,)
        yield from self._addresses.take(
            row, last.family, last.address_before, has_no_home=last.has_no_home
        )


class LoopsApart:
    """Loops that are kept in a file. `places` are those of the groups of loops to keep, in
    ascending order.
    """

    def __init__(self, places: Sequence[int], file: IO[bytes]) -> None:
        self._file = file
        self._places = iter(places)
        self._next = next(self._places, None)
        self._entries = array("Q")  # a hash of the member's key, and the offset in the file

    def keep(self, loops: list[PlacedLoop]) -> bool:
        """Keep the loops, which stand behind those that were asked for before; False if they are
        not to be kept.
        """
        place, loop = loops[0]
        if place != self._next:
            return False
        self._next = next(self._places, None)
        self._entries.append(zlib.crc32(loop.key.encode()) >> 8 << _OFFSET_BITS | self._file.tell())
        pickle.dump(loops, self._file, pickle.HIGHEST_PROTOCOL)
        return True

    def members(self) -> Iterator[list[PlacedLoop]]:
        """The loops of each member with their places, in the order of the file; not more than
        APART_LIMIT + 1 of them.
        """
        for _, entries in groupby(sorted(self._entries), lambda entry: entry >> _OFFSET_BITS):
            members: dict[str, list[PlacedLoop]] = {}
            for entry in entries:
                self._file.seek(entry % 2**_OFFSET_BITS)
                loops = pickle.load(self._file)  # noqa: S301 - written by this process
                loops_of_member = members.setdefault(loops[0][1].key, [])
                loops_of_member += loops[: APART_LIMIT + 1 - len(loops_of_member)]
            yield from members.values()


def _are_of_two_people(people: Iterable[StatedPerson]) -> bool:
    """Whether the loops of one identifier are about two people, or may be."""
    described = {*people}
    if len(described) > DESCRIPTIONS_LIMIT:
        return True
    return not all(compare_people(*pair).is_certain for pair in combinations(described, 2))


def _placed(row: model.Row, loop: MemberLoop) -> model.Row:
    """The row with the place of the loop in its transaction."""
    row.transaction = loop.transaction.number
    row.ordinal = loop.ordinal
    return row


def read_member(
    placed: Sequence[PlacedLoop], names: MemberNames, part: model.FamilyPart | None = None
) -> model.Row:
    """The row of one member by all its loops, in the order of the file. It is a `part` of its
    family unless it ends coverages: the date of the file may be the day of an end.
    """
    place, _ = placed[0]
    last = placed[-1][1]
    mapping = names.mapping
    loops = [loop for _, loop in placed]
    faults = [fault for loop in loops for fault in _faults(loop, mapping)]
    stated = [each for loop in loops for each in _coverages_of(loop, names)]
    begun = lasting_of(stated, ChangeKind.SET)
    ended = lasting_of(stated, ChangeKind.END)
    action = action_of(loops, stated)
    lasting = begun or ended
    plan = names.plan(last, lasting.level if lasting is not None else None)
    of_begun = (each.change.plan for each in stated if each.change.kind is ChangeKind.SET)
    if not all(map(names.has_plan, [plan, *of_begun])):
        faults.insert(0, model.UNKNOWN_PLAN)
    changes = tuple(
        each.change._replace(plan=names.plan_named(each.change.plan)) for each in stated
    )
    context = RowContext(
        person=names.person(last),
        former_id=names.former_id(last),
        coverages=changes,
        keeps_plan=bool(mapping.plan) and not plan,
    )
    own_plan = names.plan_named(plan)
    if action is Action.END:
        values: dict[str, object] = {"external_id": last.key}
        return model.Row(place, values, action, own_plan, tuple(faults), context=context)
    values, is_contradictory = _values_of_all(loops, names)
    if is_contradictory:
        faults.append(model.REPEATED)
    values_of_new = _constants(mapping)
    if begun is not None and begun.level is not None:
        values["medical_plan_description"] = _plan_description(begun.level)
    elif ended is not None and ended.level is not None:
        values_of_new["medical_plan_description"] = _plan_description(ended.level)
    if begun is None and ended is None and mapping.lines is not None:
        context = context._replace(causes=(_no_coverage(last),))
    warnings = [*_warnings(loops, changes)]
    if "gender" not in values and any(loop.element("DMG", 3) for loop in loops):
        values_of_new = {"gender": UNKNOWN_GENDER} | values_of_new
        warnings.insert(0, codes.rows.GENDER_UNKNOWN)
    if any(each.kind is not ChangeKind.SET for each in changes):
        part = None
    return model.Row(
        place,
        values,
        action or Action.COMPARE,
        own_plan,
        tuple(faults),
        tuple(map(MemberWarning.of, warnings)),
        values_of_new or None,
        context,
        part=part,
    )


def _warnings(loops: Sequence[MemberLoop], changes: Sequence[CoverageChange]) -> Iterator[Code]:
    """What a row that does not end its member says of its access, and may not mean."""
    if not changes and any(loop.coverages for loop in loops):
        yield codes.rows.NO_MEDICAL_COVERAGE
    if any(loop.ins[12] for loop in loops):
        yield codes.rows.DEATH_REPORTED
    if any(loop.ins[3] == CHANGE and loop.ins[8] == TERMINATED for loop in loops):
        yield codes.rows.EMPLOYMENT_ENDED
    are_ended = bool(changes) and all(each.kind in _ENDING for each in changes)
    if are_ended and any(loop.ins[3] == ADD for loop in loops):
        yield codes.rows.ADDED_AND_ENDED


def _coverages_of(loop: MemberLoop, names: MemberNames) -> list[StatedCoverage]:
    return coverages_of(loop, names.mapping, partial(names.plan, loop))


def _plan_description(level: Level) -> str:
    return level.hd[4].strip() or level.hd[3] or "?"


def _constants(mapping: FileMapping) -> dict[str, object]:
    """The values that the mapping gives to each new member."""
    constants = {name: rule.constant for name, rule in mapping.fields.items() if name in FIELDS}
    return {name: value for name, value in constants.items() if value is not None}


def _no_coverage(loop: MemberLoop) -> Fault:
    if not loop.covered_by:
        return model.NO_MEDICAL_COVERAGE
    rule = (
        "The member carries no coverage of its own. Its subscriber's has the level "
        f"{loop.covered_by} (HD05). If that covers the "
        'member, say so in the mapping: {"834": {"family_coverage": "subscriber"}}'
    )
    return model.NO_MEDICAL_COVERAGE._replace(message=rule)


def _values_of_all(
    loops: Sequence[MemberLoop], names: MemberNames
) -> tuple[dict[str, object], bool]:
    """The fields about the person, and whether two loops contradict each other: two values of a
    field for the same day.

    A loop of a later day (DTP*303, else the date of the file) has priority. An end has no data
    about the person.
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
            values[name] = value
            days[name] = day
    return values, is_contradictory


def _values(loop: MemberLoop, names: MemberNames) -> dict[str, object]:
    """The fields about the person that the loop carries. A code that has no meaning stays as it is,
    to be refused.
    """
    first_name, last_name, dob, sex = loop.named(loop.person)
    contacts = loop.contacts
    code = loop.ins[2]
    found = {
        "external_id": loop.key,
        "member_id": names.member_id(loop),
        "first_name": first_name,
        "last_name": last_name,
        "middle_name": loop.element("NM1", 5),
        "dob": dob,
        "gender": field_kinds.X12_GENDERS.get(sex),
        "email": contacts.get("EM"),
        "phone": contacts.get("CP") or contacts.get("HP") or contacts.get("TE"),
        "payor_name": loop.transaction.payor_name,
        "relationship_code": field_kinds.HIPAA_RELATIONSHIPS.get(code),
        "relationship_code_hipaa": code,
        "subscriber_relationship": field_kinds.X12_SUBSCRIBER.get(loop.ins[1]),
    }
    values: dict[str, object] = {
        name: value for name, value in found.items() if value
    } | loop.address()
    if loop.is_corrected and "last_name" in values:
        values.setdefault("middle_name", None)
    return values


def _faults(loop: MemberLoop, mapping: FileMapping) -> Iterator[Fault]:
    if loop.action is None:
        yield Fault("INS03", codes.rows.UNKNOWN_CODE, "must be 001, 021, 024, 025, 026 or 030")
    if loop.ins[1] not in field_kinds.X12_SUBSCRIBER:
        yield Fault("INS01", codes.rows.UNKNOWN_CODE, "must be Y or N")
    if loop.has_two_names:
        message = "has two names (NM1*IL) that differ; each member needs an INS loop of its own"
        yield Fault("last_name", codes.rows.REPEATED_DIFFERENTLY, message)
    if not loop.key:
        way = mapping.identify.of(is_subscriber=loop.is_subscriber) if mapping.identify else ()
        message = (
            f"the member does not carry all of {' + '.join(way)}, by which the mapping names "
            "members (identify): ask the sender for it, or name members in another way"
        )
        yield Fault("external_id", codes.rows.NO_IDENTIFIER, message)
