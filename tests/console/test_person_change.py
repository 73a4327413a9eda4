"""Changes of one person from its page: correct, end, rename, another address."""

import re
from typing import Any

import pytest
from sqlalchemy import update

from frontdesk.access.accounts import set_state
from frontdesk.access.model import AccountState
from frontdesk.audit import Requester, list_entries
from frontdesk.db import Database
from frontdesk.eligibility.search import get_kept
from frontdesk.eligibility.store import list_history
from frontdesk.invitations import find_of_members
from frontdesk.invitations.model import Invitation, InvitationState
from frontdesk.invitations.tables import invitations
from frontdesk.plans.tables import plans
from frontdesk.privacy.erasure import erase_person, place_hold
from frontdesk.privacy.model import Person
from frontdesk.reach import EVERY
from frontdesk.users.model import Role
from tests.conftest import Api, SetClock
from tests.console.browsing import Browser, words_of
from tests.console.conftest import SignIn
from tests.console.persons import MARKED, MARKERS, PeopleDesk, actions
from tests.factories import Customer, make_customer, member_body

FORMS = ("correct", "end", "rename", "address")
FACTS = {"dob": "1977-01-11", "last_name": "zqlast", "zipcode": "02134"}


@pytest.fixture
def desk(api: Api, customer: Customer) -> PeopleDesk:
    return PeopleDesk(api, customer)


def stored(db: Database, member_id: int) -> dict[str, Any]:
    return db.ask(lambda tx: get_kept(tx, EVERY, member_id))


def history(db: Database, member_id: int) -> list[tuple[str, str]]:
    entries = db.ask(lambda tx: list_history(tx, member_id))
    return [(str(entry.outcome), entry.client) for entry in entries]


def invitation(db: Database, member_id: int) -> Invitation:
    [found] = db.ask(lambda tx: find_of_members(tx, [member_id]))
    return found


def open_record(browser: Browser, page: str) -> None:
    browser.open(page).send(page + "/open", reason="correction", case="C-1")
    assert "Open until" in browser.page


def fault_of(browser: Browser, field: str) -> str:
    """The words beside a field of the page's form."""
    found = re.search(f'<span class="fault" id="{field}-fault">(.*?)</span>', browser.page)
    assert found, field
    return words_of(found[1])


def match(browser: Browser, page: str, *fields: str) -> None:
    for field in fields:
        browser.open(page).send(page + "/check", field=field, text=FACTS[field])
        assert "matches" in browser.page


def test_a_covered_correction_changes_only_what_is_typed(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED)
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR).open(page + "/correct")
    assert "only what you type is changed" in browser.page
    assert not MARKERS.search(browser.page)
    before = stored(db, id_)
    browser.send(page + "/correct", zipcode="02139-1234", first_name=" ")
    assert (browser.path, browser.status) == (page, 200)
    after = stored(db, id_)
    assert {name for name in after if after[name] != before[name]} - {"updated_at"} == {"zipcode"}
    assert after["zipcode"] == "02139-1234"
    [_, (outcome, client)] = history(db, id_)
    assert (outcome, client[:5]) == ("updated", "user:")
    [entry] = [
        each
        for each in db.ask(lambda tx: list_entries(tx, EVERY, limit=50))
        if each["action"] == "eligibility.updated"
    ]
    assert (entry["actor"], entry["subject_id"]) == (client, id_)
    assert "zipcode" in browser.page


def test_an_open_record_shows_its_values_and_a_blank_field_is_cleared(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED, metadata={"department": "North"})
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR)
    open_record(browser, page)
    reads = actions(db).count("member.read")
    browser.open(page + "/correct")
    assert actions(db).count("member.read") == reads + 1
    fields = browser.form(page + "/correct")
    assert (fields["first_name"], fields["dob"]) == ("Zqfirst", "1977-01-11")
    browser.send(page + "/correct")
    assert "Nothing was changed: the record has these values already." in browser.page
    browser.open(page + "/correct").send(
        page + "/correct", middle_name="", metadata='{"department": "South"}'
    )
    after = stored(db, id_)
    assert (after["middle_name"], after["metadata"]) == (None, {"department": "South"})
    assert after["first_name"] == "Zqfirst"
    browser.open(page + "/correct").send(page + "/correct", last_name="")
    assert browser.status == 422
    assert "Must not be blank" in browser.page


