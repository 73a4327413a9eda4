"""A record is opened for a reason and a case, for one session and 15 minutes; each view is
recorded, and many people need a fresh second factor.
"""

from datetime import timedelta

import pytest

from frontdesk.db import Database
from frontdesk.disclosures import find_opening, open_record, read_opened
from frontdesk.disclosures.model import (
    PEOPLE_AN_HOUR,
    FreshFactorNeeded,
    Holder,
    OpenedRecord,
    Opening,
    OpeningReason,
    RecordNotOpen,
)
from frontdesk.errors import Invalid, NotFound
from frontdesk.reach import EVERY, Reach
from tests.disclosures.conftest import Trail
from tests.eligibility.finding import WHO, Finder
from tests.factories import NOW, make_customer


def opened(
    finder: Finder,
    member_id: int,
    *,
    session_id: int = 7,
    case: str = "T-100/a.#2",
    fresh: bool = False,
    minutes: float = 0,
) -> OpenedRecord:
    requester = WHO._replace(now=NOW + timedelta(minutes=minutes))
    opening = Opening(member_id, OpeningReason.COMPLAINT, case, session_id, fresh)
    with finder.db.write() as tx:
        return open_record(tx, requester, finder.reach, opening)


def read(finder: Finder, member_id: int, *, session_id: int = 7, minutes: float = 0) -> str:
    requester = WHO._replace(now=NOW + timedelta(minutes=minutes))
    with finder.db.write() as tx:
        record = read_opened(tx, requester, finder.reach, member_id, session_id=session_id)
    return str(record["first_name"])


def test_a_record_is_open_for_its_session_for_fifteen_minutes(finder: Finder, trail: Trail) -> None:
    id_ = finder.enrol(1)
    other = finder.enrol(2)
    with pytest.raises(RecordNotOpen):
        read(finder, id_)
    assert opened(finder, id_) == OpenedRecord(id_, NOW + timedelta(minutes=15))
    assert [read(finder, id_, minutes=minute) for minute in (0, 14.9)] == ["Robin", "Robin"]
    for closed in ({"minutes": 15}, {"session_id": 8}):
        with pytest.raises(RecordNotOpen):
            read(finder, id_, **closed)
    with pytest.raises(RecordNotOpen):
        read(finder, other)
    assert [entry["subject_id"] for entry in trail("member.read")] == [id_, id_]
    [entry] = trail("member.opened")
    assert entry["detail"] == {
        "reason": "complaint",
        "case": "T-100/a.#2",
        "session": 7,
        "until": "2026-11-20T12:15:00.000000Z",
    }


def test_the_end_of_an_opening_is_known(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1)
    opened(finder, id_)
    opened(finder, id_, minutes=5)
    at = NOW + timedelta(minutes=10)
    with db.read() as tx:
        found = find_opening(tx, id_, Holder(WHO.actor, 7), now=at)
        assert found == OpenedRecord(id_, NOW + timedelta(minutes=20))
        assert find_opening(tx, id_, Holder(WHO.actor, 8), now=at) is None
        assert find_opening(tx, id_, Holder("user:99", 7), now=at) is None


@pytest.mark.parametrize(
    "case",
    [
        "",
        " ",
        "T 100",
        "1" * 41,
        "Sample",
        "T100\n",
        "Müller1",
        "T-100;",
        "\uff11",
        "1980-01-31",
        "1/31/1980",
    ],
)
def test_a_case_number_is_no_free_text(finder: Finder, trail: Trail, case: str) -> None:
    id_ = finder.enrol(1)
    with pytest.raises(Invalid) as refused:
        opened(finder, id_, case=case)
    assert [fault.field for fault in refused.value.faults] == ["case"]
    assert trail("member.opened") == []
    opened(finder, id_, case="1" * 40)


def test_the_twenty_first_person_in_an_hour_needs_a_fresh_factor(
    finder: Finder, trail: Trail
) -> None:
    ids = [finder.enrol(number) for number in range(PEOPLE_AN_HOUR + 2)]
    for minute, id_ in enumerate(ids[:PEOPLE_AN_HOUR]):
        opened(finder, id_, session_id=minute, minutes=minute)
    opened(finder, ids[0], minutes=30)  # no further person
    with pytest.raises(FreshFactorNeeded):
        opened(finder, ids[PEOPLE_AN_HOUR], minutes=30)
    opened(finder, ids[PEOPLE_AN_HOUR], minutes=30, fresh=True)
    with pytest.raises(FreshFactorNeeded):
        opened(finder, ids[-1], minutes=59)
    with finder.db.write() as tx:  # another user
        somebody = WHO._replace(actor="user:2", now=NOW + timedelta(minutes=30))
        opening = Opening(ids[-1], OpeningReason.AUDIT, "1", 1)
        assert open_record(tx, somebody, EVERY, opening).member_id == ids[-1]
    opened(finder, ids[-1], minutes=91)
    assert len(trail("member.opened")) == PEOPLE_AN_HOUR + 4


def test_the_record_of_a_merged_member_is_that_of_the_kept(finder: Finder, trail: Trail) -> None:
    kept = finder.enrol(1)
    dropped = finder.enrol(2)
    finder.merge(1, 2)
    assert opened(finder, dropped).member_id == kept
    assert read(finder, kept) == read(finder, dropped) == "Robin"
    assert {entry["subject_id"] for entry in trail("member.read")} == {kept}


def test_nobody_beyond_the_reach_is_opened(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1)
    opened(finder, id_)
    stranger = Reach.of(make_customer(db, name="Stranger").account_id)
    with pytest.raises(NotFound), db.write() as tx:
        open_record(tx, WHO, stranger, Opening(id_, OpeningReason.AUDIT, "1", 7))
    with pytest.raises(NotFound), db.write() as tx:
        read_opened(tx, WHO, stranger, id_, session_id=7)
