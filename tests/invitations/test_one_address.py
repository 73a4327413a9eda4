"""One mailbox is one address, in whatever spelling: unique once, suppressed once, and looked up again as it is mailed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.eligibility.fields import parse_email
from frontdesk.invitations.message import mailable
from frontdesk.text import Rejected, fold_email
from tests.conftest import Api
from tests.factories import Customer, member_body

SPELLINGS = [
    ("Alice@Example.COM", "alice@example.com"),
    ("alice@ⓔxample.com", "alice@example.com"),
    ("alice@\uff25\uff38\uff21\uff2d\uff30\uff2c\uff25.com", "alice@example.com"),
    ("alice@exampl\u212f.com", "alice@example.com"),
    ("alice@BÜCHER.de", "alice@xn--bcher-kva.de"),
    ("alice@bu\u0308cher.de", "alice@xn--bcher-kva.de"),
    ("alice@XN--BCHER-KVA.de", "alice@xn--bcher-kva.de"),
    ("alice@faß.de", "alice@xn--fa-hia.de"),  # another domain than fass.de, as UTS 46 has it
    ("Zoe\u0308@Example.com", "zo\u00eb@example.com"),
    ("alice@☃.example", "alice@☃.example"),  # no domain name
]


@pytest.mark.parametrize(("spelling", "folded"), SPELLINGS)
def test_a_spelling_is_folded_to_the_domain_that_is_asked_for_it(spelling: str, folded: str) -> None:
    assert fold_email(spelling) == folded


@given(st.text(st.characters(min_codepoint=33, exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_what_is_mailed_is_folded_as_what_was_stored(label: str) -> None:
    try:
        address = parse_email(f"a@{label}.com")
    except Rejected:
        return
    assert fold_email(address) == fold_email(mailable(address))
    assert fold_email(fold_email(address)) == fold_email(address)


def test_no_two_members_have_one_address(api: Api, customer: Customer) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    assert api.post(path, member_body(1, email="alice@example.com")).status_code == 201
    for number, (spelling, _) in enumerate(SPELLINGS[1:4], 2):
        answer = api.post(path, member_body(number, email=spelling))
        assert [(fault["field"], fault["code"]) for fault in answer.json()["errors"]] == [
            ("email", "not_unique")
        ]
    answer = api.post(path, {"external_id": member_body(1)["external_id"], "email": "alice@ⓔxample.com"})
    assert answer.headers["Eligibility-Changed"] == "email"  # it is its own address
