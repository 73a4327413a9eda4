"""One member of an 834, from its INS to the next: its elements become the fields of a record (docs/834.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from frontdesk.eligibility.code_sets import HIPAA_RELATIONSHIPS, X12_SUBSCRIBER
from frontdesk.eligibility.fields import FIELDS, x12_date
from frontdesk.eligibility.model import Action
from frontdesk.errors import Fault
from frontdesk.files.mapping import PERSON_CODE, Alternatives, FileMapping
from frontdesk.files.model import UNKNOWN_PLAN, FileMode, Row

# The elements of a segment, the tag first.
Segment = list[str]

_FROM_X12 = {name: field.kind.from_x12 for name, field in FIELDS.items() if field.kind.from_x12 is not None}
_REINSTATE, _AUDIT = "025", "030"
_ACTIONS = {
    "001": Action.ENROL,
    "021": Action.ENROL,
    _REINSTATE: Action.ENROL,
    "024": Action.END,
    _AUDIT: Action.COMPARE,
}
_PEOPLE = {"IL", "74"}  # NM1*70 is the old, wrong value
_ABOUT_PERSON = {"NM1", "N4", "DMG"}  # the name, the place, the birth
_PHONES = ("CP", "HP", "TE")
_LONGEST_PERSON_CODE = 3  # a REF*17 that is longer says something about a group of people

# These begin providers, other payors, reporting categories, disabilities: their references and dates are not the member's.
_OTHER_LOOPS = {"LX", "COB", "LS", "DSB"}

# A segment may be shorter than the element that is read.
_PADDING = ("",) * 10


@dataclass(slots=True)
class Transaction:
    """What a transaction says of all its members, before the first of them."""

    mode: FileMode
    file_date: str
    payor_name: str = ""
    references: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Qualified:
    """References and dates by their qualifiers: those of the member, or of one coverage."""

    references: dict[str, str]
    line: str = ""
    description: str = ""
    dates: dict[str, str] = field(default_factory=dict)

    @property
    def duration(self) -> tuple[str, str]:
        """Orders coverages by their end and begin; one without an end lasts longest."""
        return self.dates.get("349", "9999-12-31"), self.dates.get("348", "")


_NO_COVERAGE = _Qualified({})


@dataclass(slots=True)
class _MemberParts:
    """The segments of one member, by what they belong to; `person` has those about the member itself, by their tag."""

    own: _Qualified
    coverages: list[_Qualified] = field(default_factory=list)
    contacts: dict[str, str] = field(default_factory=dict)
    person: dict[str, Sequence[str]] = field(default_factory=dict)


def read_member(place: int, segments: list[Segment], transaction: Transaction, mapping: FileMapping) -> Row:
    """The row of one member; `segments` begin with its INS."""
    parts = _sort(segments, _MemberParts(_Qualified(dict(transaction.references))))
    # The medical coverage that lasts longest; any coverage where none is medical.
    medical = [coverage for coverage in parts.coverages if coverage.line in mapping.lines]
    coverage = max(medical or parts.coverages, key=lambda each: each.duration, default=_NO_COVERAGE)
    ins = (*segments[0], *_PADDING)
    code = ins[3].strip()
    action = _action(code, transaction.mode)
    key = _first(mapping.external_id, parts, mapping)
    faults = _faults(action, ins, key)
    # A reference of the coverage goes before the member's own.
    plan: str | None = _first(mapping.plan, parts, mapping, coverage) or None
    if plan is not None and mapping.plans:
        plan = mapping.plans.get(plan)
        if not plan:
            faults.insert(0, UNKNOWN_PLAN)
    end = coverage.dates.get("349") or parts.own.dates.get("357")
    if action is Action.END:
        values: dict[str, object] = {"external_id": key, "expiry_date": end or transaction.file_date}
    else:
        values = _values(ins, parts, coverage, key, mapping)
        if transaction.payor_name:
            values["payor_name"] = transaction.payor_name
        if end or code == _REINSTATE:
            values["expiry_date"] = end
    return Row(place, values, action or Action.COMPARE, plan, tuple(faults))


def _values(
    ins: Sequence[str], parts: _MemberParts, coverage: _Qualified, key: str, mapping: FileMapping
) -> dict[str, object]:
    """The fields that the member has. A date of the coverage goes before the member's own."""
    name, place, birth = (parts.person.get(tag, _PADDING) for tag in ("NM1", "N4", "DMG"))
    contacts = parts.contacts
    code, subscriber = ins[2].strip(), ins[1].strip()
    has_one_key = mapping.member_id == mapping.external_id
    found = {
        "external_id": key,
        "member_id": key if has_one_key else _first(mapping.member_id, parts, mapping),
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
        "relationship_code": HIPAA_RELATIONSHIPS.get(code),
        "relationship_code_hipaa": code,
        "subscriber_relationship": subscriber if subscriber in X12_SUBSCRIBER else None,
        "effective_date": coverage.dates.get("348") or parts.own.dates.get("356"),
        "medical_plan_description": coverage.description or coverage.line,
    }
    values: dict[str, object] = {name: value for name, value in found.items() if value}
    for name, convert in _FROM_X12.items():
        if name in values:
            values[name] = convert(str(values[name]))
    return values