def test_a_covered_form_stays_covered_when_the_record_is_opened_in_another_window(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED)
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR).open(page + "/correct")
    fields = browser.form(page + "/correct")
    open_record(browser, page)
    browser.post(page + "/correct", fields | {"zipcode": "x"})
    assert browser.status == 422
    assert not MARKERS.search(browser.page)
    browser.send(page + "/correct", zipcode="02139")
    after = stored(db, id_)
    assert (after["zipcode"], after["city"]) == ("02139", MARKED["city"])


@pytest.mark.parametrize(
    ("field", "text", "rule"),
    [
        ("dob", "11/01/1977", "it looks like month/day/year"),
        ("member_id", "M\u20131001", "dashes"),
        ("zipcode", "x" * 50_000, "5"),
        ("email", "robin.2@example.com", "another"),
        ("metadata", "{no json", "object"),
        ("expiry_date", "1999-01-01", "the first day of access"),
    ],
)
def test_a_rule_stands_at_its_field_with_the_text_kept(
    sign_in: SignIn, desk: PeopleDesk, field: str, text: str, rule: str, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED)
    desk.enrol(2)
    before = stored(db, id_)
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR).open(page + "/correct")
    browser.send(page + "/correct", **{field: text})
    assert browser.status == 422
    assert rule in fault_of(browser, field)
    assert browser.form(page + "/correct")[field] == text
    assert stored(db, id_) == before


def test_a_text_of_100_000_characters_is_refused_as_too_large(
    sign_in: SignIn, desk: PeopleDesk
) -> None:
    page = desk.page_of(desk.enrol(1))
    browser = sign_in(Role.EDITOR).open(page + "/correct")
    browser.send(page + "/correct", first_name="x" * 100_000)
    assert browser.status == 413


def test_a_change_of_the_access_is_shown_before_it_is_done(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED)
    page = desk.page_of(id_)
    before = stored(db, id_)
    browser = sign_in(Role.EDITOR).open(page + "/correct")
    browser.send(page + "/correct", expiry_date="2026-03-31", city="Boston")
    assert "Nothing was done yet" in browser.page
    assert "2026-01-01 to no end" in browser.page
    assert "2026-01-01 to 2026-03-31" in browser.page
    assert "no access from" in browser.page
    assert stored(db, id_) == before
    browser.send(page + "/correct")
    assert browser.path == page
    after = stored(db, id_)
    assert (after["expiry_date"], after["city"]) == ("2026-03-31", "Boston")


def test_an_end_has_a_second_step_and_is_taken_back_by_a_correction(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED)
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR).open(page + "/end")
    today = browser.form(page + "/end")["on"]
    assert re.fullmatch("20[0-9-]{8}", today)
    browser.send(page + "/end")
    assert f"The last day of access is {today}" in browser.page
    assert stored(db, id_)["expiry_date"] is None
    fields = browser.form(page + "/end")
    browser.post(page + "/end", fields)
    assert (browser.path, stored(db, id_)["expiry_date"]) == (page, today)
    browser.post(page + "/end", fields)
    assert "You have changed nothing" in browser.page
    assert [outcome for outcome, _ in history(db, id_)] == ["created", "ended"]
    assert actions(db).count("eligibility.ended") == 1
    open_record(browser, page)
    browser.open(page + "/correct").send(page + "/correct", expiry_date="")
    browser.send(page + "/correct")
    assert stored(db, id_)["expiry_date"] is None


@pytest.mark.parametrize(
    ("day", "rule"),
    [
        ("", "not be blank"),
        ("yesterday", "date"),
        ("2020-01-01", "the first day of access"),
        ("2" * 50_000, "date"),
    ],
)
def test_an_end_without_a_good_day_does_nothing(
    sign_in: SignIn, desk: PeopleDesk, day: str, rule: str, db: Database
) -> None:
    id_ = desk.enrol(1)
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR).open(page + "/end")
    browser.send(page + "/end", on=day)
    assert browser.status == 422
    assert rule in fault_of(browser, "on").lower()
    assert stored(db, id_)["expiry_date"] is None


