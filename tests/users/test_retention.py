"""What retention deletes of users."""

from datetime import timedelta

from frontdesk.config import Config
from frontdesk.privacy.model import RetentionKind
from frontdesk.privacy.retention import Counts, RetentionTurn, retention_days
from frontdesk.reach import EVERY
from frontdesk.users import directory, links, once
from frontdesk.users.model import Role
from frontdesk.users.tables import (
    client_secrets_seen,
    known_browsers,
    password_resets,
    sessions,
    sign_in_attempts,
    used_forms,
    user_invitations,
    users,
)
from tests.users.conftest import Desk

DAY = 86_400.0
YEAR = 366


def turn(desk: Desk, config: Config) -> Counts:
    kept = retention_days(config)
    return RetentionTurn(desk.db, desk.clock, kept, desk.requester()).run()


def rows(desk: Desk, *tables: object) -> list[int]:
    def count(name: str) -> int:
        query = f"SELECT count(*) FROM {name}"  # noqa: S608
        return int(desk.db.ask(lambda tx: tx.exec_driver_sql(query).scalar_one()))

    return [count(str(table)) for table in tables]


def test_links_sign_ins_and_sessions_are_deleted_two_days_after_their_end(
    desk: Desk, config: Config
) -> None:
    person = desk.join()
    desk.attempt(person)
    desk.invite("tom@example.org", Role.VIEWER)
    with desk.db.write() as tx:
        once.use_form(tx, person.user.id, once.new_number(), now=desk.clock())
        links.make_reset_link(tx, EVERY, person.user.id, desk.requester())
    of_use = (sessions, sign_in_attempts, password_resets)
    desk.clock.advance(2 * DAY)
    turn(desk, config)
    assert rows(desk, *of_use, user_invitations) == [1, 1, 1, 1]
    desk.clock.advance(DAY / 2 + 60)
    turn(desk, config)
    assert rows(desk, *of_use, user_invitations) == [0, 0, 0, 1]
    desk.clock.advance(3 * DAY)
    turn(desk, config)
    assert rows(desk, user_invitations, known_browsers, users, used_forms) == [0, 1, 1, 1]
    desk.clock.advance(180 * DAY)
    turn(desk, config)
    assert rows(desk, known_browsers, used_forms, users) == [0, 0, 1], (
        "a user who has not ended stays"
    )


def test_an_ended_user_is_deleted_with_the_entries_that_name_the_user(
    desk: Desk, config: Config
) -> None:
    person = desk.join()
    with desk.db.write() as tx:
        client_id = desk.customer.client_id
        directory.note_secret_seen(tx, person.user.id, client_id, now=desk.clock())
        directory.end_user(tx, EVERY, person.user.id, desk.requester())
    kept = timedelta(days=config.keep_audit_years * YEAR).total_seconds()
    desk.clock.advance(kept)
    assert RetentionKind.USERS not in turn(desk, config)
    assert rows(desk, users, client_secrets_seen) == [1, 1]
    desk.clock.advance(1)
    assert turn(desk, config)[RetentionKind.USERS] == 1
    assert rows(desk, users, client_secrets_seen) == [0, 0]
