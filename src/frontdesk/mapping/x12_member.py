"""One member of an 834: the elements of its INS loops become the fields of a record (docs/834.md)."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from frontdesk.eligibility.code_sets import HIPAA_RELATIONSHIPS, X12_SUBSCRIBER
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import Action, RowContext
from frontdesk.eligibility.row_context import are_two_people
from frontdesk.errors import Fault
from frontdesk.formats.x12_loop import ADD, PADDING, MemberLoop
from frontdesk.mapping.model import NO_MEDICAL_COVERAGE, REPEATED, UNKNOWN_PLAN, Row
from frontdesk.mapping.parser import FileMapping
from frontdesk.mapping.x12_access import (
    NO_COVERAGE,
    Coverage,
    action_of,
    coverages_of,
    dates_of,
    effective_coverages,
)
from frontdesk.mapping.x12_identity import MemberNames

_FROM_X12 = [
    (name, field.kind.from_x12)
    for name, field in FIELDS.items()
    if field.kind.from_x12 is not None and name not in ("effective_date", "expiry_date")  # read as they come
]
_duration = attrgetter("duration")


def read_member(place: int, loops: Sequence[MemberLoop], mapping: FileMapping, names: MemberNames) -> Row:
    """The row of one member by all its loops, in the order of the file."""
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
        "last_name": f"{name[3].strip()} {name[7].strip()}".strip(),
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