def _first(
    alternatives: Alternatives, parts: _MemberParts, mapping: FileMapping, coverage: _Qualified = _NO_COVERAGE
) -> str:
    """The joined parts of the first alternative that is complete, else ""."""
    for sources in alternatives:
        found = [_source(source, parts, mapping, coverage) for source in sources]
        if all(found):
            return "-".join(found)
    return ""


def _source(source: str, parts: _MemberParts, mapping: FileMapping, coverage: _Qualified) -> str:
    if source == PERSON_CODE:
        code = parts.own.references.get(mapping.person_code[4:], "")
        return code if len(code) <= _LONGEST_PERSON_CODE else ""
    if source == "NM109":
        return parts.person.get("NM1", _PADDING)[9].strip()
    if source == "HD03":
        return coverage.line
    if source == "HD04":
        return coverage.description
    qualifier = source[4:]
    return coverage.references.get(qualifier) or parts.own.references.get(qualifier, "")


def _faults(action: Action | None, ins: Sequence[str], key: str) -> list[Fault]:
    faults = []
    if action is None:
        faults.append(Fault("INS03", "unknown_code", "must be 001, 021, 024, 025 or 030"))
    if ins[1].strip() not in X12_SUBSCRIBER:
        faults.append(Fault("INS01", "unknown_code", "must be Y or N"))
    if not key:
        message = "the member has none of the parts that the mapping names"
        faults.append(Fault("external_id", "no_match_key", message))
    return faults


def _action(code: str, mode: FileMode) -> Action | None:
    """A file for comparing changes nothing; an audit (030) enrols in a full file. None for an unknown code."""
    action = _ACTIONS.get(code)
    if action is None or mode is FileMode.COMPARE:
        return action and Action.COMPARE
    return Action.ENROL if code == _AUDIT and mode is FileMode.FULL else action


def _sort(segments: list[Segment], parts: _MemberParts) -> _MemberParts:
    """A REF or DTP belongs to the member until the first NM1, to a coverage after HD, and is ignored elsewhere."""
    level: _Qualified | None = parts.own
    is_person = False
    for segment in segments:
        tag = segment[0]
        if tag == "NM1":
            level, is_person = None, element(segment, 1) in _PEOPLE and not parts.coverages
        if level is not None and len(segment) > 2 and tag == "REF":
            level.references[segment[1]] = segment[2].strip()
        elif level is not None and len(segment) > 3 and tag == "DTP":
            level.dates[segment[1]] = x12_date(segment[3].strip())
        elif tag == "HD":
            level = _Qualified({}, element(segment, 3), element(segment, 4))
            parts.coverages.append(level)
        elif tag in _OTHER_LOOPS:
            level, is_person = None, False
        elif is_person and tag == "PER":
            for at in range(3, len(segment) - 1, 2):
                parts.contacts.setdefault(segment[at].strip(), segment[at + 1].strip())
        elif is_person and tag in _ABOUT_PERSON:
            parts.person[tag] = (*segment, *_PADDING)
    return parts


def element(segment: Segment, position: int) -> str:
    """The element without space around it; "" when the segment ends before it."""
    return segment[position].strip() if len(segment) > position else ""
