"""A held file at the console: who may decide about it, and what becomes of a late decision."""

import re
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.db import Database
from frontdesk.files import set_file_settings, store
from frontdesk.files.model import EligibilityFile, FileState, FileStep
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.browsing import Browser, text_of
from tests.console.conftest import SignIn
from tests.console.held import TODAY, hold_file, path_of
from tests.factories import Customer
from tests.files.loading import COLUMNS, Desk, csv_of, row
from tests.formats.reading import MEMBER, file_834

CUT_OFF = 187
DAY = 86_400
PRESSED = ("/cancel", "/approve", "/mapping", "/undo")


def buttons(browser: Browser) -> list[str]:
    """What the page's forms of the file do, in order."""
    return [
        found
        for found in re.findall(r'<form method="post" action="[^"]+/(\w+)"', browser.page)
        if f"/{found}" in PRESSED
    ]


def want_second_person(db: Database, customer: Customer) -> None:
    with db.write() as tx:
        set_file_settings(tx, customer.account_id, second_approver=True)


def test_the_page_of_a_held_file_says_what_it_would_do(
    desk: Desk, sign_in: SignIn, clock: SetClock
) -> None:
    held = hold_file(desk, CUT_OFF)
    clock.advance(6 * 3600)
    page = text_of(sign_in(Role.EDITOR, Role.APPROVER).open(path_of(held)))
    assert "gold-11-28.csv ▲ Held: 187 people would lose access since Nov 20 12:00" in page
    assert "187 of the 187 members with access under plan plan-0 would lose it" in page
    assert "187 would lose access" in page
    assert "The file before it, file 1 of Nov 20 12:00 : 187 rows, 0 lost access." in page
    assert "R. S. · 1980 E00000 2026-11-20 2" in page
    assert "25 of 187. See all, or show the names" in page
    assert "If more than 187 would lose access when it runs, it is held again." in page
    assert "Approve: 187 people lose access" in page
    assert "Faults and warnings" not in page
    assert f'/v2/plans/{held.plan_id}/eligibility-files/{held.id}/approve"' in page


@pytest.mark.parametrize(
    ("roles", "drawn"),
    [
        ([Role.VIEWER], []),
        ([Role.EDITOR], ["cancel"]),
        ([Role.APPROVER], ["approve"]),
        ([Role.EDITOR, Role.APPROVER], ["cancel", "approve"]),
        ([Role.ADMIN], []),
        ([Role.SUPPORT], []),
        ([Role.OPERATOR], []),
    ],
)
def test_a_button_that_a_role_may_not_press_is_not_drawn(
    desk: Desk, sign_in: SignIn, roles: list[Role], drawn: list[str]
) -> None:
    held = hold_file(desk)
    path = path_of(held)
    browser = sign_in(*roles).open(path)
    assert (browser.status, buttons(browser)) == (200, drawn)
    assert ("You can't: Your roles do not allow it." in browser.page) == ("approve" not in drawn)
    token = browser.open("/console/me").form("/console/me")["token"]
    rights = {"cancel": "editor", "approve": "approver", "mapping": "approver", "undo": "editor"}
    for action, who in rights.items():
        if who not in roles:
            browser.post(f"{path}/{action}", {"token": token, "version": "held-1"})
            assert (browser.status, f"It is for: {who}." in browser.page) == (403, True)
    assert desk.reread(held) == held


def test_an_auditor_sees_no_file(desk: Desk, sign_in: SignIn) -> None:
    held = hold_file(desk)
    assert sign_in(Role.AUDITOR).open(path_of(held)).status == 403


def test_a_file_is_cancelled(desk: Desk, sign_in: SignIn) -> None:
    held = hold_file(desk)
    browser = sign_in(Role.EDITOR).open(path_of(held))
    browser.send(path_of(held) + "/cancel")
    assert (browser.status, browser.path, desk.reread(held).state) == (
        200,
        path_of(held),
        "cancelled",
    )
    assert "Cancelled you, Nov 20 12:00" in text_of(browser)
    assert buttons(browser) == []
    assert desk.ends().popitem()[1] is None


