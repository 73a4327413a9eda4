"""What the tests of undos share: stored records, random loads, actions of people."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from frontdesk.audit import Requester
from frontdesk.db import Database
from frontdesk.eligibility import people
from frontdesk.reach import EVERY
from tests.conftest import SetClock
from tests.factories import make_customer
from tests.files.loading import Desk, row

DIGESTS = ("person_digest", "family_digest")


def records(desk: Desk) -> dict[str, dict[str, Any]]:
    """Every stored column of the members, without the time of their last change and digests."""
    return {
        key: {name: value for name, value in member.items() if name not in DIGESTS}
        for key, member in desk.members().items()
    }


def act(desk: Desk, action: Any, first: str, second: str, **options: Any) -> None:
    by = Requester("cli:test", "request", desk.clock())
    with desk.db.write() as tx:
        action(tx, *people.lock_pair(tx, EVERY, first, second), by, **options)


texts = st.sampled_from(["Zoë", "O'Hara", "Sample"])
metadata = st.dictionaries(st.sampled_from("xyz"), texts, max_size=2)
rows = st.lists(
    st.builds(
        lambda number, member, **values: row(
            number, member_id=f"M{member}", dob=f"1980-02-{number:02d}", **values
        ),
        number=st.integers(1, 4),
        member=st.integers(1, 4),
        last_name=texts,
        city=st.none() | texts,
        email=st.none() | st.sampled_from(["a@example.com", "B@example.com"]),
        effective_date=st.sampled_from(["2026-01-01", "2027-01-01"]),
        expiry_date=st.none() | st.sampled_from(["2027-06-30", "2027-12-31"]),
        metadata=metadata,
    ),
    min_size=1,
    max_size=5,
)
loads = st.lists(st.tuples(rows, st.integers(0, 1), st.booleans()), min_size=3, max_size=3)


def fresh_desk(db: Database, clock: SetClock) -> Desk:
    """A new customer without members; those of earlier examples are out of the way."""
    desk = Desk(db, make_customer(db, name="Undo"), clock)
    desk.options = replace(desk.options, chunk_rows=2)
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE members SET uniqueness_scope = -id")
    return desk
