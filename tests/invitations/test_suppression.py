"""The suppression list, and what it prevents."""

from frontdesk.db import Database
from frontdesk.invitations import list_suppressions, suppress, unsuppress
from frontdesk.invitations.model import SuppressionReason
from tests.conftest import Api
from tests.factories import NOW, Customer, member_body


def test_an_address_is_suppressed_however_it_is_written_and_its_first_reason_stays(db: Database) -> None:
    with db.write() as tx:
        assert suppress(tx, "Robin@Example.com", SuppressionReason.UNSUBSCRIBE, now=NOW)
        assert not suppress(tx, "robin@example.com", SuppressionReason.HARD_BOUNCE, now=NOW)
        [found] = list_suppressions(tx, limit=10)
        assert (found.address, found.reason, found.created_at) == ("robin@example.com", "unsubscribe", NOW)
        assert unsuppress(tx, "rObin@example.com")
        assert not unsuppress(tx, "robin@example.com")
        assert list_suppressions(tx, limit=10) == []


def test_a_decomposed_character_is_the_same_character(db: Database) -> None:
    with db.write() as tx:
        assert suppress(tx, "ro\u0308bin@example.com", SuppressionReason.BY_HAND, now=NOW)
        assert not suppress(tx, "R\u00d6BIN@example.com", SuppressionReason.BY_HAND, now=NOW)


def test_the_list_is_read_in_order_up_to_the_limit(db: Database) -> None:
    addresses = [f"a{n:04d}@example.com" for n in range(1005)]
    with db.write() as tx:
        for address in reversed(addresses):
            suppress(tx, address, SuppressionReason.BY_HAND, now=NOW)
    with db.read() as tx:
        assert [each.address for each in list_suppressions(tx, limit=10_000)] == addresses
        assert [each.address for each in list_suppressions(tx, limit=3)] == addresses[:3]
        assert [each.address for each in list_suppressions(tx, limit=1003)] == addresses[:1003]


def test_a_suppressed_address_is_named_as_the_reason_and_invited_again_when_it_is_allowed(
    api: Api, db: Database, customer: Customer
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    with db.write() as tx:
        suppress(tx, "robin.1@example.com", SuppressionReason.COMPLAINT, now=NOW)
    answer = api.post(path, member_body(1, email="Robin.1@Example.COM", invite_immediately=True))
    assert (answer.status_code, answer.headers["Invitation"]) == (201, "none; reason=suppressed")
    with db.write() as tx:
        unsuppress(tx, "robin.1@example.com")
    answer = api.post(path, member_body(2, email="robin.11@example.com", invite_immediately=True))
    assert answer.headers["Invitation"] == "immediate"
