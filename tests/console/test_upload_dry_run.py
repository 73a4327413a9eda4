"""The dry run of an upload, and the file that is applied: nothing before it, and once only."""

import pytest

from frontdesk.db import Database
from frontdesk.files import actions, set_file_settings
from frontdesk.files.drafts import steps
from frontdesk.files.model import Draft, EligibilityFile, FileKey
from frontdesk.formats.model import FileMode
from frontdesk.reach import EVERY
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.browsing import Browser, text_of
from tests.console.conftest import SignIn
from tests.console.drafted import ENDS, begin, census, choose, covers, path_of, reread, take
from tests.factories import Customer
from tests.files.loading import COLUMNS, Desk, csv_of, row

DAY = 86_400


def ready(desk: Desk, content: bytes, mode: FileMode = FileMode.CHANGE) -> Draft:
    """A draft before its dry run, whose columns have the names of our fields."""
    return take(desk, begin(desk, content, mode=mode), steps.set_mapping, mapping={})


def file_of(desk: Desk, file_id: int | None) -> EligibilityFile:
    assert file_id is not None
    return desk.db.ask(lambda tx: actions.get_file(tx, FileKey(file_id, EVERY)))


def run(desk: Desk, browser: Browser, draft: Draft) -> EligibilityFile:
    """The dry run that a browser begins and a worker does; the browser looks at it then."""
    path = path_of(draft, "dry-run")
    browser.open(path).send(path)
    assert browser.path == path
    assert desk.work_on_any()
    browser.open(path)
    return file_of(desk, reread(desk, draft).dry_run_id)


def apply(browser: Browser, draft: Draft) -> Browser:
    path = path_of(draft, "apply")
    return browser.open(path).send(path)


def test_an_export_is_dry_run_and_applied_and_no_page_shows_a_value(
    desk: Desk, sign_in: SignIn
) -> None:
    draft = begin(desk, census(20, without_zip=2))
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    choose(browser, draft, **ENDS)
    assert "Dry run: waiting" in text_of(browser)
    assert "data-refresh" in browser.page
    assert desk.work_on_any()
    page = text_of(browser.open(path_of(draft, "dry-run")))
    dry = file_of(desk, reread(desk, draft).dry_run_id)
    assert f"{dry.counts['created']} would be created" in page
    assert f"{dry.counts['refused']} refused" in page
    assert "Nothing was changed." in page
    assert "required in zipcode" in page
    assert "Correct it at the source and upload the whole file again" in page
    assert covers(browser)
    for word in dry.counts:
        browser.open(f"/console/accounts/{dry.account_id}/files/{dry.id}/rows?list={word}")
        assert (browser.status, covers(browser)) == (200, True), word
    browser.open(f"/console/accounts/{dry.account_id}/files/{dry.id}")
    assert covers(browser)
    assert f'{path_of(draft, "dry-run")}"' in browser.page  # the way back
    assert desk.members() == {}
    page = text_of(browser.open(path_of(draft, "apply")))
    assert "Changes only: the people that the file omits stay as they are" in page
    assert "nobody loses access" in browser.page
    assert covers(browser)
    browser.send(path_of(draft, "apply"))
    file = file_of(desk, reread(desk, draft).file_id)
    assert browser.path == f"/console/accounts/{file.account_id}/files/{file.id}"
    assert "From you" in text_of(browser)
    done = desk.work(file)
    assert (done.state, done.counts["created"]) == ("done", dry.counts["created"])
    assert covers(browser.open(browser.path))


