"""One member of an 834, from its INS to the next: the segments' elements become the interface's fields (docs/834.md).

Values go on as they are, but for codes that have words and for dates (CCYYMMDD to YYYY-MM-DD); the rules are not known here.
"""

from dataclasses import dataclass, field

from frontdesk.eligibility.vocabulary import HIPAA_RELATIONSHIPS
from frontdesk.errors import Fault
from frontdesk.files.mapping import PERSON_CODE, Alternatives, Mapping
from frontdesk.files.readers.x12_envelope import element
from frontdesk.files.readers.x12_segments import Segment
from frontdesk.files.rows import Intent, Purpose, Row

_SUBSCRIBER = {"Y": "Primary", "N": "Dependent"}
_GENDERS = {"F": "female", "M": "male", "U": "unknown"}
_REINSTATE, _AUDIT = "025", "030"
_INTENTS = {
    "001": Intent.ENROL,
    "021": Intent.ENROL,
    _REINSTATE: Intent.ENROL,
    "024": Intent.END,
    _AUDIT: Intent.COMPARE,
}
_PEOPLE = {"IL", "74"}  # NM1*70 is the old, wrong value
_PHONES = ("CP", "HP", "TE")
_LONGEST_PERSON_CODE = 3  # a REF*17 that is longer says something about a group of people

# Where a segment belongs to: what opens each part of a member.
_HEAD, _PERSON, _COVERAGE, _OTHER = range(4)
_OPENS_OTHER = {"LX", "COB", "LS", "DSB"}


@dataclass(slots=True)
class Transaction:
    """What stands before the members of a transaction and holds for all of them."""

    purpose: Purpose
    file_date: str
    payor_name: str = ""
    references: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Coverage:
    line: str = ""
    description: str = ""
    references: dict[str, str] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)

    @property
    def lasts(self) -> tuple[str, str]:
        """Orders coverages by how long they last; one without an end lasts longest."""
        return self.dates.get("349", "9999-12-31"), self.dates.get("348", "")


_NO_COVERAGE = _Coverage()


@dataclass(slots=True)
class _Parts:
    """The segments of one member, sorted by what they belong to."""

    references: dict[str, str]
    dates: dict[str, str] = field(default_factory=dict)
    coverages: list[_Coverage] = field(default_factory=list)
    contacts: dict[str, str] = field(default_factory=dict)
    name: Segment = field(default_factory=list)
    place: Segment = field(default_factory=list)
    birth: Segment = field(default_factory=list)


