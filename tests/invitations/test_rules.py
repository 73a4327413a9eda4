"""The invitation rules, as a table that reads like the specification."""

import itertools

import pytest

from frontdesk.invitations.enqueue import decide_invitation
from frontdesk.invitations.model import Delivery, NotInvitedReason

EXPECTED = {
    # (new, e-mail, invite_immediately true, batches on): what happens
    (True, "valid", True, True): Delivery.IMMEDIATE,
    (True, "valid", True, False): Delivery.IMMEDIATE,  # rule 3: settings are ignored
    (True, "valid", False, True): Delivery.BATCHED,  # rule 4
    (True, "valid", False, False): NotInvitedReason.DISABLED,  # rule 2
}


@pytest.mark.parametrize(
    ("new", "email", "asked", "batches"),
    list(itertools.product([True, False], ["none", "valid", "suppressed"], [True, False], [True, False])),
)
def test_every_combination_of_the_rules(new: bool, email: str, asked: bool, batches: bool) -> None:
    decision = decide_invitation(
        is_new=new,
        has_email=email != "none",
        suppressed=email == "suppressed",
        expired=False,
        asked=asked,
        batches_enabled=batches,
    )
    otherwise = (
        NotInvitedReason.NOT_NEW
        if not new
        else NotInvitedReason.NO_EMAIL
        if email == "none"
        else NotInvitedReason.SUPPRESSED
    )
    assert decision is EXPECTED.get((new, email, asked, batches), otherwise)


def test_an_account_without_settings_never_asked_and_an_expired_member_gets_no_mail() -> None:
    plain = decide_invitation(
        is_new=True, has_email=True, suppressed=False, expired=False, asked=False, batches_enabled=None
    )
    expired = decide_invitation(
        is_new=True, has_email=True, suppressed=False, expired=True, asked=True, batches_enabled=True
    )
    assert plain is NotInvitedReason.NOT_REQUESTED
    assert expired is NotInvitedReason.EXPIRED