def test_the_numbers_of_a_dry_run_open_their_rows(desk: Desk, sign_in: SignIn) -> None:
    desk.load(csv_of(row(n) for n in range(30)))
    desk.load(csv_of([row(90)]), plan=1)
    changed = [row(n, zipcode="59718") for n in range(3)]
    ended = [row(n, expiry_date="2026-11-25") for n in range(3, 5)]
    others = [row(90), row(91), row(92) | {"zipcode": "nonsense"}]
    content = csv_of([*changed, *ended, *others], (*COLUMNS, "expiry_date"))
    draft = ready(desk, content)
    browser = sign_in(Role.EDITOR)
    dry = run(desk, browser, draft)
    page = text_of(browser)
    for words in (
        "2 would lose access",
        "1 would be created",
        "5 would be changed",
        "1 would move here",
        "1 refused",
    ):
        assert words in page, (words, page)
    file = f"/console/accounts/{dry.account_id}/files/{dry.id}/rows?list="
    lost = text_of(browser.open(file + "lost"))
    assert "2026-01-01 to " in lost or "2026-11-25" in lost
    assert "expiry_date" in lost
    assert "zipcode" in text_of(browser.open(file + "updated"))
    assert "R. S. · 1980" in text_of(browser.open(file + "moved"))
    assert "59718" not in browser.open(file + "updated").page
    apply_page = browser.open(path_of(draft, "apply")).page
    assert "Apply: 2 people lose access" in apply_page


def test_a_dry_run_that_would_be_held_says_so_and_so_does_the_button(
    desk: Desk, sign_in: SignIn
) -> None:
    desk.load(csv_of(row(n) for n in range(100)))
    draft = ready(desk, csv_of(row(n) for n in range(40)), FileMode.FULL)
    browser = sign_in(Role.EDITOR)
    dry = run(desk, browser, draft)
    page = text_of(browser)
    assert dry.needs_approval
    assert "it would be held: 60 people would lose access" in page
    assert "The applied file meets the same brake" in page
    page = text_of(browser.open(path_of(draft, "apply")))
    assert "Everyone in this plan: the people that the file omits are ended" in page
    assert "It will be held: 60 people would lose access." in page
    browser.send(path_of(draft, "apply"))
    held = desk.work(file_of(desk, reread(desk, draft).file_id))
    assert held.state == "held"
    assert "Held: 60 people would lose access" in text_of(browser.open(browser.path))
    assert set(desk.ends().values()) == {None}


def test_each_number_and_each_fault_says_what_it_is_about(desk: Desk, sign_in: SignIn) -> None:
    columns = (*COLUMNS, "expiry_date", "status")
    mapping = {"end": [{"column": "status", "equals": "gone"}]}
    bad = row(1, dob="9.9.80", effective_date="1.1.26", expiry_date="2.1.26")
    lines = [bad, row(2), row(3, status="gone")]
    draft = begin(desk, csv_of(lines, columns))
    draft = take(desk, draft, steps.set_mapping, mapping=mapping)
    browser = sign_in(Role.EDITOR)
    dry = run(desk, browser, draft)
    page = text_of(browser)
    assert dry.counts == {"created": 1, "refused": 1, "skipped": 1, "warned": 1}
    assert "not_a_date in dob, effective_date, expiry_date" in page
    assert "choose their order beside their column" in page
    assert "nothing_to_end in external_id, a warning: the row would not be refused" in page
    rows = f"/console/accounts/{dry.account_id}/files/{dry.id}/rows?"
    listed = text_of(browser.open(rows + "list=created"))
    assert "a new person covered" in listed
    assert "Find the row in your file by its number." in listed
    faults = text_of(browser.open(rows + "code=not_a_date"))
    assert faults.count("must be a real date") == 1
    assert "dob, effective_date, expiry_date: must be a real date" in faults


def test_a_dry_run_is_ticked_once_it_has_ended_well_and_applied_if_it_does_something(
    desk: Desk, sign_in: SignIn
) -> None:
    draft = ready(desk, csv_of([row(1, dob="never")]))
    path = path_of(draft, "dry-run")
    browser = sign_in(Role.EDITOR).open(path).send(path)
    assert "Dry run ✓" not in text_of(browser)
    assert desk.work_on_any()
    page = text_of(browser.open(path))
    assert "1 row. Nothing was changed." in page
    assert "Dry run ✓" in page
    assert ("Go on: apply it" in page, "Apply it all the same" in page) == (False, True)


