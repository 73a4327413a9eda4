"""Every address below /console: who may see it, and that forms are our own."""

import re
from collections.abc import Callable

import pytest

from frontdesk.config import read_config
from frontdesk.console.routes import ENDPOINTS
from frontdesk.db import Database
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import RIGHTS, NewUser, Right, Role
from tests.conftest import SetClock
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.factories import Customer

OPEN = re.compile(
    r"/console/(?:sign-in(?:/code|/set-up)?|invitation/\{secret\}|reset/\{secret\}|assets/\{name\})"
)
SHUT = [each for each in ENDPOINTS if not OPEN.fullmatch(each.path)]


def path_of(endpoint: object, account_id: int) -> str:
    path = str(getattr(endpoint, "path", ""))
    path = path.replace("{account_id}", str(account_id)).replace("{rest:path}", "any/where")
    return re.sub(r"\{\w+\}", "1", path)


def test_every_address_is_shut_before_the_sign_in(
    browsers: Callable[[], Browser], customer: Customer
) -> None:
    browser = browsers()
    for endpoint in SHUT:
        path = path_of(endpoint, customer.account_id)
        if endpoint.method == "GET":
            assert browser.open(path).path.startswith("/console/sign-in"), path
        else:
            browser.post(path, {"name": "typed"})
            assert (browser.status, "Nothing was done" in browser.page) == (401, True), path


def right_of(endpoint: object) -> object:
    """What the page is declared for: a right, or who."""
    return getattr(endpoint, "handler").args[1]  # noqa: B009 # of `partial`


@pytest.mark.parametrize("role", Role)
def test_each_page_and_form_is_open_to_the_roles_with_its_right_only(
    sign_in: SignIn, customer: Customer, role: Role
) -> None:
    browser = sign_in(role)
    token = {"token": browser.open("/console/me").form("/console/me")["token"]}
    for endpoint in SHUT:
        right = right_of(endpoint)
        if not isinstance(right, Right) or "{account_id}" not in endpoint.path:
            continue
        path = path_of(endpoint, customer.account_id)
        if endpoint.method == "GET":
            browser.open(path)
        else:
            browser.post(path, token)
        is_allowed = right in RIGHTS[role]
        assert (browser.status == 403) == (not is_allowed), (endpoint.method, path, browser.status)
        assert browser.status < 500, (endpoint.method, path)


def test_the_entrance_leads_in_one_step_to_both_fields(browsers: Callable[[], Browser]) -> None:
    browser = browsers().open("/console")
    assert len(browser.answer.history) == 1
    fields = browser.form("/console/sign-in")
    assert {"email", "password", "token"} <= fields.keys()


@pytest.mark.parametrize("role", [Role.SUPPORT, Role.OPERATOR, Role.AUDITOR])
def test_an_account_that_does_not_exist_is_not_an_empty_one(sign_in: SignIn, role: Role) -> None:
    browser = sign_in(role)
    for account_id in (0, 999_999, 10**17):
        for place in ("files", "now", "people"):
            assert browser.open(f"/console/accounts/{account_id}/{place}").status == 404


def test_a_slash_at_the_end_leads_to_the_page(sign_in: SignIn) -> None:
    browser = sign_in(Role.OPERATOR)
    assert browser.open("/console/").path == "/console/system"
    assert browser.open("/console/accounts/").path == "/console/accounts"
    assert browser.open("/console/nothing/").status == 404


def test_another_account_looks_like_an_unknown_one(
    sign_in: SignIn, customer: Customer, other_account: int
) -> None:
    browser = sign_in(Role.EDITOR)
    answers = []
    for account_id in (other_account, 999_999):
        browser.open(f"/console/accounts/{account_id}/files")
        answers.append(
            (browser.status, re.sub(r"Request [0-9a-f]+|value=.[0-9]+.", "", browser.page))
        )
    assert answers[0] == answers[1]
    assert answers[0][0] == 404


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"}],
)
def test_a_form_from_elsewhere_is_refused(sign_in: SignIn, headers: dict[str, str]) -> None:
    browser = sign_in(Role.VIEWER).open("/console/me")
    fields = browser.form("/console/me") | {"name": "Mallory"}
    browser.post("/console/me", fields, **headers)
    assert (browser.status, "not sent from a page of the console" in browser.page) == (403, True)
    assert "Mallory" not in browser.open("/console/me").page


def test_an_older_browser_is_known_by_its_origin(sign_in: SignIn) -> None:
    browser = sign_in(Role.VIEWER).open("/console/me")
    fields = browser.form("/console/me") | {"name": "Robin"}
    del browser.headers["Sec-Fetch-Site"]
    browser.post("/console/me", fields, Origin="https://evil.example")
    assert browser.status == 403
    browser.post("/console/me", fields)
    assert browser.status == 403
    browser.post("/console/me", fields, Origin="https://api.example.com")
    assert browser.status == 200


