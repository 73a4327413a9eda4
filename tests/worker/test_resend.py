"""A mail that an operator asks for again: one to an address in a day, whoever asks, and however many ask at once."""

import threading
from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from frontdesk.db import Database
from frontdesk.db.engine import write_alone
from frontdesk.errors import FrontdeskError
from frontdesk.invitations import delivery
from frontdesk.invitations.tables import invitations
from tests.worker.conftest import Post


@pytest.fixture
def two_to_one_address(post: Post) -> list[int]:
    """Two members had the address, one after the other; both invitations were cancelled."""
    post.enrol(2)
    with post.db.write() as tx:
        tx.exec_driver_sql(
            "UPDATE invitations SET address = 'one@example.com', address_folded = 'one@example.com'"
        )
        ids = [int(row["id"]) for row in post.rows()]
        for id_ in ids:
            delivery.cancel_invitation(tx, id_, now=post.clock())
    return ids


def resend(db: Database, invitation_id: int, now: datetime) -> str:
    """What the operator reads."""
    try:
        write_alone(db, lambda tx: delivery.resend_invitation(tx, invitation_id, now=now))
    except FrontdeskError as error:
        return error.detail
    return "resent"


def test_of_two_operators_at_the_same_moment_one_resends(post: Post, two_to_one_address: list[int]) -> None:
    first, second = two_to_one_address
    answers: list[str] = []
    other = threading.Thread(target=lambda: answers.append(resend(post.db, second, post.clock())))
    with post.db.write() as tx:
        delivery.resend_invitation(tx, first, now=post.clock())
        other.start()
        other.join(1)  # on neither database can it be answered before this commit
    other.join()
    assert answers == ["Another invitation to the address is in line already."]
    assert post.states() == ["pending", "cancelled"]


def test_a_held_ambiguous_one_is_not_in_line(post: Post, two_to_one_address: list[int]) -> None:
    first, second = two_to_one_address
    held = {"state": "ambiguous", "due_at": post.clock() + timedelta(hours=20)}
    with post.db.write() as tx:
        tx.execute(update(invitations).where(invitations.c.id == first).values(held))
    assert resend(post.db, second, post.clock()) == "resent"
