"""The last day of access ends where the member lives (docs/interface.md, Days)."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, reset_tzpath

import pytest

from frontdesk.access.accounts import set_time_zone
from frontdesk.clock import AccountDay, _account_day, account_day
from frontdesk.db import Database
from frontdesk.eligibility import find_expired
from frontdesk.errors import Invalid
from tests.conftest import Api, SetClock
from tests.factories import EVERY_SCOPE, Customer, member_body, second_token
from tests.files.loading import Desk, lines_of

NEW_YORK = "America/New_York"
# 22:30 on the 20th in New York, 17:30 in Honolulu
LATE = datetime(2026, 11, 21, 3, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hour", "zone", "day"),
    [
        (3, NEW_YORK, AccountDay("2026-11-20", "2026-11-20")),
        (5, NEW_YORK, AccountDay("2026-11-21", "2026-11-21")),
        (3, None, AccountDay("2026-11-20", "2026-11-21")),
        (9, None, AccountDay("2026-11-20", "2026-11-21")),
        (10, None, AccountDay("2026-11-21", "2026-11-21")),
        (16, "Pacific/Guam", AccountDay("2026-11-22", "2026-11-22")),
    ],
)
def test_a_day_is_that_of_the_zone_or_lasts_to_its_end_in_honolulu(
    hour: int, zone: str | None, day: AccountDay
) -> None:
    assert account_day(datetime(2026, 11, 21, hour, tzinfo=UTC), zone) == day


class Place:
    """A plan whose members live in a time zone, late in the evening of their last day."""

    def __init__(self, api: Api, db: Database, customer: Customer, clock: SetClock) -> None:
        clock.now = LATE
        self.api = api
        self.db = db
        self.clock = clock
        self.account_id = customer.account_id
        self.desk = Desk(db, customer, clock)
        self.path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"

    def move_to(self, zone: str | None) -> None:
        with self.db.write() as tx:
            set_time_zone(tx, self.account_id, zone)
        self.api.token = second_token(self.db, self.account_id, *EVERY_SCOPE, now=self.clock())

    def is_eligible(self, number: int) -> bool:
        query = f"?external_id=AB {number:06d}"
        [member] = self.api.get(self.path + query).json()["data"]
        return bool(member["eligible"])


@pytest.fixture
def place(api: Api, db: Database, customer: Customer, clock: SetClock) -> Place:
    return Place(api, db, customer, clock)


@pytest.mark.parametrize("zone", [NEW_YORK, None])
def test_the_last_day_of_access_lasts_to_its_end(place: Place, zone: str | None) -> None:
    place.move_to(zone)
    place.api.post(place.path, member_body(1, expiry_date="2026-11-20"))
    assert place.is_eligible(1)
    place.clock.advance(12 * 3600)
    place.move_to(zone)
    assert not place.is_eligible(1)


def test_the_first_day_of_access_begins_where_the_member_lives(place: Place) -> None:
    place.move_to(NEW_YORK)
    place.api.post(place.path, member_body(1, effective_date="2026-11-21"))
    assert not place.is_eligible(1)
    place.move_to(None)
    assert place.is_eligible(1)


def test_a_member_is_invited_on_the_last_day_of_access(place: Place) -> None:
    for number, (zone, day, invitation) in enumerate(
        (
            (NEW_YORK, "2026-11-20", "immediate"),
            (NEW_YORK, "2026-11-19", "none; reason=expired"),
            ("Pacific/Guam", "2026-11-20", "none; reason=expired"),
        )
    ):
        place.move_to(zone)
        body = member_body(
            number, email=f"robin.{number}@example.com", expiry_date=day, invite_immediately=True
        )
        assert place.api.post(place.path, body).headers["Invitation"] == invitation


def test_a_mail_is_not_stopped_before_the_day_ends(place: Place) -> None:
    place.move_to(NEW_YORK)
    id_ = place.api.post(place.path, member_body(1, expiry_date="2026-11-20")).json()["id"]
    for zone, expired in ((NEW_YORK, set()), (None, set()), ("Pacific/Guam", {id_})):
        place.move_to(zone)
        assert place.db.ask(lambda tx: find_expired(tx, [id_], place.clock())) == expired


def test_a_child_is_not_born_tomorrow(place: Place) -> None:
    for zone, status in ((NEW_YORK, 422), (None, 201)):
        place.move_to(zone)
        answer = place.api.post(place.path, member_body(1, dob="2026-11-21"))
        assert answer.status_code == status
    place.move_to(NEW_YORK)
    file = place.desk.load(lines_of([member_body(2, dob="2026-11-21")]))
    assert file.codes == {"in_the_future": 1}


@pytest.mark.parametrize(("zone", "end"), [(NEW_YORK, "2026-11-20"), (None, "2026-11-21")])
def test_a_full_file_without_a_date_ends_on_the_day_where_members_live(
    place: Place, zone: str | None, end: str
) -> None:
    place.move_to(zone)
    place.desk.load(lines_of([member_body(1), member_body(2)]))
    file = place.desk.load(lines_of([member_body(1)]), full=True)
    assert (file.file_date, place.desk.ends()["AB 000002"]) == (end, end)


@pytest.mark.parametrize(
    "name",
    [
        *("", "Nowhere/Atall", "../etc/passwd", "America", "EST5EDT,M3\0"),
        *("localtime", "Factory", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin"),
    ],
)
def test_a_zone_that_nobody_knows_is_refused(place: Place, name: str) -> None:
    with pytest.raises(Invalid) as refused, place.db.write() as tx:
        set_time_zone(tx, place.account_id, name)
    assert refused.value.faults[0].code == "unknown_time_zone"


def test_each_name_of_the_database_is_a_zone(place: Place) -> None:
    for name in ("UTC", "Etc/GMT+5", "US/Hawaii", "America/Argentina/Ushuaia", "Zulu"):
        with place.db.write() as tx:
            assert set_time_zone(tx, place.account_id, name).time_zone == name


def test_zones_are_known_where_the_system_has_none() -> None:
    try:
        reset_tzpath(to=[])
        ZoneInfo.clear_cache()
        _account_day.cache_clear()
        assert account_day(LATE, NEW_YORK) == AccountDay("2026-11-20", "2026-11-20")
    finally:
        reset_tzpath()
        ZoneInfo.clear_cache()
