"""Now: the board in words, the day of a plan, and refreshes that cost little."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from frontdesk import access
from frontdesk.access.accounts import get_account, set_state
from frontdesk.access.model import Account, AccountState
from frontdesk.app import App
from frontdesk.console import door, now, now_words
from frontdesk.console.now_words import interval_text, minutes_text
from frontdesk.db import Database, Tx
from frontdesk.text import count_text
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.db.statements import statements
from tests.factories import NOW
from tests.queues.feed import (
    JOINED,
    LEFT,
    OFF,
    PAUSED,
    STARTED,
    Clinic,
    estimated,
    event,
    feed,
    make_clinic,
    on_duty,
    waited,
)

REFRESH = {"X-Frontdesk-Refresh": "timer"}
BUSY, FREE, CLOSED = range(3)


@pytest.fixture
def clinic(db: Database) -> Clinic:
    """Plan 0: two doctors, both busy, four patients wait. Plan 1: a free doctor. Plan 2: no doctor,
    two patients wait.
    """
    made = make_clinic(db, plan_count=3)
    busy, _, closed = made.plan_ids
    feed(
        db,
        on_duty(made, "a", plan=BUSY),
        on_duty(made, "b", plan=BUSY),
        on_duty(made, "c", plan=FREE),
        *(event(f"j{n}", JOINED, n - 300, plan_id=busy, visit=f"v{n}") for n in range(6)),
        event("s0", STARTED, -200, plan_id=busy, visit="v0", doctor="a"),
        event("s1", STARTED, -200, plan_id=busy, visit="v1", doctor="b"),
        *(event(f"k{n}", JOINED, n - 100, plan_id=closed, visit=f"x{n}") for n in range(2)),
    )
    return made


@pytest.fixture
def viewer(sign_in: SignIn, clinic: Clinic) -> Browser:
    return sign_in(Role.VIEWER, account_id=clinic.account_id)


def late_viewer(sign_in: SignIn, clinic: Clinic) -> Browser:
    """Signs in when the clock has moved on further than a session lasts."""
    return sign_in(Role.VIEWER, account_id=clinic.account_id)


def now_of(clinic: Clinic, plan: int | None = None) -> str:
    path = f"/console/accounts/{clinic.account_id}/now"
    return path if plan is None else f"{path}/{clinic.plan_ids[plan]}"


def rows(page: str) -> list[list[str]]:
    """The cells of the tables' bodies as text."""
    bodies = "".join(re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL))
    found = re.findall(r"<tr>(.*?)</tr>", bodies, re.DOTALL)
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in found)
    return [[re.sub(r"<[^>]+>", "", cell).strip() for cell in row] for row in cells]


def same_but_request(page: str) -> str:
    return re.sub(r"Request [0-9a-f]+", "", page)


def test_the_board_says_each_state_in_words(
    viewer: Browser, clinic: Clinic, db: Database, clock: SetClock
) -> None:
    page = viewer.open(now_of(clinic)).page
    busy, free, closed = rows(page)
    assert busy[0] == "Plan 0"
    assert re.fullmatch(r"\d+ min", busy[1])
    assert re.fullmatch(r"\d+ to \d+ min in 8 of 10 visits", busy[2])
    assert busy[3:] == ["4 waiting", "2 doctors, 2 busy", ""]
    assert free == ["Plan 1", "no wait", "", "0 waiting", "1 doctor", ""]
    assert closed == ["Plan 2", "closed: no doctor on duty", "", "2 waiting", "", ""]
    assert "Nobody waits." not in page
    assert "Example Doctors</bdi></h2>" in page
    assert "-1" not in "".join(map("".join, rows(page)))


def test_the_board_says_which_doctors_pause(viewer: Browser, clinic: Clinic, db: Database) -> None:
    until = NOW + timedelta(minutes=9)
    doctors = {"provider_group_id": clinic.group_id, "until": until}
    feed(db, *(event(f"p-{name}", PAUSED, -100, doctor=name, **doctors) for name in "ac"))
    busy, free, _ = rows(viewer.open(now_of(clinic)).page)
    assert (busy[4], free[4]) == ("2 doctors, 2 busy", "1 doctor, 1 paused")