def test_a_dry_run_that_failed_needs_somebody_once(desk: Desk, sign_in: SignIn) -> None:
    mapping = {"columns": {"external_id": None}}
    draft = take(desk, begin(desk, csv_of([row(1)])), steps.set_mapping, mapping=mapping)
    browser = sign_in(Role.EDITOR)
    assert run(desk, browser, draft).state == "failed"
    assert "Dry run ✓" not in text_of(browser)
    files = f"/console/accounts/{draft.account_id}/files"
    assert text_of(browser.open(files)).count("census.csv") == 1
    assert "Dry run: failed" in text_of(sign_in(Role.VIEWER).open(files))


def test_it_is_applied_once_whoever_presses_how_often(desk: Desk, sign_in: SignIn) -> None:
    draft = ready(desk, csv_of(row(n) for n in range(5)))
    one = sign_in(Role.EDITOR)
    run(desk, one, draft)
    other = sign_in(Role.EDITOR, Role.APPROVER).open(path_of(draft, "apply"))
    one.open(path_of(draft, "apply"))
    form = one.form(path_of(draft, "apply"))
    paths = set()
    for browser, fields in ((one, form), (one, form), (other, other.form(path_of(draft, "apply")))):
        browser.post(path_of(draft, "apply"), fields)
        assert browser.status == 200
        paths.add(browser.path)
    paths.add(one.open(path_of(draft, "apply")).path)
    assert paths == {f"/console/accounts/{draft.account_id}/files/{reread(desk, draft).file_id}"}
    assert desk.count("eligibility_files") == 2  # the dry run and the applied one


def test_every_address_of_an_upload_leads_to_its_file_after_the_upload_is_deleted(
    desk: Desk, sign_in: SignIn, other_account: int
) -> None:
    draft = ready(desk, csv_of([row(1)]))
    browser = sign_in(Role.EDITOR)
    run(desk, browser, draft)
    form = browser.open(path_of(draft, "apply")).form(path_of(draft, "apply"))
    file = f"/console/accounts/{draft.account_id}/files/"
    path = apply(browser, draft).path
    assert path.startswith(file)
    assert desk.work_on_any()
    steps.delete_left_drafts(desk.db, desk.clock())
    assert desk.count("file_drafts") == 0
    for step in ("plan", "columns", "dry-run", "apply", "discard", ""):
        assert browser.open(path_of(draft, step).rstrip("/")).path == path
    assert browser.post(path_of(draft, "apply"), form).path == path
    assert desk.count("eligibility_files") == 2
    stranger = sign_in(Role.EDITOR, Role.VIEWER, account_id=other_account)
    theirs = f"/console/accounts/{other_account}/uploads/{draft.id}/apply"
    assert stranger.open(theirs).status == 404


def test_nothing_is_applied_without_a_dry_run_of_the_same_columns(
    desk: Desk, sign_in: SignIn
) -> None:
    draft = begin(desk, csv_of([row(1)]))
    browser = sign_in(Role.EDITOR)
    for step in ("dry-run", "apply"):
        assert browser.open(path_of(draft, step)).path == path_of(draft)
    draft = take(desk, draft, steps.set_mapping, mapping={})
    assert browser.open(path_of(draft, "apply")).path == path_of(draft, "dry-run")
    run(desk, browser, draft)
    browser.open(path_of(draft, "apply"))
    form = browser.form(path_of(draft, "apply"))
    take(desk, reread(desk, draft), steps.set_mapping, mapping={"clear": "nothing"})
    browser.post(path_of(draft, "apply"), form)
    assert (browser.status, "changed meanwhile" in browser.page) == (409, True)
    assert "Begin the dry run" in browser.page
    path = path_of(draft, "dry-run")
    browser.send(path)
    form = {"token": form["token"], "version": str(reread(desk, draft).version)}
    browser.post(path, form)
    assert (browser.status, "The dry run is under way. Let it end first." in browser.page) == (
        409,
        True,
    )
    browser.post(path_of(draft, "apply"), form)
    assert (browser.status, "Let a dry run end first" in browser.page) == (409, True)
    assert desk.members() == {}


