"""One member of an 834: the elements of its INS loops become the fields of a record (docs/834.md)."""

from collections.abc import Sequence
from operator import attrgetter

from frontdesk.eligibility.code_sets import HIPAA_RELATIONSHIPS, X12_SUBSCRIBER
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.first_names import fold_first_name
from frontdesk.eligibility.model import Action
from frontdesk.eligibility.row_hints import FamilyMember, RowHints
from frontdesk.errors import Fault
from frontdesk.files.mapping import FileMapping
from frontdesk.files.model import NO_MEDICAL_COVERAGE, REPEATED, UNKNOWN_PLAN, Row
from frontdesk.files.readers.x12_access import NO_COVERAGE, effective_coverages
from frontdesk.files.readers.x12_coverages import action_of, coverages_of, dates_of
from frontdesk.files.readers.x12_keys import X12Keys
from frontdesk.files.readers.x12_loop import PADDING, MemberLoop

_FROM_X12 = [
    (name, field.kind.from_x12)
    for name, field in FIELDS.items()
    if field.kind.from_x12 is not None and name not in ("effective_date", "expiry_date")  # read as they come
]
_duration = attrgetter("duration")


def read_member(place: int, loops: Sequence[MemberLoop], mapping: FileMapping, keys: X12Keys) -> Row:
    """The row of one member by all its loops, in the order of the file."""
    last = loops[-1]
    faults = [fault for loop in loops for fault in _faults(loop)]
    coverages = effective_coverages(coverage for loop in loops for coverage in coverages_of(loop, mapping))
    counted = [coverage for coverage in coverages if coverage.line]
    is_deleted = any(coverage.is_deleted for coverage in counted)
    has_others = not counted and any(loop.coverages for loop in loops)
    action = action_of(loops, coverages)
    dates, dates_of_new = dates_of(loops, coverages, mapping)
    lasting = counted[0] if len(counted) == 1 else max(counted, key=_duration, default=NO_COVERAGE)
    plan: str | None = keys.plan(last, lasting) or None
    if plan is not None and mapping.plans:
        plan = mapping.plans.get(plan)
        if not plan:
            faults.insert(0, UNKNOWN_PLAN)
    told, is_contradictory = _told(loops, keys)
    if is_contradictory or _name_two(loops):
        faults.append(REPEATED)
    first_name, dob = str(told.get("first_name", "")), str(told.get("dob", ""))
    family = keys.family_member(last, first_name=first_name, dob=dob)
    if action is Action.END:
        values = {"external_id": last.key, "expiry_date": dates["expiry_date"]}
        hints = _hints(last, family, keys)._replace(ends_access=True)
        return Row(place, values, action, plan, tuple(faults), hints=hints, identity=last.identity)
    values = told
    if counted and not is_deleted:
        values["medical_plan_description"] = lasting.description or lasting.line
    needs_coverage = is_deleted or (not counted and mapping.lines is not None)
    of_new = dates_of_new
    if keys.is_ssn(last, str(values.get("member_id", ""))):
        of_new = {**(of_new or {}), "member_id": values.pop("member_id")}
    return Row(
        place,
        values | dates,
        action or Action.COMPARE,
        plan,
        tuple(faults),
        (NO_MEDICAL_COVERAGE.code,) if has_others else (),
        of_new,
        _hints(last, family, keys)._replace(
            causes=(NO_MEDICAL_COVERAGE,) if needs_coverage else (),
            ends_access=bool(coverages) and all(coverage.is_end for coverage in coverages),
        ),
        last.identity,
    )


def _hints(loop: MemberLoop, family: FamilyMember, keys: X12Keys) -> RowHints:
    return RowHints(
        is_weak_key=loop.is_weak,
        is_category=loop.is_category,
        hides_key=keys.hides(loop),
        family=family,
    )


def _told(loops: Sequence[MemberLoop], keys: X12Keys) -> tuple[dict[str, object], bool]:
    """The fields about the person, and whether two loops contradict each other: two values of a field for the same day.

    A loop of a later day (DTP*303, else the date of the file) is news. An end says nothing of the person.
    """
    told: dict[str, object] = {}
    days: dict[str, str] = {}
    is_contradictory = False
    if len(loops) == 1:
        return _values(loops[0], keys), False
    enrolling = [loop for loop in loops if loop.action is not Action.END] or loops
    for loop in enrolling:
        day = loop.own.dates.get("303") or loop.transaction.file_date
        for name, value in _values(loop, keys).items():
            is_contradictory |= told.get(name, value) != value and days[name] == day
            told[name], days[name] = value, day
    return told, is_contradictory


def _name_two(loops: Sequence[MemberLoop]) -> bool:
    """Whether the loops name two people: other first names, and not one date of birth."""
    names = [
        (fold_first_name(loop.former_name or name), loop.said("DMG", 2))
        for loop in loops
        if (name := loop.said("NM1", 4))
    ]
    return any(name != names[0][0] and "" in (born, names[0][1]) for name, born in names)


def _values(loop: MemberLoop, keys: X12Keys) -> dict[str, object]:
    """The fields about the person that the loop carries."""
    name, birth = (loop.person.get(tag, PADDING) for tag in ("NM1", "DMG"))
    contacts = loop.contacts
    code, subscriber = loop.ins[2].strip(), loop.ins[1].strip()
    found = {
        "external_id": loop.key,
        "member_id": keys.member_id(loop),
        "first_name": name[4].strip(),
        "last_name": name[3].strip(),
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


def _faults(loop: MemberLoop) -> list[Fault]:
    faults = []
    if loop.action is None:
        faults.append(Fault("INS03", "unknown_code", "must be 001, 021, 024, 025, 026 or 030"))
    if loop.ins[1].strip() not in X12_SUBSCRIBER:
        faults.append(Fault("INS01", "unknown_code", "must be Y or N"))
    if loop.has_two_names:
        message = "has two names (NM1*IL) that differ; each member needs an INS loop of its own"
        faults.append(Fault("last_name", REPEATED.code, message))
    if not loop.key:
        message = "the member has none of the parts that the mapping names"
        if loop.has_shared_number:
            message = "others carry the number of the member too, and it has no REF*0F to be told apart by"
        faults.append(Fault("external_id", "no_match_key", message))
    return faults