def test_a_file_is_approved_and_applied(desk: Desk, sign_in: SignIn) -> None:
    held = hold_file(desk)
    browser = sign_in(Role.APPROVER).open(path_of(held))
    browser.send(path_of(held) + "/approve")
    assert "Approved, waits for a worker" in text_of(browser)
    assert "Approved you, Nov 20 12:00" in text_of(browser)
    done = desk.work(held)
    assert (done.state, done.counts) == ("done", {"updated": 30, "lost": 30})
    page = text_of(browser.open(path_of(held)))
    assert "● Done 30 lost access 30 changed" in page


def test_an_approval_is_for_the_numbers_that_were_shown(desk: Desk, sign_in: SignIn) -> None:
    held = hold_file(desk)
    browser = sign_in(Role.APPROVER).open(path_of(held))
    browser.send(path_of(held) + "/approve")
    for n in range(30, 100):
        desk.post(**row(n))
    more = [row(n, expiry_date="2026-11-20") for n in range(100)]
    again = desk.load(csv_of(more, (*COLUMNS, "expiry_date")))
    assert again.state == "held"
    browser.open(path_of(again))
    assert "Approve: 100 people lose access" in browser.page
    desk.work(held)
    assert desk.reread(held).counts["lost"] == 30


def test_who_can_approve_and_why_you_cannot(
    desk: Desk, sign_in: SignIn, db: Database, customer: Customer, clock: SetClock
) -> None:
    want_second_person(db, customer)
    editor = sign_in(Role.EDITOR, Role.APPROVER)
    sign_in(Role.APPROVER)
    clock.advance(2 * DAY)
    desk.client = "user:1"  # the editor's
    held = hold_file(desk)
    late = sign_in(Role.ADMIN, Role.APPROVER).open(path_of(held))
    assert "You can't: You may approve files that came a day or more after" in text_of(late)
    clock.advance(-2 * DAY)  # the sessions of the others still last
    page = text_of(editor.open(path_of(held)))
    assert "Ana Ruiz can approve, last here Nov 20 12:00 , invited by" in page
    assert page.count("can approve") == 1
    assert "You can't: The client, user or operator that handed the file in" in page
    assert buttons(editor) == ["cancel"]
    fields = {"token": editor.form(path_of(held) + "/cancel")["token"], "version": "held-1"}
    editor.post(path_of(held) + "/approve", fields)
    assert (editor.status, desk.reread(held).state) == (403, "held")
    assert "handed the file in can't approve it. Nothing was changed." in text_of(editor)
    viewer = sign_in(Role.VIEWER).open(path_of(held))
    assert "You can't: Your roles do not allow it." in text_of(viewer)


def test_an_approver_is_told_who_cancels(desk: Desk, sign_in: SignIn) -> None:
    held = hold_file(desk, CUT_OFF)
    words = "If it is a mistake, an editor cancels it."
    assert words in sign_in(Role.APPROVER).open(path_of(held)).page
    assert words not in sign_in(Role.EDITOR, Role.APPROVER).open(path_of(held)).page


def test_who_ended_by_absence_is_no_fault_to_correct(desk: Desk, sign_in: SignIn) -> None:
    desk.load(csv_of(map(row, range(12))))
    file = desk.load(csv_of(map(row, range(10))), full=True)
    assert file.counts["ended"] == 2
    page = text_of(sign_in(Role.EDITOR).open(path_of(file)))
    assert "ended_by_absence" in page
    assert "Correct it at the source" not in page


def test_an_account_without_an_approver_is_told_so(desk: Desk, sign_in: SignIn) -> None:
    held = hold_file(desk)
    page = text_of(sign_in(Role.EDITOR).open(path_of(held)))
    assert "Nobody else of the account can approve it. You can't: Your roles" in page


def _cancel(other: Browser, desk: Desk, held: EligibilityFile) -> None:
    other.send(path_of(held) + "/cancel")


def _approve(other: Browser, desk: Desk, held: EligibilityFile) -> None:
    other.send(path_of(held) + "/approve")