def test_a_rename_keeps_the_person_and_a_taken_identifier_says_no_more(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED)
    desk.enrol(2, last_name="Zqother")
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR).open(page + "/rename")
    browser.send(page + "/rename", external_id="AB 000002")
    assert browser.status == 422
    assert "another" in browser.page
    assert "Zqother" not in browser.page
    assert "member_id" not in re.sub("<p>The customer has.*", "", browser.page)
    browser.send(page + "/rename", external_id="E-2001")
    assert browser.path == page
    assert "E-2001" in browser.page
    assert stored(db, id_)["external_id"] == "E-2001"
    browser.open(page + "/rename").send(page + "/rename", external_id="E-2001")
    assert "has these values already" in browser.page
    assert len(history(db, id_)) == 2


def test_a_record_that_another_window_changed_is_not_written_over(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED)
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR)
    open_record(browser, page)
    for name in FORMS:
        browser.open(f"{page}/{name}")
        desk.enrol(1, **MARKED | {"city": f"City {name}"})
        typed = {
            "correct": {"city": "Mine"},
            "end": {"on": "2026-12-01"},
            "rename": {"external_id": "E-9"},
            "address": {"email": "zqnew@example.com"},
        }[name]
        browser.send(f"{page}/{name}", **typed)
        assert browser.status == 409
        assert "changed while the page was open: " in browser.page
        assert "City at" in browser.page
        assert "You have changed nothing" in browser.page
    assert stored(db, id_)["city"] == "City address"
    browser.open(page + "/correct")
    desk.enrol(1, **MARKED | {"city": "Newest"})
    browser.send(page + "/correct", first_name="Mine")
    assert browser.form(page + "/correct")["city"] == "Newest"
    assert browser.form(page + "/correct")["first_name"] == "Zqfirst"


@pytest.mark.parametrize(
    ("form", "field", "right", "wrong"),
    [
        ("correct", "dob", "1977-01-11", "1977-01-12"),
        ("correct", "last_name", MARKED["last_name"], "Zqguess"),
        ("address", "email", MARKED["email"], "zqguess@zqhost.example"),
    ],
)
def test_an_old_page_tells_nothing_of_the_values(
    sign_in: SignIn, desk: PeopleDesk, form: str, field: str, right: str, wrong: str
) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED))
    browser = sign_in(Role.EDITOR)
    answers = set()
    for guess in (right, wrong):
        browser.open(f"{page}/{form}").send(f"{page}/{form}", version="0", **{field: guess})
        answers.add((browser.status, browser.page.count("You have changed nothing")))
    assert answers == {(409, 1)}


def test_a_field_is_cleared_only_while_the_record_is_open(
    sign_in: SignIn, desk: PeopleDesk, db: Database, clock: SetClock
) -> None:
    id_ = desk.enrol(1, **MARKED)
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR).open(page + "/correct")
    before = stored(db, id_)
    forged = {"shown": "yes", "middle_name": ""}
    browser.post(page + "/correct", browser.form(page + "/correct") | forged)
    assert browser.status == 409
    assert "not open in your session" in browser.page
    assert not MARKERS.search(browser.page)
    assert stored(db, id_) == before
    open_record(browser, page)
    browser.open(page + "/correct")
    clock.advance(16 * 60)
    browser.send(page + "/correct", middle_name="")
    assert (browser.status, stored(db, id_)) == (409, before)
    fields = browser.form(page + "/correct")
    open_record(browser, page)
    browser.post(page + "/correct", fields)
    assert stored(db, id_)["middle_name"] is None


def test_the_second_step_tells_nothing_of_a_covered_record(
    sign_in: SignIn, desk: PeopleDesk
) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED))
    browser = sign_in(Role.EDITOR)
    told = set()
    for guess in ("1977-01-11", "1977-01-12", "1950-06-30"):
        browser.open(page + "/correct")
        browser.send(page + "/correct", dob=guess, expiry_date="2026-03-31")
        assert "Nothing was done yet" in browser.page
        told.add(re.sub('name="(token|dob)" value="[^"]*"', "", browser.page))
    assert len(told) == 1
    open_record(browser, page)
    browser.open(page + "/correct")
    browser.send(page + "/correct", dob="1977-01-12", expiry_date="2026-03-31")
    assert "Changed: Birth date, Last day of access." in browser.page
    assert "moved by" in browser.page