def test_the_page_says_what_it_is_of_and_how_to_go_on_without_a_script(
    viewer: Browser, clinic: Clinic
) -> None:
    page = viewer.open(now_of(clinic)).page
    assert "as of <span data-as-of>12:00:00</span>" in page
    assert "<span data-live>. Reload to see more.</span>" in page
    assert "<span data-live hidden>, every 5 s</span>" in page
    assert re.search(r"<button[^>]* data-pause hidden>Pause</button>", page)
    assert 'aria-current="page">Now' in page


def test_times_are_those_of_the_users_zone(viewer: Browser, clinic: Clinic) -> None:
    viewer.open("/console/me").send("/console/me", time_zone="America/New_York")
    assert "as of <span data-as-of>07:00:00</span>" in viewer.open(now_of(clinic)).page
    page = viewer.open(now_of(clinic, BUSY)).page
    assert '<text class="chart-time"' in page
    assert "Times in America/New_York (UTC-05:00)." in page


def test_nobody_waits(viewer: Browser, clinic: Clinic, db: Database, clock: SetClock) -> None:
    busy, _, closed = clinic.plan_ids
    gone = [(busy, f"v{n}") for n in range(2, 6)] + [(closed, f"x{n}") for n in range(2)]
    feed(db, *(event(f"l-{v}", LEFT, 0, plan_id=plan, visit=v) for plan, v in gone))
    page = viewer.open(now_of(clinic)).page
    assert "Nobody waits." in page
    assert [row[3] for row in rows(page)] == ["0 waiting"] * 3


def test_the_error_of_the_last_hour_comes_with_its_count(
    viewer: Browser, clinic: Clinic, db: Database, clock: SetClock
) -> None:
    estimated(db, clinic.plan_ids[BUSY], 5, seconds=600)
    waited(db, clinic, [(NOW + timedelta(minutes=5, seconds=20), 420.0)])
    clock.advance(20 * 60)
    assert rows(viewer.open(now_of(clinic)).page)[BUSY][5] == "last hour off by 3 min (1)"
    assert "<b>off by 3 min (1)</b>" in viewer.open(now_of(clinic, BUSY)).page


def test_a_late_feed_is_told(
    viewer: Browser, clinic: Clinic, db: Database, clock: SetClock
) -> None:
    clock.advance(29 * 60 + 59)
    assert "old" not in viewer.open(now_of(clinic)).page.partition("<main")[2]
    clock.advance(61)
    warning = "Events of Example Doctors are 31 min old: these waits may be wrong."
    for path in (now_of(clinic), now_of(clinic, FREE)):
        page = viewer.open(path).page
        assert warning in page
        assert 'class="note warn"' in page


def test_a_group_that_is_closed_may_be_silent(
    sign_in: SignIn, clinic: Clinic, db: Database, clock: SetClock
) -> None:
    busy, _, closed = clinic.plan_ids
    gone = [(busy, f"v{n}") for n in range(2, 6)] + [(closed, f"x{n}") for n in range(2)]
    feed(
        db,
        *(event(f"l-{v}", LEFT, 0, plan_id=plan, visit=v) for plan, v in gone),
        *(event(f"off-{d}", OFF, 0, provider_group_id=clinic.group_id, doctor=d) for d in "abc"),
    )
    clock.advance(8 * 3600)
    page = late_viewer(sign_in, clinic).open(now_of(clinic)).page
    assert "The last events of Example Doctors are 8 h old." in page
    assert "may be wrong" not in page
    assert {row[1] for row in rows(page)} == {"closed: no doctor on duty"}


def test_a_group_without_events_and_an_account_without_plans(
    sign_in: SignIn, db: Database, clock: SetClock
) -> None:
    silent = make_clinic(db, "Silent")
    with db.write() as tx:
        empty = access.create_account(tx, name="Empty", now=NOW)
    support = sign_in(Role.SUPPORT)
    assert "No events of Silent Doctors have come yet." in support.open(now_of(silent)).page
    page = support.open(f"/console/accounts/{empty.id}/now").page
    assert "This account has no plans yet." in page
    assert "Nobody waits." not in page


@pytest.mark.parametrize(
    ("role", "status"),
    [
        (Role.VIEWER, 200),
        (Role.EDITOR, 200),
        (Role.APPROVER, 200),
        (Role.ADMIN, 200),
        (Role.SUPPORT, 200),
        (Role.OPERATOR, 200),
        (Role.AUDITOR, 403),
    ],
)
def test_who_may_look(sign_in: SignIn, clinic: Clinic, role: Role, status: int) -> None:
    browser = sign_in(role, account_id=clinic.account_id)
    for path in (now_of(clinic), now_of(clinic, BUSY)):
        browser.open(path)
        assert browser.status == status
        assert ("Plan 0" in browser.page) == (status == 200)
        browser.open(path, **REFRESH)
        assert (browser.status, "Plan 0" in browser.page) == (status, status == 200)