def _approve_and_apply(other: Browser, desk: Desk, held: EligibilityFile) -> None:
    other.send(path_of(held) + "/approve")
    desk.work(held)


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        (_cancel, "Ana Ruiz (approver-editor-viewer@example.com) cancelled it at 12:00"),
        (_approve, "Ana Ruiz (approver-editor-viewer@example.com) approved it at 12:00"),
        (_approve_and_apply, "Ana Ruiz (approver-editor-viewer@example.com) approved it at 12:00"),
    ],
)
def test_a_decision_that_was_overtaken_changes_nothing(
    desk: Desk, sign_in: SignIn, meanwhile: Any, said: str
) -> None:
    held = hold_file(desk)
    path = path_of(held)
    mine = sign_in(Role.EDITOR, Role.APPROVER).open(path)
    other = sign_in(Role.APPROVER, Role.EDITOR, Role.VIEWER).open(path)
    kept = {action: mine.form(f"{path}/{action}") for action in ("approve", "cancel")}
    meanwhile(other, desk, held)
    after = desk.reread(held)
    for action, fields in kept.items():
        mine.post(f"{path}/{action}", fields)
        page = text_of(mine)
        assert mine.status == 409
        assert "data-refresh" not in mine.page  # a refresh of this answer would be another form
        assert f"This file changed while the page was open: {said}. You have changed" in page
    assert desk.reread(held) == after


def test_a_second_press_changes_nothing(desk: Desk, sign_in: SignIn) -> None:
    held = hold_file(desk)
    path = path_of(held)
    browser = sign_in(Role.APPROVER).open(path)
    fields = browser.form(path + "/approve")
    browser.post(path + "/approve", fields)
    approved = desk.reread(held)
    browser.post(path + "/approve", fields)
    assert (browser.status, "you approved it at 12:00" in text_of(browser)) == (409, True)
    assert desk.reread(held) == approved


def test_a_file_that_is_held_again_is_shown_again(
    desk: Desk, sign_in: SignIn, db: Database
) -> None:
    """The numbers of the page are those that an approval covers."""
    held = hold_file(desk)
    path = path_of(held)
    browser = sign_in(Role.APPROVER).open(path)
    fields = browser.form(path + "/approve")
    with db.write() as tx:
        store.change_file(tx, held.id, epoch=held.epoch + 1)
    browser.post(path + "/approve", fields)
    assert (browser.status, desk.reread(held).state) == (409, "held")
    browser.send(path + "/approve")
    assert desk.reread(held).state == "waiting"


def test_a_full_file_that_was_overtaken_can_only_be_cancelled(desk: Desk, sign_in: SignIn) -> None:
    desk.load(csv_of(map(row, range(30))), full=True)
    held = desk.load(csv_of([row(99)]), full=True)
    assert held.state == "held"
    desk.load(csv_of([row(100)]))
    browser = sign_in(Role.EDITOR, Role.APPROVER).open(path_of(held))
    assert buttons(browser) == ["cancel"]
    assert (
        "You can't: A newer file of the plan, file 3, has come since. Cancel this one."
        in text_of(browser)
    )


def test_a_mapping_is_accepted(desk: Desk, sign_in: SignIn) -> None:
    held = desk.load(file_834(MEMBER).encode(), mapping={})
    assert (held.state, held.needs_mapping) == ("held", True)
    path = path_of(held)
    browser = sign_in(Role.APPROVER).open(path)
    page = text_of(browser)
    assert "Held: it needs a mapping" in page
    assert buttons(browser) == ["mapping"]
    assert "Accept the suggested mapping" in page
    browser.send(path + "/mapping")
    assert "Mapping accepted you, Nov 20 12:00" in text_of(browser)
    assert desk.work(held).state == "done"


def test_an_undo_is_shown_asked_for_held_and_approved(desk: Desk, sign_in: SignIn) -> None:
    done = desk.load(csv_of(map(row, range(30))), file_name="first.csv")
    path = path_of(done)
    browser = sign_in(Role.EDITOR, Role.APPROVER).open(path)
    assert buttons(browser) == []
    browser.open(path + "/undo")
    page = text_of(browser)
    assert "Undo first.csv" in page
    assert (
        "As of 12:00:00 the undo would do this: 30 would lose access 30 as before the file" in page
    )
    kept = browser.form(path + "/undo")
    browser.send(path + "/undo")
    undo_path = f"{path.rpartition('/')[0]}/{done.id + 1}"
    assert browser.path == undo_path
    browser.open(path)
    assert f"Undo file {done.id + 1} , waiting, asked for by you" in text_of(browser)
    browser.post(path + "/undo", kept)
    assert browser.status == 409
    said = f"you asked for its undo, file {done.id + 1}, at 12:00. You have changed nothing."
    assert said in text_of(browser)
    held = desk.work(replace(done, id=done.id + 1))
    assert held.state == "held"
    browser.open(undo_path)
    assert "Held: 30 people would lose access" in text_of(browser)
    assert "Nothing was taken back yet. If more than 30 would lose access" in text_of(browser)
    assert buttons(browser) == ["cancel", "approve"]
    assert browser.page.count("R. S. · 1980") == 25
    browser.send(undo_path + "/approve")
    assert desk.work(held).counts == {"withdrawn": 30, "lost": 30}
    assert "◌ Undone" in text_of(browser.open(path))
    listed = text_of(browser.open(path.rpartition("/")[0]))
    assert "Undone first.csv" in listed
    assert f"Done Undo of file {done.id}" in listed
    assert browser.open(path + "/undo").path == path  # nothing is left to take back