def test_a_last_day_in_the_past_is_told_by_the_day_after_it(
    sign_in: SignIn, desk: PeopleDesk
) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED))
    browser = sign_in(Role.EDITOR).open(page + "/end")
    browser.send(page + "/end", on="2026-03-31")
    assert "no access from 2026-04-01 on, and so none today." in browser.page
    assert "The last day of access is 2026-03-31." in browser.page
    assert "Confirm: no access from 2026-04-01" in browser.page
    fields = browser.form(page + "/end")
    browser.post(page + "/end", {**fields, "confirmed": "", "again": "yes"})
    assert browser.form(page + "/end")["on"] == "2026-03-31"


@pytest.mark.parametrize("text", ["", "E" * 256])
def test_a_rename_names_the_field_of_its_form_only(
    sign_in: SignIn, desk: PeopleDesk, text: str
) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED, member_id="AB 000001"))
    browser = sign_in(Role.EDITOR).open(page + "/rename")
    browser.send(page + "/rename", external_id=text)
    assert browser.status == 422
    assert browser.page.count('class="fault"') == 1
    assert "member_id:" not in browser.page
    assert "null" not in browser.page


def test_a_warning_of_a_change_stands_in_the_persons_page_for_its_writer_only(
    sign_in: SignIn, desk: PeopleDesk, clock: SetClock
) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED))
    browser = sign_in(Role.EDITOR).open(page + "/correct")
    browser.send(page + "/correct", dob="1977-01-12")
    told = "The change was made. The birth date moved by one day. If that was not meant"
    assert (browser.path, told in browser.page) == (f"{page}?said=dob_shifted_one_day", True)
    assert told in browser.open(browser.path).page
    assert told not in sign_in(Role.SUPPORT).open(browser.path).page
    assert "The change was made" not in browser.open(page + "?said=no_word").page
    clock.advance(6 * 60)
    assert told not in browser.open(page + "?said=dob_shifted_one_day").page


def test_a_form_in_which_nothing_was_typed_says_so(sign_in: SignIn, desk: PeopleDesk) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED))
    browser = sign_in(Role.EDITOR).open(page + "/correct")
    browser.send(page + "/correct", middle_name=" ")
    assert "Nothing was typed, so nothing was changed." in browser.page


@pytest.mark.parametrize("role", [Role.VIEWER, Role.APPROVER, Role.ADMIN, Role.OPERATOR])
def test_roles_without_the_right_change_nothing(
    sign_in: SignIn, desk: PeopleDesk, role: Role
) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED))
    browser = sign_in(role)
    token = {"token": browser.open("/console/me").form("/console/me")["token"]}
    for name in FORMS:
        assert browser.open(f"{page}/{name}").status == 403
        assert browser.post(f"{page}/{name}", token | {"on": "2026-12-01"}).status == 403
        assert "editor" in browser.page
    if role is Role.APPROVER:
        shown = browser.open(page).page
        assert not re.search(f'{page}/(correct|end|rename|address)"', shown)


def test_support_changes_the_address_only(sign_in: SignIn, desk: PeopleDesk) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED))
    browser = sign_in(Role.SUPPORT)
    assert [browser.open(f"{page}/{name}").status for name in FORMS] == [403, 403, 403, 200]
    shown = browser.open(page).page
    assert f'{page}/address"' in shown
    assert f'{page}/correct"' not in shown


def test_another_accounts_person_looks_like_an_unknown_one(
    sign_in: SignIn, desk: PeopleDesk, db: Database, api: Api
) -> None:
    other = make_customer(db, name="Other Health")
    theirs = PeopleDesk(api.as_(other.token), other).enrol(9, **MARKED)
    browser = sign_in(Role.EDITOR)
    token = {"token": browser.open("/console/me").form("/console/me")["token"]}
    answers = []
    for member_id in (theirs, 999_999):
        for name in FORMS:
            for step in ("open", "post"):
                path = f"{desk.page_of(member_id)}/{name}"
                fields = token | {"on": "2026-12-01", "email": "a@b.example", "external_id": "E"}
                browser.open(path) if step == "open" else browser.post(path, fields)
                answers.append((browser.status, re.sub("Request [0-9a-f]+", "", browser.page)))
    assert {status for status, _ in answers} == {404}
    assert answers[:8] == answers[8:]


