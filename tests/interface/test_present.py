"""Answers as they are made of what is stored."""

from frontdesk.eligibility.model import ANSWERED, Enrolled, Outcome, StoredMember
from frontdesk.interface import present
from frontdesk.interface.types.members import Eligibility
from frontdesk.invitations.model import NotInvitedReason


def test_a_written_member_is_answered_by_the_values_of_its_fields() -> None:
    """Those of ANSWERED, in this order; a new member has its id in what was stored."""
    enrolled = Enrolled(
        outcome=Outcome.CREATED,
        stored=StoredMember({"id": 7}, is_new=True),
        answered=(None, *ANSWERED[1:]),
        changes={},
        warnings=(),
        invitation=NotInvitedReason.NO_EMAIL,
    )
    assert tuple(Eligibility.__annotations__) == ANSWERED
    assert dict(present.member(enrolled)) == {name: name for name in ANSWERED} | {"id": 7}