def test_a_form_that_says_it_is_a_refresh_ends_with_its_session(
    sign_in: SignIn, db: Database
) -> None:
    """A refresh is served for up to 5 s after its session has ended; nothing is done for a form."""
    refresh = {"X-Frontdesk-Refresh": "timer"}
    browser = sign_in(Role.VIEWER).open("/console/me", **refresh)
    fields = browser.form("/console/me") | {"name": "Mallory"}
    with db.write() as tx:
        tx.exec_driver_sql("DELETE FROM sessions")
    assert browser.open("/console/me", **refresh).path == "/console/me"
    browser.post("/console/me", fields, **refresh)
    assert "password" in browser.form("/console/sign-in")
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT name FROM users").scalar_one() == "Ana Ruiz"


def test_a_form_without_the_sessions_token_is_refused(sign_in: SignIn) -> None:
    one = sign_in(Role.VIEWER).open("/console/me")
    other = sign_in(Role.EDITOR).open("/console/me")
    fields = one.form("/console/me") | {"name": "Mallory"}
    for token in ("", "0" * 64, "é", other.form("/console/me")["token"]):
        one.post("/console/me", fields | {"token": token})
        assert (one.status, "Nothing was changed" in one.page) == (403, True)
    assert "Mallory" not in one.open("/console/me").page


@pytest.mark.parametrize(
    "target",
    [
        "/console/../docs",
        "/console/./me",
        "/console/me/..?a=1",
        "//evil.example",
        "https://evil.example/console",
        "/console/..//evil",
        "/console\\@evil",
        "/v2",
    ],
)
def test_the_sign_in_leads_nowhere_else(browsers: Callable[[], Browser], target: str) -> None:
    browser = browsers().open("/console/sign-in?next=" + target)
    assert browser.form("/console/sign-in")["next"] == "/console"


def test_pages_may_not_be_kept_framed_or_load_from_elsewhere(sign_in: SignIn) -> None:
    headers = sign_in(Role.VIEWER).open("/console/me").answer.headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self'" in policy
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"


def test_cookies_are_bound_to_the_host_and_unreadable(
    browsers: Callable[[], Browser], db: Database, customer: Customer, clock: SetClock
) -> None:
    new = NewUser("ana.ruiz@example.com", customer.account_id, frozenset({Role.VIEWER}))
    _, password = create_demo_user(db, new, name="Ana Ruiz", now=clock())
    browser = browsers().open("/console/sign-in")
    browser.send("/console/sign-in", email=new.email, password=password)
    sent = [
        value
        for answer in browser.answer.history
        for name, value in answer.headers.multi_items()
        if name == "set-cookie" and value.startswith("__Host-frontdesk=")
    ]
    [cookie] = sent
    for part in ("Path=/", "HttpOnly", "SameSite=Lax", "Secure"):
        assert part in cookie
    assert "Domain" not in cookie


def test_the_api_reads_no_cookie_and_the_console_no_token(
    sign_in: SignIn, browsers: Callable[[], Browser], customer: Customer
) -> None:
    signed_in = sign_in(Role.EDITOR)
    assert signed_in.http.get("/v2/plans").status_code == 401
    stranger = browsers().open("/console/me", Authorization=f"Bearer {customer.token}")
    assert stranger.path.startswith("/console/sign-in")


def test_signing_out_ends_the_session_and_empties_the_browser(sign_in: SignIn) -> None:
    browser = sign_in(Role.VIEWER).open("/console/me")
    kept = dict(browser.http.cookies)
    browser.send("/console/sign-out")
    [left] = browser.answer.history
    assert left.headers["clear-site-data"] == '"cache", "storage"'
    browser.http.cookies.update(kept)
    assert browser.open("/console/me").path.startswith("/console/sign-in")


def test_a_form_after_the_sessions_end_is_shown_filled_and_nothing_was_done(
    sign_in: SignIn, db: object, clock: object
) -> None:
    browser = sign_in(Role.VIEWER).open("/console/me")
    fields = browser.form("/console/me") | {"name": "Robin Lee"}
    browser.http.cookies.delete("__Host-frontdesk")
    browser.post("/console/me", fields)
    assert "Nothing was done" in browser.page
    carried = browser.form("/console/sign-in")
    assert carried["carried.name"] == "Robin Lee"


def test_the_setting_of_a_host_needs_an_address() -> None:
    config = read_config({"FRONTDESK_CONSOLE_URL": "https://Console.example.com/"})
    assert config.console_origin == "https://console.example.com"
    assert read_config({}).console_origin == "http://127.0.0.1:8000"


def test_what_was_typed_stays_beside_the_rule_that_it_breaks(sign_in: SignIn) -> None:
    browser = sign_in(Role.VIEWER).open("/console/me")
    browser.send("/console/me", name="Robin Lee", time_zone="Mars/Olympus")
    assert (browser.status, "such as America/New_York" in browser.page) == (422, True)
    typed = browser.form("/console/me")
    assert (typed["name"], typed["time_zone"]) == ("Robin Lee", "Mars/Olympus")