def test_a_dry_run_that_failed_or_was_cancelled_says_how_to_go_on(
    desk: Desk, sign_in: SignIn
) -> None:
    mapping = {"columns": {"external_id": None}}
    draft = take(desk, begin(desk, csv_of([row(1)])), steps.set_mapping, mapping=mapping)
    browser = sign_in(Role.EDITOR)
    dry = run(desk, browser, draft)
    page = text_of(browser)
    assert dry.state == "failed"
    assert "Dry run: failed" in page
    assert "No column of a CSV holds the external_id" in page or "external_id" in page
    assert "Back to the columns" in page
    assert "Begin it again" not in page  # it can only fail again
    assert browser.open(path_of(draft, "apply")).path == path_of(draft, "dry-run")
    take(desk, reread(desk, draft), steps.set_mapping, mapping={})
    path = path_of(draft, "dry-run")
    browser.open(path).send(path)
    waiting = file_of(desk, reread(desk, draft).dry_run_id)
    browser.send(f"/console/accounts/{draft.account_id}/files/{waiting.id}/cancel")
    assert "Dry run: cancelled" in text_of(browser)
    page = text_of(browser.open(path))
    assert "It was cancelled. Nothing was changed." in page
    assert "Begin it again" in page
    run(desk, browser, draft)
    assert "1 would be created" in text_of(browser)


def test_a_page_of_a_dry_run_is_fetched_anew_only_if_it_has_changed(
    desk: Desk, sign_in: SignIn
) -> None:
    draft = ready(desk, csv_of([row(1)]))
    path = path_of(draft, "dry-run")
    browser = sign_in(Role.EDITOR).open(path).send(path)
    browser.open(path)
    tag = browser.answer.headers["etag"]
    again = {"If-None-Match": tag, "X-Frontdesk-Refresh": "timer"}
    assert browser.open(path, **again).status == 304
    assert desk.work_on_any()
    assert browser.open(path, **again).status == 200


def test_who_handed_the_upload_in_does_not_approve_it(
    desk: Desk, sign_in: SignIn, db: Database, customer: Customer, clock: SetClock
) -> None:
    with db.write() as tx:
        set_file_settings(tx, customer.account_id, second_approver=True)
    both = sign_in(Role.EDITOR, Role.APPROVER)
    approver = sign_in(Role.APPROVER)
    desk.load(csv_of(row(n) for n in range(100)))
    draft = ready(desk, csv_of(row(n) for n in range(40)), FileMode.FULL)
    run(desk, both, draft)
    apply(both, draft)
    held = desk.work(file_of(desk, reread(desk, draft).file_id))
    assert held.state == "held"
    assert held.client.startswith("user:")
    path = f"/console/accounts/{held.account_id}/files/{held.id}"
    page = text_of(both.open(path))
    assert "The client, user or operator that handed the file in can't approve it." in page
    form = {"token": both.form("/console/sign-out")["token"], "version": f"held-{held.epoch}"}
    both.post(path + "/approve", form)
    assert (both.status, desk.reread(held).state) == (409, "held") or both.status == 403
    assert desk.reread(held).state == "held"
    assert "Ana Ruiz" in approver.open(path).page


@pytest.mark.parametrize("role", [Role.VIEWER, Role.APPROVER, Role.ADMIN, Role.SUPPORT])
def test_an_upload_is_for_editors(desk: Desk, sign_in: SignIn, role: Role) -> None:
    draft = ready(desk, csv_of([row(1)]))
    browser = sign_in(role)
    token = browser.open("/console/me").form("/console/me")["token"]
    for step in ("columns", "dry-run", "apply"):
        assert browser.open(path_of(draft, step)).status == 403
        browser.post(path_of(draft, step), {"token": token, "version": str(draft.version)})
        assert (browser.status, "It is for: editor." in browser.page) == (403, True)
    assert reread(desk, draft) == draft
