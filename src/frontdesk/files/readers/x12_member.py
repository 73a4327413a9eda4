"""One member of an 834: the elements of its INS loops become the fields of a record (docs/834.md)."""

from collections.abc import Sequence
from operator import attrgetter

from frontdesk.eligibility.code_sets import HIPAA_RELATIONSHIPS, X12_SUBSCRIBER
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import Action
from frontdesk.eligibility.row_hints import RowHints
from frontdesk.errors import Fault
from frontdesk.files.mapping import FileMapping
from frontdesk.files.model import NO_MEDICAL_COVERAGE, REPEATED, UNKNOWN_PLAN, Row
from frontdesk.files.readers.x12_access import NO_COVERAGE, Coverage, access_of
from frontdesk.files.readers.x12_keys import X12Keys
from frontdesk.files.readers.x12_loop import END, NO_COVERAGE_CODES, PADDING, REINSTATE, MemberLoop

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
    coverages = [coverage for loop in loops for coverage in _coverages(loop, mapping)]
    counted = [coverage for coverage in coverages if coverage.line]
    has_others = not counted and any(loop.coverages for loop in loops)
    action = _action(loops, coverages)
    dates, dates_of_new = _dates(loops, coverages, mapping)
    lasting = counted[0] if len(counted) == 1 else max(counted, key=_duration, default=NO_COVERAGE)
    plan: str | None = keys.plan(last, lasting) or None
    if plan is not None and mapping.plans:
        plan = mapping.plans.get(plan)
        if not plan:
            faults.insert(0, UNKNOWN_PLAN)
    told, is_contradictory = _told(loops, keys)
    first_name, dob = str(told.get("first_name", "")), str(told.get("dob", ""))
    family = keys.family_member(last, first_name=first_name, dob=dob)
    is_weak = last.is_weak
    identity = None if last.identity == last.key else last.identity
    if action is Action.END:
        values = {"external_id": last.key, "expiry_date": dates["expiry_date"]}
        hints = RowHints(
            is_weak_key=is_weak, may_be_shared=last.may_be_shared, ends_access=True, family=family
        )
        return Row(place, values, action, plan, tuple(faults), hints=hints, identity=identity)
    values = told
    if is_contradictory:
        faults.append(REPEATED)
    if counted:
        values["medical_plan_description"] = lasting.description or lasting.line
    needs_coverage = not counted and mapping.lines is not None
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
        RowHints(
            causes=(NO_MEDICAL_COVERAGE,) if needs_coverage else (),
            is_weak_key=is_weak,
            may_be_shared=last.may_be_shared,
            ends_access=bool(coverages) and all(coverage.is_end for coverage in coverages),
            family=family,
        ),
        identity,
    )


def _action(loops: Sequence[MemberLoop], coverages: Sequence[Coverage]) -> Action | None:
    """What all loops ask for together: to end the member only if none of them enrols it."""
    for loop in loops:
        if loop.action is not Action.END:
            return loop.action
    # The end of coverages that don't count is no end of the member.
    return Action.END if coverages else Action.ENROL


def _coverages(loop: MemberLoop, mapping: FileMapping) -> list[Coverage]:
    """The coverages that count, and the end of the member if the loop says one."""
    file_date, first_day, last_day = loop.transaction.file_date, *map(loop.own.dates.get, ("356", "357"))
    counted = [
        level
        for level in loop.coverages
        if level.hd[1] not in NO_COVERAGE_CODES and (mapping.lines is None or level.hd[3] in mapping.lines)
    ]
    ends_member = loop.code == END
    end_of_all = last_day or (
        ends_member and max((level.dates.get("349", "") for level in counted), default="")
    )
    found = []
    for level in counted:
        ends_coverage = level.hd[1] == END
        is_end = ends_member or ends_coverage
        changed = level.dates.get("303", "")
        end = level.dates.get("349", "") or (changed if ends_coverage else "")
        if ends_member:
            end = last_day or end or end_of_all or file_date
        elif is_end:
            end = end or last_day or file_date
        end = min(end or last_day, last_day) if last_day else end
        line, description = level.hd[3], level.hd[4].strip()
        begin = level.dates.get("348") or first_day or ""
        changed = changed or loop.own.dates.get("303", "")
        found.append(Coverage(line or "?", description, begin, end, is_end, level.references, changed))
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
        if any(loop.code == REINSTATE for loop in loops):
            dates["expiry_date"] = None
        if mapping.lines is None and (begin := loops[-1].own.dates.get("356")):
            dates["effective_date"] = begin
    return dates, None


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
        faults.append(Fault("external_id", "no_match_key", message))
    return faults
