"""Account, users: an admin invites, changes and ends users of the account; an operator those of the
installation.
"""

import re
from collections.abc import Callable

import pytest

from frontdesk.audit import list_entries
from frontdesk.db import Database
from frontdesk.files import set_file_settings
from frontdesk.reach import EVERY
from frontdesk.users import directory, links
from frontdesk.users.model import NewUser, Role, User
from tests.conftest import SetClock
from tests.console.browsing import ORIGIN, Browser
from tests.console.conftest import SignIn
from tests.console.held import hold_file, path_of
from tests.factories import Customer, make_customer
from tests.files.loading import Desk
from tests.users.conftest import Desk as ConsoleDesk

LINK = re.compile(rf"{ORIGIN}(/console/(?:invitation|reset)/[\w-]{{43}})")
ACTIONS = ("roles", "reset", "factor", "end", "end-session", "end-sessions")


def place_of(customer: Customer) -> str:
    return f"/console/accounts/{customer.account_id}/account"


def users(db: Database) -> dict[str, User]:
    """Every user by e-mail, ended ones too."""
    found = db.ask(lambda tx: directory.list_users(tx, EVERY, with_ended=True))
    return {user.email: user for user in found}


def link_in(browser: Browser) -> str:
    found = LINK.search(browser.page)
    assert found is not None, browser.page
    return found[1]


@pytest.fixture
def console_desk(db: Database, clock: SetClock, customer: Customer) -> ConsoleDesk:
    return ConsoleDesk(db, clock, customer)


def test_a_user_is_invited_by_a_link_that_is_shown_once(
    sign_in: SignIn, browsers: Callable[[], Browser], customer: Customer, db: Database
) -> None:
    browser = sign_in(Role.ADMIN)
    place = f"{place_of(customer)}/invitations"
    fields = browser.open(place).form(place)
    fields |= {"email": "tom@example.com", "role.editor": "yes", "role.approver": "yes"}
    browser.post(place, fields)
    link = link_in(browser)
    assert browser.answer.headers["cache-control"] == "no-store"
    browser.post(place, fields)
    assert (browser.status, LINK.search(browser.page)) == (409, None)
    page = browser.open(place).page
    assert ("tom@example.com" in page, LINK.search(page)) == (True, None)
    assert "approver, editor" in page
    guest = browsers().open(link)
    assert "tom@example.com" in guest.page
    guest.send(link, name="Tom Okafor", password="correct-battery-staple")
    tom = users(db)["tom@example.com"]
    admin = users(db)["admin@example.com"]
    assert (tom.account_id, sorted(tom.roles), tom.invited_by) == (
        customer.account_id,
        ["approver", "editor"],
        admin.actor,
    )
    assert "tom@example.com" not in browser.open(place).page, "nothing waits any more"
    listed = browser.open(f"{place_of(customer)}/users").page
    assert ("Tom Okafor" in listed, "editor since" in listed) == (True, True)
    trail = str(db.ask(lambda tx: list_entries(tx, EVERY, limit=1000)))
    assert (link.rpartition("/")[2] in trail, "tom@example.com" in trail) == (False, False)


def test_that_an_e_mail_is_taken_is_said_to_the_holder_of_the_link_only(
    sign_in: SignIn, browsers: Callable[[], Browser], customer: Customer, db: Database
) -> None:
    other = make_customer(db, name="Other Health")
    sign_in(Role.VIEWER, account_id=other.account_id)
    browser = sign_in(Role.ADMIN)
    place = f"{place_of(customer)}/invitations"
    pages = []
    for email in ("viewer@example.com", "nobody@example.com"):
        browser.open(place).send(place, email=email, **{"role.viewer": "yes"})
        pages.append(LINK.sub("LINK", browser.page).replace(email, "EMAIL"))
    assert pages[0] == pages[1]
    browser.open(place).send(place, email="viewer@example.com", **{"role.viewer": "yes"})
    link = link_in(browser)
    guest = browsers().open(link)
    guest.send(link, name="Vi", password="correct-battery-staple")
    assert (guest.status, "Another user signs in by this e-mail" in guest.page) == (409, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"role.editor": "yes", "email": "no e-mail"},
        {"email": "tom@example.com"},
        {"role.operator": "yes", "email": "tom@example.com"},
        {"role.support": "yes", "email": "tom@example.com", "accounts": "1"},
        {"role.editor": "yes", "role.auditor": "yes", "email": "tom@example.com"},
        {"role.king": "yes", "email": "tom@example.com"},
    ],
)
def test_an_admin_gives_roles_of_the_account_only(
    sign_in: SignIn, customer: Customer, db: Database, clock: SetClock, fields: dict[str, str]
) -> None:
    browser = sign_in(Role.ADMIN)
    place = f"{place_of(customer)}/invitations"
    browser.open(place).send(place, **fields)
    assert browser.status == 422
    assert fields["email"] in browser.form(place)["email"], "what was typed stays"
    assert db.ask(lambda tx: links.list_invitations(tx, EVERY, now=clock())) == []
    if "e-mail" not in fields["email"]:
        sign_in(Role.VIEWER)
        own = f"{place_of(customer)}/users/{users(db)['viewer@example.com'].id}"
        browser.open(own).post(f"{own}/roles", _without_roles(browser, own) | fields)
        assert browser.status == 422
        assert sorted(users(db)["viewer@example.com"].roles) == ["viewer"]