def test_the_page_of_an_undo_says_what_the_undo_then_does(
    desk: Desk, sign_in: SignIn, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four people one was changed since, one has lost access by the file and two came by it."""
    columns = (*COLUMNS, "expiry_date")
    desk.load(csv_of([row(0), row(1)]))
    clock.advance(60)
    ends = [row(0, zipcode="10001"), row(1, expiry_date=TODAY), row(2), row(3)]
    file = desk.load(csv_of(ends, columns))
    clock.advance(60)
    desk.post(external_id="E00000", zipcode="20001")
    browser = sign_in(Role.EDITOR).open(path_of(file) + "/undo")
    numbers = "2 would lose access 1 would get access back 3 as before the file"
    assert f"{numbers} 1 changed since: would stay as they are" in text_of(browser)
    members = desk.members()
    assert len(members) == 4, "a look changes nothing"
    done = desk.undo(file)
    counts = {"withdrawn": 2, "restored": 1, "refused": 1, "lost": 2, "gained": 1}
    assert done.counts == counts
    again = desk.load(csv_of([row(5)]))
    monkeypatch.setattr("frontdesk.files.undo.MOST_COUNTED_ROWS", 0)
    browser.open(path_of(again) + "/undo")
    assert "this is what it takes back at most: 1 created: withdrawn" in text_of(browser)


def test_an_undo_that_takes_nothing_back_is_not_offered_and_undoes_nothing(
    desk: Desk, sign_in: SignIn, clock: SetClock
) -> None:
    file = desk.load(csv_of([row(1), row(2)]))
    clock.advance(60)
    desk.load(csv_of([row(1, zipcode="10001"), row(2, zipcode="10001")]))
    browser = sign_in(Role.EDITOR).open(path_of(file) + "/undo")
    assert "The undo would take back nothing" in browser.page
    assert buttons(browser) == []
    assert desk.undo(file).counts == {"refused": 2}
    words = "Done, and its undo took nothing back: 2 of 2 rows refused"
    assert f"▲ {words}" in text_of(browser.open(path_of(file)))
    assert words in text_of(browser.open(path_of(file).rpartition("/")[0]))


def test_nothing_is_undone_that_changed_nothing(desk: Desk, sign_in: SignIn) -> None:
    dry = desk.load(csv_of([row(1)]), dry_run=True)
    broken = desk.load(csv_of([row(2, dob="never")]))
    browser = sign_in(Role.EDITOR)
    for file in (dry, broken):
        browser.open(path_of(file))
        assert "Undo the file" not in browser.page
        assert browser.open(path_of(file) + "/undo").path == path_of(file)


def test_what_waits_or_runs_is_cancelled_whatever_its_progress(
    desk: Desk, sign_in: SignIn, db: Database
) -> None:
    file = desk.hand_in(csv_of([row(1)]))
    path = path_of(file)
    browser = sign_in(Role.EDITOR).open(path)
    assert "Waiting since" in text_of(browser)
    with db.write() as tx:
        runs = {"state": FileState.RUNNING, "step": FileStep.APPLY, "epoch": 7}
        store.change_file(tx, file.id, **runs, rows_total=120_000, rows_done=48_200)
    fields = browser.form(path + "/cancel")
    assert "Applying since" in text_of(browser.open(path))
    assert "48,200 of 120,000 rows" in text_of(browser)
    browser.post(path + "/cancel", fields)
    assert (browser.status, desk.reread(file).state) == (200, "cancelled")
