"""Scopes: their text, and what `customer` stands for."""

import pytest

from frontdesk.access.model import Scope, granted, parse_scopes, scope_text


@pytest.mark.parametrize(
    ("text", "written"),
    [("customer", "customer"), ("eligibility:write plans:read", "eligibility:write plans:read"),
     ("customer  customer ", "customer")],
)  # fmt: skip
def test_scopes_are_read_and_written_alike(text: str, written: str) -> None:
    scopes = parse_scopes(text)
    assert scopes is not None
    assert scope_text(scopes) == written


@pytest.mark.parametrize(
    "text", ["", " ", "everything", "customer everything", "Customer", "customer\tplans:read"]
)
def test_an_unknown_scope_or_none_is_no_list_of_scopes(text: str) -> None:
    assert parse_scopes(text) is None


def test_customer_stands_for_the_three_finer_scopes_and_not_for_the_operators() -> None:
    assert granted([Scope.CUSTOMER]) == set(Scope) - {Scope.OPERATOR}
    assert granted([Scope.OPERATOR]) == {Scope.OPERATOR}
    assert granted([Scope.PLANS_READ]) == {Scope.PLANS_READ}