def _without_roles(browser: Browser, own: str) -> dict[str, str]:
    fields = browser.form(f"{own}/roles")
    return {name: value for name, value in fields.items() if not name.startswith("role.")}


def test_a_page_of_invitations_begins_at_a_number(sign_in: SignIn, customer: Customer) -> None:
    place = f"{place_of(customer)}/invitations"
    admin = sign_in(Role.ADMIN)
    for before in ("x", "-1", "9" * 30):
        assert admin.open(f"{place}?before={before}").status == 422
    assert "First page" in admin.open(f"{place}?before=7").page


def test_an_invitation_is_withdrawn(
    sign_in: SignIn, browsers: Callable[[], Browser], customer: Customer
) -> None:
    browser = sign_in(Role.ADMIN)
    place = f"{place_of(customer)}/invitations"
    browser.open(place).send(place, email="tom@example.com", **{"role.viewer": "yes"})
    link = link_in(browser)
    fields = browser.open(place).form(f"{place}/withdraw")
    browser.post(f"{place}/withdraw", fields)
    assert (browser.status, "No invitation waits" in browser.page) == (200, True)
    assert browsers().open(link).status == 404
    browser.post(f"{place}/withdraw", fields)
    assert (browser.status, "Nothing was changed" in browser.page) == (409, True)


def test_other_roles_end_the_sessions_and_hold_from_now_on(
    sign_in: SignIn, customer: Customer, db: Database, clock: SetClock
) -> None:
    editor = sign_in(Role.EDITOR)
    clock.advance(3600)
    browser = sign_in(Role.ADMIN)
    own = f"{place_of(customer)}/users/{users(db)['editor@example.com'].id}"
    browser.open(own).send(f"{own}/roles", **{"role.approver": "yes"})
    assert (browser.status, "approver since" in browser.page) == (200, True)
    assert editor.open("/console/me").path.startswith("/console/sign-in")
    roles = users(db)["editor@example.com"].roles
    assert roles[Role.APPROVER] == clock()
    assert roles[Role.EDITOR] < clock(), "a role that stays keeps its time"


