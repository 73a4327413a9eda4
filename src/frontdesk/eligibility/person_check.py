"""The person check: refuses a row of a file about another person than the stored member that its
identifier leads to (docs/834.md, The person check).
"""

from collections.abc import Iterable, Iterator
from itertools import product

from frontdesk import codes
from frontdesk.eligibility.model import (
    FIRST_DRY_RUN_ID,
    Action,
    MemberWarning,
    StatedPerson,
    StoredMember,
    Submission,
)
from frontdesk.eligibility.persons import Values, person_of, stated_person
from frontdesk.eligibility.same_person import (
    Likeness,
    PersonComparison,
    are_a_day_apart,
    compare_people,
    first_name_spellings,
    last_name_spellings,
)
from frontdesk.errors import Fault, Invalid

_CONFLICT = (
    "is that of a stored member who is another person, by name, birth date, sex, role or family. If "
    "it is the same person, correct the stored record. If the number was given to somebody new, "
    "rename the stored member. Else the numbers have shifted against the rows, or the mapping has "
    "to name members in another way (identify)"
)
IDENTITY_CONFLICT = Fault("external_id", codes.rows.IDENTITY_CONFLICT, _CONFLICT)

# A first name, a birth date ("" for any), and a last name or a family digest.
PersonKey = tuple[str, str, str, str]


class PersonCheck:
    """Checks the rows of files against the stored members of a chunk."""

    def __init__(self, members: Iterable[StoredMember]) -> None:
        self._members = members
        self._by_person: dict[PersonKey, list[StoredMember]] | None = None

    def check(self, submission: Submission, own: StoredMember) -> Invalid | list[MemberWarning]:
        """The refusal of the row if it is about another person than the stored member, else
        warnings about another name or date.
        """
        person = submission.context.person
        given = submission.record.given
        values = own.values
        if person is None:
            # Most rows of a table repeat what is stored.
            has_same_name = given.get("first_name") == values["first_name"]
            if has_same_name and given.get("dob") == values["dob"]:
                return []
            person = stated_person(given)
            if not (person.first_name or person.dob or person.role):
                return []
        elif person.first_name == values["first_name"] and person.dob == values["dob"]:
            return []
        found = compare_people(person, person_of(values))
        if not found.is_same:
            return Invalid([IDENTITY_CONFLICT])
        other = self._who_fits_better(person, own, found)
        if other is not None:
            return Invalid([_conflict_with(other)])
        if submission.action is Action.COMPARE:
            return []  # it says that the field differs
        return [*_warnings(found, person, values)]

    def _who_fits_better(
        self, person: StatedPerson, own: StoredMember, found: PersonComparison
    ) -> StoredMember | None:
        """Another stored member of the family, or with the person's last name, who has the first
        name and the birth date of the person where `own` has not.
        """
        is_less = found.first_names is not Likeness.EQUAL or found.dobs is Likeness.CLOSE
        if not is_less:
            return None
        if self._by_person is None:
            self._by_person = _by_person(self._members)
        account_id = own.values["account_id"]
        for key in _keys(person, person.dob):
            for member in self._by_person.get(key, ()):
                if member is not own and member.values["account_id"] == account_id:
                    return member
        return None


def _by_person(members: Iterable[StoredMember]) -> dict[PersonKey, list[StoredMember]]:
    """Two of the members of each key: one of them is another than the row's own."""
    found: dict[PersonKey, list[StoredMember]] = {}
    for member in members:
        values = member.values
        if values["uniqueness_scope"] < 0 or values["merged_into"] is not None:
            continue
        person = person_of(values)
        for key in (*_keys(person, person.dob), *_keys(person, "")):
            of_key = found.setdefault(key, [])
            if len(of_key) < 2:
                of_key.append(member)
    return found


def _keys(person: StatedPerson, dob: str) -> Iterator[PersonKey]:
    owners = [("last_name", name) for name in last_name_spellings(person.last_name)]
    if person.family:
        owners.append(("family", person.family))
    for first_name, owner in product(first_name_spellings(person.first_name), owners):
        yield first_name, dob, *owner


def _conflict_with(member: StoredMember) -> Fault:
    """The fault, with the id of the member that fits the row; one of a dry run has none."""
    id_ = int(member.values["id"] or FIRST_DRY_RUN_ID)
    fitting = f"member {id_}" if id_ < FIRST_DRY_RUN_ID else "another member"
    return IDENTITY_CONFLICT._replace(message=f"{_CONFLICT}. The row describes {fitting}")


def _warnings(
    found: PersonComparison, person: StatedPerson, values: Values
) -> Iterator[MemberWarning]:
    if found.dobs is Likeness.CLOSE:
        is_shifted = are_a_day_apart(person.dob, values["dob"])
        yield MemberWarning.of(
            codes.warnings.DOB_SHIFTED_ONE_DAY if is_shifted else codes.rows.DOB_CHANGED
        )
    is_placeholder = bool(person.first_name) and not first_name_spellings(person.first_name)
    loses_name = is_placeholder and bool(first_name_spellings(values["first_name"]))
    if found.first_names is Likeness.DIFFERENT or loses_name:
        yield MemberWarning.of(codes.rows.FIRST_NAME_CHANGED)
