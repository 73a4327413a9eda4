"""The types of what a row of a file says besides the values of fields."""

from typing import NamedTuple

from frontdesk.errors import Fault


class FamilyMember(NamedTuple):
    """What recognises a person among the stored members of its family (eligibility.families).

    `digest` stands for the family in the database, `name` in identifiers; both are "" without a REF*0F. `code` is the person
    code, "" without one. `former_name` is the first name that the row corrects.
    `telling_key` is an identifier of the person's own, where that of the record may be another's. A file that does not
    show that a number is a social security number makes another identifier of it than one that does: `open_key` is the one that
    may be stored and `hidden_key` the one to take instead, if the family has members whose identifiers have its `other_name`.
    """

    digest: str
    name: str
    first_name: str
    dob: str
    code: str
    telling_key: str
    open_key: str = ""
    hidden_key: str = ""
    other_name: str = ""
    is_subscriber: bool = False
    former_name: str = ""

    @property
    def role(self) -> str:
        """The member's `subscriber_relationship`."""
        return "Primary" if self.is_subscriber else "Dependent"


class RowHints(NamedTuple):
    """What a row of a file says besides the values of fields (eligibility.file_rows).

    `causes` say why a required field is absent: each stands for the `required` of its field. A new member without a zip code
    takes the address of the subscriber of its family, or the one that has one of `subscriber_keys`.

    With `is_weak_key`, a stored member of another first name or date of birth is another person. With `is_category` the
    identifier may be the name of a group of people: it takes the place of no stored one. With `ends_access`, an end before
    the first day of access is an end on that day; with `keeps_earlier_end` the row names no day, and
    an earlier end stays. With `hides_key` the identifier looks like a social security number: no report
    shows it before it is stored.
    """

    causes: tuple[Fault, ...] = ()
    subscriber_keys: tuple[str, ...] = ()
    is_weak_key: bool = False
    is_category: bool = False
    ends_access: bool = False
    keeps_earlier_end: bool = False
    hides_key: bool = False
    family: FamilyMember | None = None


NO_HINTS = RowHints()
