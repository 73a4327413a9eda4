"""Who may approve a held file, and for which numbers."""

from datetime import datetime, timedelta

import pytest

from frontdesk.access import client_number
from frontdesk.access.accounts import create_client, rotate_secret
from frontdesk.access.model import NewClient, Scope
from frontdesk.audit import Requester, record_action
from frontdesk.files.actions import approve_file
from frontdesk.files.approvers import find_obstacle
from frontdesk.files.model import EligibilityFile, FileKey, SecondPersonNeeded
from frontdesk.files.store import set_file_settings
from frontdesk.reach import EVERY
from tests.conftest import SetClock
from tests.files.loading import Desk, csv_of, row

MANY = 30
DAY = timedelta(days=1)


def by(desk: Desk, actor: str) -> Requester:
    return Requester(actor, "r", desk.clock())


def make_client(desk: Desk, maker: str) -> str:
    """The client_id of a new client of the account."""
    new = NewClient(desk.customer.account_id, "Nightly upload", {Scope.CUSTOMER})
    with desk.db.write() as tx:
        client, _ = create_client(tx, new, now=desk.clock())
        record_action(tx, by(desk, maker), "client.created", client.account_id, client.id)
    return client.client_id


def roll(desk: Desk, client_id: str, maker: str) -> None:
    with desk.db.write() as tx:
        rotate_secret(tx, EVERY, client_id, now=desk.clock())
        number = client_number(tx, client_id)
        record_action(tx, by(desk, maker), "client.rotated", desk.customer.account_id, number)


def hold(desk: Desk, client: str, *, second: bool = True) -> EligibilityFile:
    """A file of the client that is held because it would move members."""
    with desk.db.write() as tx:
        set_file_settings(tx, desk.customer.account_id, second_approver=second)
    desk.load(csv_of(row(n) for n in range(MANY)))
    desk.client = client
    file = desk.load(csv_of(row(n) for n in range(MANY)), plan=1)
    assert file.state == "held"
    return file


def approve(desk: Desk, file: EligibilityFile, actor: str, since: datetime | None = None) -> str:
    """What is in the way; "" if nothing is."""
    return desk.db.ask(lambda tx: find_obstacle(tx, file, actor, approves_since=since))


def test_an_approval_by_the_wrong_person_is_refused_and_by_the_right_one_is_done(
    desk: Desk,
) -> None:
    file = hold(desk, "user:1")
    since = file.created_at - DAY
    key = FileKey(file.id, EVERY)
    with pytest.raises(SecondPersonNeeded, match="handed the file in") as refused:
        desk.db.ask(lambda tx: approve_file(tx, key, by(desk, "user:1"), approves_since=since))
    assert refused.value.code == "second_person_needed"
    with desk.db.write() as tx:
        approved = approve_file(tx, key, by(desk, "user:2"), approves_since=since)
    assert (approved.state, approved.approved) == ("waiting", True)


def test_a_user_with_the_right_for_a_day_approves_and_a_newer_one_does_not(
    desk: Desk, clock: SetClock
) -> None:
    file = hold(desk, "user:1")
    came = file.created_at
    assert "handed the file in" in approve(desk, file, "user:1", came - 9 * DAY)
    assert approve(desk, file, "user:2", came - DAY) == ""
    for since in (came - DAY + timedelta(seconds=1), came + DAY, None):
        assert "a day or more after you were given the right" in approve(
            desk, file, "user:2", since
        )
    clock.advance(10 * 86_400)
    assert "a day or more after" in approve(desk, file, "user:2", came)
    assert approve(desk, file, "cli:ana") == approve(desk, file, make_client(desk, "cli:ana")) == ""


def test_who_made_or_rolled_the_secret_of_the_files_client_does_not_approve(
    desk: Desk, clock: SetClock
) -> None:
    client = make_client(desk, "user:1")
    clock.advance(60)
    roll(desk, client, "user:2")
    clock.advance(60)
    file = hold(desk, client)
    clock.advance(60)
    roll(desk, client, "user:3")
    long_ago = file.created_at - 9 * DAY
    for user in ("user:1", "user:2", "user:3"):
        assert "whose secret you have made or rolled" in approve(desk, file, user, long_ago)
        other = make_client(desk, user)
        assert "has made your secret" in approve(desk, file, other)
    assert approve(desk, file, "user:4", long_ago) == ""
    assert approve(desk, file, make_client(desk, "user:4")) == ""


def test_a_secret_that_worked_no_more_when_the_file_came_makes_nobody_its_uploader(
    desk: Desk, clock: SetClock
) -> None:
    client = make_client(desk, "user:1")
    for maker in ("user:2", "cli:ana"):
        clock.advance(60)
        roll(desk, client, maker)
    clock.advance(60)
    file = hold(desk, client)
    long_ago = file.created_at - 9 * DAY
    assert approve(desk, file, "user:1", long_ago) == ""
    assert "made or rolled" in approve(desk, file, "user:2", long_ago)


def test_a_client_of_the_user_who_handed_the_file_in_does_not_approve(desk: Desk) -> None:
    file = hold(desk, "user:1")
    assert "has made your secret" in approve(desk, file, make_client(desk, "user:1"))


def test_without_the_setting_everybody_approves(desk: Desk) -> None:
    file = hold(desk, "user:1", second=False)
    assert approve(desk, file, "user:1") == approve(desk, file, "user:2") == ""


@pytest.mark.parametrize("more", [0, MANY])
def test_a_file_that_would_take_access_from_more_people_than_were_shown_is_held_again(
    desk: Desk, more: int
) -> None:
    desk.load(csv_of(row(n) for n in range(100)))
    held = desk.load(csv_of(row(n) for n in range(MANY, 100)), full=True)
    assert (held.state, held.shown) == ("held", {"too_many_lose_access": MANY})
    desk.approve(held, work=False)
    for n in range(100, 100 + more):
        desk.post(**row(n))
    file = desk.work(held)
    if more:
        assert (file.state, file.approved) == ("held", False)
        assert file.shown == {"too_many_lose_access": MANY + more}
        assert desk.approve(file).counts["lost"] == MANY + more
    else:
        assert (file.state, file.counts["lost"]) == ("done", MANY)