def test_ended_and_held_people_are_corrected_and_an_erased_one_is_gone(
    sign_in: SignIn, desk: PeopleDesk, db: Database, clock: SetClock
) -> None:
    ended = desk.enrol(1, **MARKED, expiry_date="2026-02-01")
    held = desk.enrol(2)
    erased = desk.enrol(3)
    requester = Requester("cli:anna", "request", clock())
    with db.write() as tx:
        place_hold(tx, Person(held, desk.customer.account_id), "CASE-1", requester)
    browser = sign_in(Role.EDITOR)
    for member_id in (ended, held):
        page = desk.page_of(member_id)
        browser.open(page + "/correct").send(page + "/correct", city="Boston")
        assert stored(db, member_id)["city"] == "Boston"
    assert stored(db, ended)["expiry_date"] == "2026-02-01"
    page = desk.page_of(erased)
    fields = browser.open(page + "/correct").form(page + "/correct")
    erase_person(db, [Person(erased, desk.customer.account_id)], requester, clock)
    for name in FORMS:
        assert browser.post(f"{page}/{name}", fields | {"city": "Boston"}).status == 404
        assert browser.open(f"{page}/{name}").status == 404


def test_a_person_of_a_plan_that_takes_nobody_is_corrected_with_a_warning(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED)
    plan_id = desk.customer.plan_ids[0]
    with db.write() as tx:
        tx.execute(update(plans).where(plans.c.id == plan_id).values(accepting_patients=False))
    page = desk.page_of(id_)
    browser = sign_in(Role.EDITOR).open(page + "/correct")
    browser.send(page + "/correct", city="Boston")
    assert "The change was made." in browser.page
    assert stored(db, id_)["city"] == "Boston"


def test_a_suspended_account_is_not_changed_by_support(
    sign_in: SignIn, desk: PeopleDesk, db: Database, clock: SetClock
) -> None:
    id_ = desk.enrol(1, **MARKED)
    page = desk.page_of(id_)
    browser = sign_in(Role.SUPPORT).open(page + "/address")
    with db.write() as tx:
        set_state(tx, desk.customer.account_id, AccountState.SUSPENDED, now=clock())
    browser.send(page + "/address", email="zqnew@example.com")
    assert (browser.status, "suspended" in browser.page) == (403, True)
    assert len(history(db, id_)) == 1


def test_supports_address_without_facts_gets_no_mail_whoever_else_sends(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED | {"invite_immediately": True})
    page = desk.page_of(id_)
    support = sign_in(Role.SUPPORT)
    match(support, page, "dob", "zipcode")
    support.open(page + "/address")
    assert "No mail will go to the new address" in support.page
    assert "1 more is needed" in support.page
    support.send(page + "/address", email="zqnew@zqhost.example")
    assert support.path == page
    assert "Support entered the address" in support.page
    assert not MARKERS.search(support.page)
    assert invitation(db, id_).state is InvitationState.CANCELLED
    assert "Send it again" not in support.page
    fields = support.form(page + "/check")
    support.post(page + "/resend", fields)
    assert support.status == 409
    assert invitation(db, id_).state is InvitationState.CANCELLED
    match(support, page, "last_name")
    assert "Send it again" in support.page
    support.open(page).send(page + "/resend")
    assert invitation(db, id_).state is InvitationState.PENDING
    assert invitation(db, id_).address == "zqnew@zqhost.example"


def test_an_editor_vouches_for_supports_address(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED | {"invite_immediately": True})
    page = desk.page_of(id_)
    support = sign_in(Role.SUPPORT).open(page + "/address")
    support.send(page + "/address", email="zqnew@zqhost.example")
    editor = sign_in(Role.EDITOR).open(page)
    assert "Support entered the address" in editor.page
    editor.send(page + "/resend")
    assert invitation(db, id_).state is InvitationState.PENDING
    assert {"invitation.cancelled", "invitation.resent"} <= {*actions(db)}