def test_another_accounts_plan_is_unknown(viewer: Browser, clinic: Clinic, db: Database) -> None:
    other = make_clinic(db, "Other")
    answers = []
    for plan_id in (other.plan_ids[0], 987_654, "x"):
        viewer.open(f"{now_of(clinic)}/{plan_id}")
        answers.append((viewer.status, same_but_request(viewer.page)))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] == 404
    strangers = []
    for account_id in (other.account_id, 987_654):
        viewer.open(f"/console/accounts/{account_id}/now/{other.plan_ids[0]}")
        strangers.append((viewer.status, same_but_request(viewer.page)))
    assert strangers[0] == strangers[1]
    assert strangers[0][0] == 404


def test_a_refresh_gets_the_region_alone_and_then_304(
    viewer: Browser, clinic: Clinic, db: Database, clock: SetClock
) -> None:
    for path in (now_of(clinic), now_of(clinic, BUSY)):
        whole = viewer.open(path)
        tag = whole.answer.headers["etag"]
        region = viewer.open(path, **REFRESH)
        assert (region.status, region.answer.headers["etag"]) == (200, tag)
        assert "<main" not in region.page
        assert "data-refresh" in region.page
        assert region.page.strip() in whole.page or region.page in whole.page
    clock.advance(5.1)
    for path in (now_of(clinic), now_of(clinic, FREE)):
        tag = viewer.open(path, **REFRESH).answer.headers["etag"]
        clock.advance(5.1)
        same = viewer.open(path, **REFRESH, **{"If-None-Match": tag})
        assert (same.status, same.page) == (304, "")
        at = clock().strftime("%H:%M:%S")
        assert same.answer.headers["x-frontdesk-as-of"] == at
        joined = event(f"more-{path}", JOINED, 0, plan_id=clinic.plan_ids[FREE], visit=path[-9:])
        feed(db, joined, now=clock())
        clock.advance(5.1)
        changed = viewer.open(path, **REFRESH, **{"If-None-Match": tag})
        assert changed.status == 200
        assert changed.answer.headers["etag"] != tag
        assert changed.answer.headers["cache-control"] == "no-store"