def test_nobody_takes_the_own_admin_role_or_ends_oneself(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    browser = sign_in(Role.ADMIN)
    me = users(db)["admin@example.com"]
    own = f"{place_of(customer)}/users/{me.id}"
    fields = _without_roles(browser.open(own), own)
    browser.post(f"{own}/roles", fields | {"role.editor": "yes"})
    assert (browser.status, "Another user has to take this role" in browser.page) == (409, True)
    for action in ("end", "reset", "factor"):
        assert f"{own}/{action}" not in browser.open(own).page, "no button"
        number = {"number": "a-number-that-nobody-has"}
        browser.post(f"{own}/{action}", fields | number)
        assert browser.status == 409, action
    assert users(db)["admin@example.com"] == me
    browser.open(own).post(f"{own}/roles", fields | {"role.editor": "yes", "role.admin": "yes"})
    assert sorted(users(db)["admin@example.com"].roles) == ["admin", "editor"]


def test_an_ended_users_page_lists_the_secrets_to_roll_until_they_are(
    sign_in: SignIn, customer: Customer, db: Database, clock: SetClock
) -> None:
    leaver = sign_in(Role.ADMIN, Role.EDITOR)
    page = f"{place_of(customer)}/clients/{customer.client_id}"
    leaver.open(page).send(f"{page}/rotate", others="keep")
    clock.advance(60)
    browser = sign_in(Role.ADMIN)
    own = f"{place_of(customer)}/users/{users(db)['admin-editor@example.com'].id}"
    browser.open(own).send(f"{own}/end")
    assert (browser.status, "may still know these secrets" in browser.page) == (200, True)
    assert f'href="{page}"' in browser.page
    assert leaver.open("/console/me").path.startswith("/console/sign-in")
    assert f"{own}/roles" not in browser.page
    browser.open(page).send(f"{page}/rotate", others="end")
    assert f'href="{page}"' not in browser.open(own).page


def test_a_lost_password_and_a_lost_factor(
    sign_in: SignIn,
    browsers: Callable[[], Browser],
    customer: Customer,
    db: Database,
    console_desk: ConsoleDesk,
) -> None:
    ana = console_desk.join("ana@example.org", Role.EDITOR)
    browser = sign_in(Role.ADMIN)
    own = f"{place_of(customer)}/users/{ana.user.id}"
    fields = browser.open(own).form(f"{own}/reset")
    browser.post(f"{own}/reset", fields)
    link = link_in(browser)
    browser.post(f"{own}/reset", fields)
    assert (browser.status, LINK.search(browser.page)) == (409, None)
    guest = browsers().open(link)
    guest.send(link, password="another-horse-and-cart")
    assert "The password is changed" in guest.page
    assert users(db)["ana@example.org"].has_second_factor
    browser.open(own).send(f"{own}/factor")
    assert "it is set up at the next sign-in" in browser.page
    guest.open("/console/sign-in")
    guest.send("/console/sign-in", email="ana@example.org", password="another-horse-and-cart")
    assert "Your old second factor was removed by" in guest.page


def test_sessions_of_a_user_are_listed_and_ended(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    one = sign_in(Role.EDITOR)
    two = sign_in(Role.VIEWER)
    browser = sign_in(Role.ADMIN)
    for user, action in (("editor", "end-session"), ("viewer", "end-sessions")):
        own = f"{place_of(customer)}/users/{users(db)[f'{user}@example.com'].id}"
        browser.open(own).send(f"{own}/{action}")
        assert (browser.status, "The user is not signed in" in browser.page) == (200, True)
    for ended in (one, two):
        assert ended.open("/console/me").path.startswith("/console/sign-in")


def test_a_user_of_another_home_looks_like_an_unknown_one(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    other = make_customer(db, name="Other Health")
    sign_in(Role.VIEWER, account_id=other.account_id)
    admin = sign_in(Role.ADMIN)
    operator = sign_in(Role.OPERATOR)
    theirs = users(db)["viewer@example.com"]
    homes = (
        (admin, f"{place_of(customer)}/users", (theirs, users(db)["operator@example.com"])),
        (operator, "/console/system/users", (theirs, users(db)["admin@example.com"])),
    )
    for browser, place, strangers in homes:
        token = {"token": browser.open("/console/me").form("/console/me")["token"]}
        sent = token | {"number": "a-number-that-nobody-has", "role.viewer": "yes"}
        for action in ("", *(f"/{each}" for each in ACTIONS)):
            answers = set()
            for user_id in (*(each.id for each in strangers), 999_999):
                path = f"{place}/{user_id}{action}"
                if action:
                    browser.post(path, sent)
                else:
                    browser.open(path)
                answers.add((browser.status, re.sub(r"Request [0-9a-f]+", "", browser.page)))
            assert [status for status, _ in answers] == [404], (place, action)
    assert users(db)["viewer@example.com"] == theirs


def test_an_invitation_into_another_home_looks_like_an_unknown_one(
    sign_in: SignIn, customer: Customer, db: Database, console_desk: ConsoleDesk
) -> None:
    other = make_customer(db, name="Other Health")
    for account_id, role in ((other.account_id, Role.VIEWER), (None, Role.AUDITOR)):
        new = NewUser("left@example.com", account_id, frozenset({role}))
        with db.write() as tx:
            links.invite_user(tx, new, console_desk.requester())
    found = db.ask(lambda tx: links.list_invitations(tx, EVERY, now=console_desk.clock()))
    ids = {each.new.account_id: each.id for each in found}
    homes = (
        (sign_in(Role.ADMIN), f"{place_of(customer)}/invitations", ids.values()),
        (sign_in(Role.OPERATOR), "/console/system/invitations", [ids[other.account_id]]),
    )
    for browser, place, strangers in homes:
        answers = set()
        for each in (*strangers, 999_999):
            fields = browser.open(place).form(place) | {"invitation": str(each)}
            browser.post(f"{place}/withdraw", fields)
            page = re.sub(r"Request [0-9a-f]+|value=.[\w-]{24}.", "", browser.page)
            answers.add((browser.status, page))
        assert len(answers) == 1
    later = db.ask(lambda tx: links.list_invitations(tx, EVERY, now=console_desk.clock()))
    assert later == found


def test_an_operator_looks_after_users_of_the_installation(
    sign_in: SignIn, customer: Customer, db: Database
) -> None:
    browser = sign_in(Role.OPERATOR)
    sign_in(Role.VIEWER)
    place = "/console/system/invitations"
    named = {"email": "sue@example.com", "role.support": "yes", "accounts": "999999"}
    browser.open(place).send(place, **named)
    assert (browser.status, "There is no such account." in browser.page) == (422, True)
    for wrong in ("one", "1;2", ",", ", ,"):
        browser.open(place).send(place, **(named | {"accounts": wrong}))
        assert browser.status == 422
    browser.open(place).send(place, **(named | {"accounts": str(customer.account_id)}))
    assert link_in(browser)
    listed = browser.open("/console/system/users").page
    assert ("operator@example.com" in listed, "viewer@example.com" in listed) == (True, False)
    sign_in(Role.SUPPORT)
    own = f"/console/system/users/{users(db)['support@example.com'].id}"
    browser.open(own).send(f"{own}/roles", accounts=str(customer.account_id))
    assert users(db)["support@example.com"].named_accounts == frozenset({customer.account_id})


@pytest.mark.parametrize("role", [each for each in Role if each is not Role.OPERATOR])
def test_no_other_role_sees_users_of_the_installation(sign_in: SignIn, role: Role) -> None:
    browser = sign_in(role)
    for path in ("/console/system/users", "/console/system/users/1", "/console/system/invitations"):
        assert browser.open(path).status == 403
    token = {"token": browser.open("/console/me").form("/console/me")["token"]}
    for path in ("/console/system/invitations", "/console/system/users/1/end"):
        browser.post(path, token)
        assert (browser.status, "It is for: operator" in browser.page) == (403, True)


def test_what_changes_users_or_shows_secrets_asks_for_a_fresh_factor(
    browsers: Callable[[], Browser],
    customer: Customer,
    db: Database,
    console_desk: ConsoleDesk,
    clock: SetClock,
) -> None:
    ana = console_desk.join("ana@example.org", Role.ADMIN)
    signed_in = console_desk.sign_in(ana)
    browser = browsers()
    browser.http.cookies.set("__Host-frontdesk", signed_in.secret, domain="api.example.com")
    clock.advance(11 * 60)
    place = place_of(customer)
    own = f"{place}/users/{ana.user.id}"
    client = f"{place}/clients/{customer.client_id}"
    forms = (
        (f"{place}/clients", f"{place}/clients"),
        (f"{place}/webhooks", f"{place}/webhooks"),
        (f"{place}/invitations", f"{place}/invitations"),
        *((client, f"{client}/{each}") for each in ("rotate", "end-secret", "revoke")),
        (own, f"{own}/roles"),
    )
    before = len(db.ask(lambda tx: list_entries(tx, EVERY, limit=1000)))
    for page, action in forms:
        browser.open(page)
        assert "needs a code of the last 10 minutes" in browser.page, page
        browser.send(action)
        assert browser.path.startswith("/console/confirm"), action
    assert len(db.ask(lambda tx: list_entries(tx, EVERY, limit=1000))) == before
    browser.send("/console/confirm", code=ana.recovery_codes[0])
    assert "needs a code" not in browser.open(own).page
    browser.open(client).send(f"{client}/rotate", others="keep")
    assert (browser.status, "client_secret" in browser.page) == (200, True)


def test_the_list_of_users_goes_on_by_the_page(
    sign_in: SignIn, customer: Customer, console_desk: ConsoleDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = sign_in(Role.ADMIN)
    for number in range(3):
        console_desk.join(f"user{number}@example.org", Role.VIEWER)
        console_desk.invite(f"left{number}@example.org", Role.VIEWER)
    monkeypatch.setattr("frontdesk.users.directory.PAGE", 2)
    monkeypatch.setattr("frontdesk.console.users_invited.PAGE", 2)
    for place, names in (("users", "user"), ("invitations", "left")):
        seen: list[str] = []
        path = f"{place_of(customer)}/{place}"
        while path:
            page = browser.open(path).page
            seen += re.findall(rf"{names}\d@example", page)
            following = re.search(r'<a href="([^"]+)" rel="next">', page)
            path = following[1] if following else ""
        assert sorted(set(seen)) == [f"{names}{number}@example" for number in range(3)]


def test_a_role_of_today_approves_no_file_that_is_there_already(
    sign_in: SignIn, customer: Customer, db: Database, desk: Desk, clock: SetClock
) -> None:
    with db.write() as tx:
        set_file_settings(tx, customer.account_id, second_approver=True)
    sign_in(Role.VIEWER)
    held = hold_file(desk)
    clock.advance(3600)
    admin = sign_in(Role.ADMIN)
    own = f"{place_of(customer)}/users/{users(db)['viewer@example.com'].id}"
    admin.open(own).send(f"{own}/roles", **{"role.approver": "yes"})
    # Signs the same user in again: the change of roles has ended the session.
    approver = sign_in(Role.VIEWER).open(path_of(held))
    assert "a day or more after" in approver.page
    token = {"token": approver.form("/console/sign-out")["token"], "version": "1"}
    approver.post(f"{path_of(held)}/approve", token)
    assert approver.status in (403, 409)
    assert desk.reread(held).state == "held"