def test_three_facts_send_the_invitation_to_the_new_address(
    sign_in: SignIn, desk: PeopleDesk, db: Database
) -> None:
    id_ = desk.enrol(1, **MARKED | {"invite_immediately": True})
    page = desk.page_of(id_)
    support = sign_in(Role.SUPPORT)
    match(support, page, *FACTS)
    support.open(page + "/address")
    assert "Matched on this call: Birth date, Last name, Zip code" in support.page
    fields = support.form(page + "/address") | {"email": "zqnew@zqhost.example"}
    support.post(page + "/address", fields)
    assert (support.path, "The mail waits" in support.page) == (page, True)
    assert invitation(db, id_).address == "zqnew@zqhost.example"
    support.post(page + "/address", fields)
    assert "You have changed nothing" in support.page
    assert len(history(db, id_)) == 2
    assert actions(db).count("invitation.resent") == 1


def test_facts_count_for_an_hour_in_their_session_and_what_support_sees_is_none(
    sign_in: SignIn, desk: PeopleDesk, db: Database, clock: SetClock
) -> None:
    id_ = desk.enrol(1, **MARKED | {"invite_immediately": True})
    page = desk.page_of(id_)
    support = sign_in(Role.SUPPORT)
    match(support, page, "dob", "zipcode")
    for field, text in (("email", MARKED["email"]), ("external_id", "AB 000001")):
        support.open(page).send(page + "/check", field=field, text=text)
    assert "external_id: matches" in support.page
    assert "1 more is needed" in support.open(page + "/address").page
    match(support, page, "last_name")
    support.open(page + "/address")
    assert "The invitation goes to the new address" in support.page
    other = sign_in(Role.SUPPORT, Role.AUDITOR).open(page + "/address")
    assert "3 more are needed" in other.page
    clock.advance(25 * 60)
    support.open(page + "/address")
    clock.advance(25 * 60)
    support.open(page + "/address")
    clock.advance(11 * 60)
    support.send(page + "/address", email="zqnew@zqhost.example")
    assert (support.status, "Nothing was changed" in support.page) == (409, True)
    assert len(history(db, id_)) == 1


def test_a_later_answer_that_differs_takes_the_fact_back(
    sign_in: SignIn, desk: PeopleDesk, clock: SetClock
) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED))
    support = sign_in(Role.SUPPORT)
    match(support, page, *FACTS)
    clock.advance(60)
    support.open(page).send(page + "/check", field="zipcode", text="99999")
    assert "1 more is needed" in support.open(page + "/address").page


def test_an_address_needs_its_rules(sign_in: SignIn, desk: PeopleDesk, db: Database) -> None:
    id_ = desk.enrol(1, **MARKED)
    desk.enrol(2)
    page = desk.page_of(id_)
    editor = sign_in(Role.EDITOR)
    for text in ("", "no address", "robin.2@example.com", "x" * 50_000):
        editor.open(page + "/address").send(page + "/address", email=text)
        assert editor.status == 422
        assert 'id="email-fault"' in editor.page
        assert editor.form(page + "/address")["email"] == text
    assert len(history(db, id_)) == 1
    editor.open(page + "/address").send(page + "/address", email=member_body(7)["email"])
    assert len(history(db, id_)) == 2


def test_the_forms_have_no_value_of_the_person_and_the_same_request(
    sign_in: SignIn, desk: PeopleDesk
) -> None:
    page = desk.page_of(desk.enrol(1, **MARKED))
    browser = sign_in(Role.EDITOR)
    for name in FORMS:
        browser.open(f"{page}/{name}")
        assert not MARKERS.search(browser.page)
        assert "curl -X POST" in browser.page
        title = re.search("<title>([^<]*)", browser.page)
        assert title
        assert title[1].startswith("Person ")


def test_a_mail_is_offered_again_only_when_it_works(
    sign_in: SignIn, desk: PeopleDesk, db: Database, clock: SetClock
) -> None:
    id_ = desk.enrol(1, **MARKED | {"invite_immediately": True})
    page = desk.page_of(id_)
    with db.write() as tx:
        tx.execute(update(invitations).values(state="sent", offered_at=clock(), settled_at=clock()))
    browser = sign_in(Role.EDITOR).open(page)
    assert "It can be sent again from" in browser.page
    assert "Send it again" not in browser.page
    clock.advance(24 * 3600 + 60)
    browser = sign_in(Role.EDITOR, Role.APPROVER).open(page)
    assert "Send it again" in browser.page