def test_a_board_is_read_and_rendered_once_for_all_viewers(
    sign_in: SignIn, clinic: Clinic, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = []
    describe = now_words.describe_group

    def counted(*given: object) -> object:
        rendered.append(given)
        return describe(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(now, "describe_group", counted)
    roles = (Role.VIEWER, Role.EDITOR, Role.ADMIN)
    browsers = [sign_in(role, account_id=clinic.account_id) for role in roles]
    with statements(app.db, "FROM duties") as boards:
        for browser in browsers * 3:
            browser.open(now_of(clinic), **REFRESH)
            browser.open(now_of(clinic))
    assert len(rendered) == 1
    assert len(boards) == 1


def test_a_refresh_is_no_use_of_the_session_and_ends_with_it(
    viewer: Browser, clinic: Clinic, clock: SetClock
) -> None:
    viewer.open(now_of(clinic))
    for _ in range(5):
        clock.advance(5 * 60)
        assert viewer.open(now_of(clinic), **REFRESH).status == 200
    clock.advance(5 * 60 + 1)
    assert viewer.open(now_of(clinic), **REFRESH).path.startswith("/console/sign-in")


def sign_out_elsewhere(browsers: Callable[[], Browser], viewer: Browser) -> None:
    """The same session in another window, which signs out."""
    window = browsers()
    window.http.cookies.update(viewer.http.cookies)
    window.open("/console/me").send("/console/sign-out")


def test_a_session_that_was_ended_gets_no_refresh(
    viewer: Browser, clinic: Clinic, browsers: Callable[[], Browser]
) -> None:
    assert viewer.open(now_of(clinic), **REFRESH).status == 200
    sign_out_elsewhere(browsers, viewer)
    assert viewer.open(now_of(clinic), **REFRESH).path.startswith("/console/sign-in")


def test_a_refresh_sees_within_five_seconds_that_an_account_was_suspended(
    viewer: Browser, clinic: Clinic, db: Database, clock: SetClock
) -> None:
    assert viewer.open(now_of(clinic), **REFRESH).status == 200
    with db.write() as tx:
        set_state(tx, clinic.account_id, AccountState.SUSPENDED, now=NOW)
    clock.advance(5)
    assert viewer.open(now_of(clinic), **REFRESH).path.startswith("/console/sign-in")


def test_a_plan_has_its_day_as_a_chart_and_as_a_table(
    sign_in: SignIn, db: Database, clock: SetClock
) -> None:
    clinic = make_clinic(db, "Day")
    plan = clinic.plan_ids[BUSY]
    for minute, seconds in ((0, 600), (5, 900), (65, 1200)):
        estimated(db, plan, minute, seconds=seconds)
    waited(
        db,
        clinic,
        [
            (NOW + timedelta(minutes=6), 660.0),
            (NOW + timedelta(minutes=7), 780.0),
            (NOW + timedelta(minutes=130), 20.0),
        ],
    )
    clock.advance(150 * 60)
    page = late_viewer(sign_in, clinic).open(now_of(clinic, BUSY)).page
    assert page.count('class="chart-line"') == 2
    assert page.count('class="chart-band"') == 2
    assert page.count('class="chart-dot"') == 2
    summary = (
        "The promised wait was 10 min to 20 min. "
        "The patients of 3 visits waited 8 min on average, 13 min at most."
    )
    assert f"<p>{summary}</p>" in page
    assert f'<desc id="day-desc">{summary}</desc>' in page
    assert rows(page) == [
        ["Nov 20 12:00", "10 to 15 min", "5 to 30 min", "2 visits", "12 min, 13 min at most"],
        ["Nov 20 13:00", "20 min", "10 to 40 min", "", ""],
        ["Nov 20 14:00", "none", "", "1 visit", "under 1 min, under 1 min at most"],
    ]


def test_a_day_without_anything_says_so(viewer: Browser, clinic: Clinic) -> None:
    page = viewer.open(now_of(clinic, FREE)).page
    assert "No wait was promised. No visit of these hours has begun." in page
    assert "<svg" in page
    assert rows(page) == []


def test_the_table_of_a_day_is_bounded(
    sign_in: SignIn, clinic: Clinic, db: Database, clock: SetClock
) -> None:
    minutes = range(0, 24 * 60 + 30, 10)
    for minute in minutes:
        estimated(db, clinic.plan_ids[BUSY], minute)
    waited(db, clinic, [(NOW + timedelta(minutes=each), 60.0) for each in minutes])
    clock.advance((24 * 60 + 30) * 60)
    assert 24 <= len(rows(late_viewer(sign_in, clinic).open(now_of(clinic, BUSY)).page)) <= 25


def test_names_are_escaped(sign_in: SignIn, db: Database, clock: SetClock) -> None:
    clinic = make_clinic(db, "<i>Group</i>")
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE plans SET name = '<b>\"Gold\" & more</b>'")
    support = sign_in(Role.SUPPORT)
    for path in (now_of(clinic), now_of(clinic, 0)):
        page = support.open(path).page
        assert "&lt;b&gt;&#34;Gold&#34; &amp; more&lt;/b&gt;" in page
        assert "<i>Group" not in page
        assert '<b>"' not in page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "under 1 min"),
        (59.9, "under 1 min"),
        (60, "1 min"),
        (89, "1 min"),
        (91, "2 min"),
        (86_400, "1,440 min"),
    ],
)
def test_waits_are_whole_minutes(seconds: float, text: str) -> None:
    assert minutes_text(seconds) == text


def test_an_interval_has_both_ends_inside() -> None:
    assert interval_text(481, 1081) == "8 to 19 min"
    assert interval_text(0, 0) == ""
    assert interval_text(None, None) == ""
    assert interval_text(0, 30) == "0 to 1 min"
    assert count_text(1, "doctor") == "1 doctor"


def test_a_refresh_does_not_read_the_account_of_the_page(
    sign_in: SignIn, clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    support = sign_in(Role.SUPPORT)
    read: list[int] = []

    def counted(tx: Tx, account_id: int) -> Account:
        read.append(account_id)
        return get_account(tx, account_id)

    monkeypatch.setattr(door, "get_account", counted)
    assert support.open(now_of(clinic)).status == 200
    assert support.open(now_of(clinic), **REFRESH).status == 200
    assert read == [clinic.account_id]