class MemberReader:
    """Reads members by an account's mapping."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping

    def read(self, place: int, segments: list[Segment], transaction: Transaction) -> Row:
        """The row of one member; `segments` begin with its INS."""
        parts = _sort(segments, _Parts(dict(transaction.references)))
        coverage = self._coverage(parts.coverages)
        ins, faults = segments[0], []
        code = element(ins, 3)
        intent = _intent(code, transaction.purpose)
        if intent is None:
            faults.append(Fault("INS03", "unknown_code", "must be 001, 021, 024, 025 or 030"))
        if element(ins, 1) not in _SUBSCRIBER:
            faults.append(Fault("INS01", "unknown_code", "must be Y or N"))
        values: dict[str, object] = {}
        if external_id := self._first(self._mapping.external_id, parts, coverage):
            values["external_id"] = external_id
        else:
            faults.append(Fault("external_id", "no_match_key", "none of what the mapping names is there"))
        plan, unknown = self._plan(parts, coverage)
        faults += unknown
        end = coverage.dates.get("349") or parts.dates.get("357")
        if intent is Intent.END:
            values["expiry_date"] = end or transaction.file_date
        elif intent is not None:
            values |= self._values(ins, parts, coverage)
            if end or code == _REINSTATE:
                values["expiry_date"] = end
            if transaction.payor_name:
                values["payor_name"] = transaction.payor_name
        return Row(place, values, intent or Intent.COMPARE, plan, tuple(faults))

    def _values(self, ins: Segment, parts: _Parts, coverage: _Coverage) -> dict[str, object]:
        name, place, contacts = parts.name, parts.place, parts.contacts
        code = element(ins, 2)
        gender = element(parts.birth, 3)
        found = {
            "member_id": self._first(self._mapping.member_id, parts, coverage),
            "first_name": element(name, 4),
            "last_name": element(name, 3),
            "middle_name": element(name, 5),
            "dob": date_of(element(parts.birth, 2)),
            "gender": _GENDERS.get(gender, gender),
            "email": contacts.get("EM"),
            "phone": next((contacts[kind] for kind in _PHONES if kind in contacts), None),
            "zipcode": element(place, 3),
            "city": element(place, 1),
            "county": element(place, 6) if element(place, 5) == "CY" else None,
            "state": element(place, 2),
            "effective_date": coverage.dates.get("348") or parts.dates.get("356"),
            "medical_plan_description": coverage.description or coverage.line,
            "relationship_code": HIPAA_RELATIONSHIPS.get(code),
            "relationship_code_hipaa": code,
            "subscriber_relationship": _SUBSCRIBER.get(element(ins, 1)),
        }
        return {field_name: value for field_name, value in found.items() if value}

    def _coverage(self, coverages: list[_Coverage]) -> _Coverage:
        """The medical coverage that lasts longest; any coverage where none is medical."""
        if len(coverages) < 2:
            return coverages[0] if coverages else _NO_COVERAGE
        medical = [coverage for coverage in coverages if coverage.line in self._mapping.lines]
        return max(medical or coverages, key=lambda coverage: coverage.lasts)

    def _plan(self, parts: _Parts, coverage: _Coverage) -> tuple[str | None, list[Fault]]:
        named = self._first(self._mapping.plan, parts, coverage)
        if not named or not self._mapping.plans:
            return named or None, []
        plan = self._mapping.plans.get(named)
        message = "the mapping does not say which plan this is"
        return plan, [] if plan else [Fault("plan", "unknown_plan", message)]

    def _first(self, alternatives: Alternatives, parts: _Parts, coverage: _Coverage) -> str:
        """The first alternative that the member has all parts of, joined; "" when there is none."""
        for sources in alternatives:
            found = [self._source(source, parts, coverage) for source in sources]
            if all(found):
                return "-".join(found)
        return ""

    def _source(self, source: str, parts: _Parts, coverage: _Coverage) -> str:
        if source == PERSON_CODE:
            code = parts.references.get(self._mapping.person_code[4:], "")
            return code if len(code) <= _LONGEST_PERSON_CODE else ""
        if source == "NM109":
            return element(parts.name, 9)
        if source == "HD03":
            return coverage.line
        if source == "HD04":
            return coverage.description
        qualifier = source[4:]
        return coverage.references.get(qualifier) or parts.references.get(qualifier, "")


def date_of(text: str) -> str:
    """CCYYMMDD as YYYY-MM-DD; anything else as it is, for the rules to refuse."""
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if len(text) == 8 and text.isdigit() else text


def _intent(code: str, purpose: Purpose) -> Intent | None:
    """A file for comparing changes nothing; an audit (030) enrols in a full file."""
    intent = _INTENTS.get(code)
    if intent is None or purpose is Purpose.COMPARE:
        return intent and Intent.COMPARE
    return Intent.ENROL if code == _AUDIT and purpose is Purpose.FULL else intent


def _sort(segments: list[Segment], parts: _Parts) -> _Parts:
    scope = _HEAD
    for segment in segments:
        tag = segment[0]
        if tag == "HD":
            scope = _COVERAGE
            parts.coverages.append(_Coverage(element(segment, 3), element(segment, 4)))
        elif tag == "NM1":
            scope = _PERSON if element(segment, 1) in _PEOPLE and not parts.coverages else _OTHER
            if scope == _PERSON:
                parts.name = segment
        elif tag in _OPENS_OTHER:
            scope = _OTHER
        elif scope != _OTHER:
            _place(segment, scope, parts)
    return parts


def _place(segment: Segment, scope: int, parts: _Parts) -> None:
    tag = segment[0]
    if scope == _PERSON:
        if tag == "N4":
            parts.place = segment
        elif tag == "DMG":
            parts.birth = segment
        elif tag == "PER":
            for at in range(3, len(segment) - 1, 2):
                parts.contacts.setdefault(element(segment, at), element(segment, at + 1))
        return
    owner = parts.coverages[-1] if scope == _COVERAGE else parts
    if tag == "REF":
        owner.references[element(segment, 1)] = element(segment, 2)
    elif tag == "DTP":
        owner.dates[element(segment, 1)] = date_of(element(segment, 3))
