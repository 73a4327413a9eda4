"""An upload's first half: the form with a file as it streams, the drafts that wait for a step, the
plan, and the end of a draft.
"""

import re
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from frontdesk.console import uploads as console_uploads
from frontdesk.db import Database, Tx
from frontdesk.files.drafts import unfinished_drafts
from frontdesk.files.drafts.steps import (
    DraftKey,
    NewDraft,
    apply,
    begin_draft,
    count_drafts,
    delete_left_drafts,
    dry_run,
    set_mapping,
    set_plan_and_mode,
)
from frontdesk.files.drafts.store import change_draft, content_part, list_drafts
from frontdesk.files.model import Draft
from frontdesk.formats.model import FileMode
from frontdesk.reach import Reach
from frontdesk.users.model import Role
from frontdesk.users.store import change_user, delete_sessions, role_times
from frontdesk.web.multipart import FormWithFile
from frontdesk.web.uploading import store_content
from tests.conftest import SetClock
from tests.console.browsing import Browser, section, text_of
from tests.console.conftest import SignIn
from tests.console.sending import END, TYPE, field, file, post_body, send_file
from tests.factories import NOW, Customer
from tests.files.loading import Desk, csv_of, row

CENSUS = csv_of([row(1), row(2)])


@pytest.fixture
def uploads(customer: Customer) -> str:
    return f"/console/accounts/{customer.account_id}/uploads"


@pytest.fixture
def editor(sign_in: SignIn, uploads: str) -> Browser:
    return sign_in(Role.EDITOR).open(uploads)


@pytest.fixture
def drafts(db: Database, customer: Customer) -> Callable[[], list[int]]:
    """The ids of what is stored of uploads, also of one that is arriving."""
    return lambda: db.ask(lambda tx: unfinished_drafts(tx, customer.account_id))


def test_a_file_becomes_a_draft_and_leads_to_its_plan(
    editor: Browser, uploads: str, db: Database, customer: Customer
) -> None:
    send_file(editor, uploads, CENSUS)
    assert re.fullmatch(rf"{uploads}/\d+/plan", editor.path)
    assert "<h1><bdi>census.csv</bdi></h1>" in editor.page
    [draft] = db.ask(lambda tx: list_drafts(tx, customer.account_id))
    assert (draft.file_name, draft.size_bytes, draft.client) == (
        "census.csv",
        len(CENSUS),
        "user:1",
    )
    assert draft.sha256 is not None


def test_the_form_asks_for_the_token_before_the_file(
    editor: Browser, uploads: str, drafts: Callable[[], list[int]]
) -> None:
    token = editor.form(uploads)["token"]
    late = file(CENSUS) + field("token", token) + END
    much_later = file(CENSUS * 9_000) + field("token", token) + END
    wrong = field("token", "0" * 64) + file(CENSUS) + END
    without = file(CENSUS) + END
    for body in (late, much_later, wrong, without):
        post_body(editor, uploads, body)
        assert (editor.status, "Nothing was changed" in editor.page) == (403, True)
    assert drafts() == []


def test_nothing_of_a_file_is_looked_at_for_a_stranger_or_a_viewer(
    editor: Browser,
    sign_in: SignIn,
    uploads: str,
    other_account: int,
    drafts: Callable[[], list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look(*_: Any, **__: Any) -> Any:
        raise AssertionError("the file was looked at")

    monkeypatch.setattr("frontdesk.console.uploads._store", look)
    token = editor.form(uploads)["token"]
    body = field("token", token) + file(CENSUS) + END
    editor.headers["Sec-Fetch-Site"] = "cross-site"
    assert post_body(editor, uploads, body).status == 403
    editor.headers["Sec-Fetch-Site"] = "same-origin"
    elsewhere = f"/console/accounts/{other_account}/uploads"
    assert post_body(editor, elsewhere, body).status == 404
    for role in (Role.VIEWER, Role.APPROVER, Role.ADMIN):
        other = sign_in(role).open("/console/me")
        own = field("token", other.form("/console/me")["token"])
        post_body(other, uploads, own + file(CENSUS) + END)
        assert (other.status, "It is for: editor" in other.page) == (403, True)
    assert drafts() == []


def test_the_rest_of_a_refused_file_is_read_so_that_browsers_show_the_answer(
    editor: Browser, uploads: str, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    async def skip_rest(form: FormWithFile, *, is_signed_in: bool) -> None:
        read.append((form.file_name, is_signed_in))

    monkeypatch.setattr(FormWithFile, "skip_rest", skip_rest)
    send_file(editor, uploads, CENSUS, token="0" * 64)
    send_file(editor.open(uploads), uploads, b"%PDF-1.7 scan")
    clock.advance(31 * 60)
    send_file(editor, uploads, CENSUS)
    assert editor.status == 401
    assert read == [("census.csv", True), ("census.csv", True), ("census.csv", False)]


def test_a_session_that_ended_carries_what_was_typed_and_the_file_is_chosen_again(
    editor: Browser, uploads: str, drafts: Callable[[], list[int]], clock: SetClock
) -> None:
    clock.advance(31 * 60)
    send_file(editor, uploads, CENSUS, encoding="cp1252")
    assert (editor.status, "Nothing was done" in editor.page) == (401, True)
    assert editor.form("/console/sign-in")["carried.encoding"] == "cp1252"
    assert drafts() == []


def test_the_form_that_was_carried_leads_back_to_the_chooser(
    sign_in: SignIn, uploads: str, drafts: Callable[[], list[int]]
) -> None:
    """`Send it now` has no file: browsers fill none in."""
    editor = sign_in(Role.EDITOR).open(uploads)
    carried = {"token": editor.form(uploads)["token"], "encoding": "cp1252"}
    editor.post(uploads, carried)
    assert (editor.status, "Choose a file." in editor.page) == (422, True)
    assert editor.form(uploads)["encoding"] == "cp1252"
    assert drafts() == []


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b"", 422, "The file is empty. Nothing was stored."),
        (b"%PDF-1.7 scan", 415, "looks like PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 600, 415, "older Excel workbook"),
        (b"<html><table>", 415, "web page"),
    ],
)
def test_a_file_that_cant_be_read_is_refused_before_it_is_stored(
    editor: Browser, drafts: Callable[[], list[int]], content: bytes, status: int, says: str
) -> None:
    uploads = editor.path
    for name in ("census.xls", ""):
        send_file(editor, uploads, content, name)
        assert (editor.status, says in editor.page) == (status, True)
        assert "Nothing was stored." in editor.page
        assert drafts() == []
    send_file(editor, uploads, CENSUS)
    assert len(drafts()) == 1


def test_an_encoding_is_one_that_is_offered(
    editor: Browser, uploads: str, db: Database, customer: Customer
) -> None:
    send_file(editor, uploads, CENSUS, encoding="klingon")
    assert (editor.status, "Choose an encoding of the list." in editor.page) == (422, True)
    text = csv_of([row(1, first_name="Ñandú")]).decode().encode("cp1252")
    send_file(editor, uploads, text, encoding="cp1252")
    [draft] = db.ask(lambda tx: list_drafts(tx, customer.account_id))
    assert draft.encoding == "cp1252"


def test_an_upload_that_breaks_off_leaves_nothing_and_says_so(
    editor: Browser, uploads: str, drafts: Callable[[], list[int]]
) -> None:
    token = field("token", editor.form(uploads)["token"])
    large = b"external_id,dob\r\n" + b"x,y\r\n" * 500_000
    post_body(editor, uploads, token + file(large))
    assert editor.status == 400
    assert "The upload broke off. Nothing was stored: choose the file again." in editor.page
    assert drafts() == []
    for rest in (file(CENSUS), field("token", "late")):
        editor.open(uploads)
        post_body(editor, uploads, token + file(large) + rest + END)
        assert (editor.status, "A form takes one file" in editor.page) == (400, True)
        assert "Nothing was stored." in editor.page
        assert drafts() == []


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"x" * 200, TYPE, 400),
        (b"x" * 200, "multipart/form-data", 400),
        (field("note", "x" * 100_000), TYPE, 413),
        (b"".join(field(f"f{n}", "") for n in range(1000)), TYPE, 413),
        (b"token=1", "text/plain", 400),
    ],
)
def test_a_body_that_no_browser_sends_is_a_page_that_says_so(
    editor: Browser, uploads: str, body: bytes, content_type: str, status: int
) -> None:
    post_body(editor, uploads, body, content_type)
    assert (editor.status, "Request " in editor.page) == (status, True)


def test_an_account_has_twenty_uploads_and_so_many_bytes(
    editor: Browser, uploads: str, drafts: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.drafts.steps.MOST_DRAFTS", 1)
    send_file(editor, uploads, CENSUS)
    send_file(editor.open(uploads), uploads, CENSUS)
    assert (editor.status, "discard one" in editor.page) == (429, True)
    assert len(drafts()) == 1
    monkeypatch.setattr("frontdesk.files.drafts.steps.MOST_DRAFTS", 9)
    monkeypatch.setattr("frontdesk.files.drafts.steps.MOST_BYTES", len(CENSUS) + 10)
    send_file(editor.open(uploads), uploads, CENSUS)
    assert (editor.status, "bytes together: discard one" in editor.page) == (413, True)
    assert len(drafts()) == 1


def test_an_upload_that_was_ended_while_it_stood_still_says_so(
    editor: Browser,
    uploads: str,
    db: Database,
    clock: SetClock,
    customer: Customer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = store_content
    arriving = []

    async def stand_still(app: Any, content: Any, pieces: Any, finish: Any) -> Any:
        count = db.ask(lambda tx: count_drafts(tx, customer.account_id, now=clock())).arriving
        arriving.append(count)
        clock.advance(11 * 60)
        delete_left_drafts(db, clock())
        return await store(app, content, pieces, finish)

    monkeypatch.setattr(console_uploads, "store_content", stand_still)
    send_file(editor, uploads, CENSUS)
    assert arriving == [1]
    assert (editor.status, "stood still for over 10 minutes" in editor.page) == (409, True)
    assert "Nothing was stored." in editor.page


def test_uploads_that_arrive_or_broke_off_are_counted_on_the_page(
    editor: Browser, uploads: str, desk: Desk, clock: SetClock
) -> None:
    with desk.db.write() as tx:
        begin_draft(tx, NewDraft(desk.customer.account_id), desk.requester())
    words = "Arriving now: 1. An upload that broke off ends 10 minutes after its last part."
    assert words in text_of(editor.open(uploads))
    clock.advance(11 * 60)
    assert "Arriving now" not in editor.open(uploads).page


def test_an_upload_that_was_discarded_or_applied_makes_room_at_once(
    editor: Browser,
    uploads: str,
    desk: Desk,
    db: Database,
    customer: Customer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("frontdesk.files.drafts.steps.MOST_DRAFTS", 1)
    monkeypatch.setattr("frontdesk.files.drafts.steps.MOST_BYTES", len(CENSUS) + 10)
    for end in ("discarded", "applied", "open"):
        send_file(editor.open(uploads), uploads, CENSUS)
        assert editor.status == 200, editor.page
        draft = db.ask(lambda tx: list_drafts(tx, customer.account_id))[-1]
        if end == "discarded":
            editor.send(f"{uploads}/{draft.id}/discard")
        elif end == "applied":
            apply_draft(desk, draft)
    assert send_file(editor.open(uploads), uploads, CENSUS).status == 429


@pytest.fixture
def while_it_arrives(db: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has this done, in a transaction, when an upload's first bytes are read."""

    def do(work: Callable[[Tx], object]) -> None:
        read_start = console_uploads._read_start

        async def work_and_read(pieces: Any) -> bytes:
            with db.write() as tx:
                work(tx)
            return await read_start(pieces)

        monkeypatch.setattr(console_uploads, "_read_start", work_and_read)

    return do


def test_a_user_who_is_ended_while_a_file_arrives_leaves_nothing(
    editor: Browser,
    uploads: str,
    drafts: Callable[[], list[int]],
    while_it_arrives: Callable[..., None],
) -> None:
    while_it_arrives(lambda tx: delete_sessions(tx, 1))
    send_file(editor, uploads, CENSUS)
    assert (editor.status, "Your session has ended. Nothing was done." in editor.page) == (
        401,
        True,
    )
    assert drafts() == []


def test_a_role_that_is_taken_while_a_file_arrives_leaves_nothing(
    editor: Browser,
    uploads: str,
    drafts: Callable[[], list[int]],
    while_it_arrives: Callable[..., None],
) -> None:
    """Another role ends the sessions; one that lives on would have to have the right all the same."""
    while_it_arrives(lambda tx: change_user(tx, 1, roles=role_times({Role.VIEWER: NOW})))
    send_file(editor, uploads, CENSUS)
    assert (editor.status, "It is for: editor" in editor.page) == (403, True)
    assert drafts() == []


def test_more_uploads_at_once_than_the_api_takes_are_refused(
    editor: Browser, uploads: str, drafts: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.deadlines.OPEN_UPLOADS", 0)
    send_file(editor, uploads, CENSUS)
    assert (editor.status, "open uploads" in editor.page) == (429, True)
    assert drafts() == []


def test_the_content_is_stored_as_it_came(
    editor: Browser, uploads: str, db: Database, customer: Customer
) -> None:
    large = b"external_id,dob\r\n" + b"x,y\r\n--\r\n" * 400_000
    send_file(editor, uploads, large, "C:\\hr\\..\\census\x00.csv")
    [draft] = db.ask(lambda tx: list_drafts(tx, customer.account_id))
    part = db.ask(lambda tx: content_part(tx, draft.id, 0))
    assert part is not None
    assert zlib.decompress(part) == large
    assert draft.file_name == "census.csv"


def open_draft(db: Database, customer: Customer) -> Draft:
    [draft] = db.ask(lambda tx: list_drafts(tx, customer.account_id))
    return draft


def test_a_plan_and_a_mode_are_chosen_and_neither_has_a_default(
    editor: Browser, uploads: str, db: Database, customer: Customer
) -> None:
    send_file(editor, uploads, CENSUS)
    draft = open_draft(db, customer)
    path = f"{uploads}/{draft.id}/plan"
    form = editor.form(path)
    assert "plan" not in form
    assert "mode" not in form
    plan = str(customer.plan_ids[1])
    for fields, says in (
        ({}, "Choose the plan of the file."),
        ({"plan": "²"}, "Choose the plan of the file."),
        ({"plan": plan}, "changes only, or everyone in the plan"),
        ({"plan": plan, "mode": "compare"}, "changes only, or everyone in the plan"),
    ):
        editor.send(path, **fields)
        assert (editor.status, says in editor.page) == (422, True)
    assert editor.form(path)["plan"] == plan
    assert open_draft(db, customer).version == draft.version
    editor.send(path, plan=plan, mode="full")
    assert editor.path == f"{uploads}/{draft.id}/columns"
    changed = open_draft(db, customer)
    assert (changed.plan_id, changed.mode) == (customer.plan_ids[1], "full")
    form = editor.open(path).form(path)
    assert (form["plan"], form["mode"]) == (plan, "full")
    editor.open(f"{uploads}/{draft.id}")
    assert editor.path == f"{uploads}/{draft.id}/columns"


def test_another_accounts_plan_is_an_unknown_one(
    editor: Browser, uploads: str, db: Database, customer: Customer, other: Desk
) -> None:
    send_file(editor, uploads, CENSUS)
    draft = open_draft(db, customer)
    path = f"{uploads}/{draft.id}/plan"
    answers = []
    for plan in (other.customer.plan_ids[0], 999_999, 10**17):
        editor.open(path).send(path, plan=str(plan), mode="change")
        answers.append((editor.status, re.sub(r"Request [0-9a-f]+", "", editor.page)))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] == 404
    assert open_draft(db, customer) == draft


def test_another_accounts_upload_is_an_unknown_one(
    editor: Browser,
    sign_in: SignIn,
    uploads: str,
    other_account: int,
    drafts: Callable[[], list[int]],
) -> None:
    send_file(editor, uploads, CENSUS)
    [draft_id] = drafts()
    token = {"token": editor.form(f"{uploads}/{draft_id}/plan")["token"], "version": "1"}
    theirs = f"/console/accounts/{other_account}/uploads"
    for base, number in ((theirs, draft_id), (theirs, 999_999), (uploads, 10**17), (uploads, "x")):
        for step in ("", "/plan"):
            assert editor.open(f"{base}/{number}{step}").status == 404
        for step in ("/plan", "/discard"):
            assert editor.post(f"{base}/{number}{step}", token).status == 404
    support = sign_in(Role.OPERATOR)
    assert support.open(f"{uploads}/{draft_id}").status == 403
    assert drafts() == [draft_id]


def test_two_windows_do_not_undo_each_others_steps(
    editor: Browser, uploads: str, db: Database, customer: Customer
) -> None:
    send_file(editor, uploads, CENSUS)
    draft = open_draft(db, customer)
    path = f"{uploads}/{draft.id}/plan"
    stale = editor.form(path) | {"plan": str(customer.plan_ids[0]), "mode": "change"}
    editor.send(path, plan=str(customer.plan_ids[1]), mode="full")
    for late, version in ((path, stale["version"]), (path, ""), (path, "x"), (path, "9" * 19)):
        editor.post(late, stale | {"version": version})
        assert (editor.status, "maybe in another window" in editor.page) == (409, True)
    editor.post(f"{uploads}/{draft.id}/discard", stale)
    assert (editor.status, "maybe in another window" in editor.page) == (409, True)
    now = open_draft(db, customer)
    assert (now.plan_id, now.mode) == (customer.plan_ids[1], "full")
    # The page is the draft as it is now: what it sends counts.
    assert editor.form(path)["version"] == str(now.version)


def test_an_upload_is_discarded_and_an_old_one_is_gone(
    editor: Browser,
    uploads: str,
    db: Database,
    customer: Customer,
    clock: SetClock,
    sign_in: SignIn,
) -> None:
    send_file(editor, uploads, CENSUS)
    draft = open_draft(db, customer)
    editor.send(f"{uploads}/{draft.id}/discard")
    assert editor.path == uploads
    assert "No upload waits for a step." in editor.page
    assert editor.open(f"{uploads}/{draft.id}/plan").status == 404
    delete_left_drafts(db, clock())
    send_file(editor.open(uploads), uploads, CENSUS)
    kept = open_draft(db, customer)
    clock.advance(25 * 3600)
    editor = sign_in(Role.EDITOR, Role.APPROVER).open(uploads)
    assert "No upload waits for a step." in editor.page
    assert editor.open(f"{uploads}/{kept.id}").status == 404


def test_back_after_the_end_of_an_upload_says_so(
    editor: Browser, sign_in: SignIn, uploads: str, desk: Desk, other_account: int
) -> None:
    send_file(editor, uploads, CENSUS)
    draft = open_draft(desk.db, desk.customer)
    path = f"{uploads}/{draft.id}"
    form = editor.form(f"{path}/discard")
    editor.send(f"{path}/discard")
    pages = []
    for is_deleted in (False, True):
        if is_deleted:
            delete_left_drafts(desk.db, desk.clock())
        for step in ("", "/plan", "/columns", "/dry-run", "/apply"):
            editor.open(path + step)
            assert "it was discarded, or over 24 hours have passed" in text_of(editor)
            assert f'href="{uploads}"' in editor.page
            pages.append(editor.page)
        for step in ("/plan", "/discard", "/columns", "/columns/text", "/dry-run", "/apply"):
            editor.post(
                path + step, form | {"plan": str(desk.customer.plan_ids[0]), "mode": "full"}
            )
            assert (editor.status, "no such upload any more" in editor.page) == (404, True)
    assert len(set(pages)) == 1
    stranger = sign_in(Role.EDITOR, Role.VIEWER, account_id=other_account)
    theirs = f"/console/accounts/{other_account}/uploads/{draft.id}"
    unknown = stranger.open(f"/console/accounts/{other_account}/uploads/999").page
    assert stranger.open(theirs).page == unknown


def test_an_applied_upload_leads_to_its_file_and_takes_no_step(
    editor: Browser, uploads: str, db: Database, customer: Customer, desk: Desk, clock: SetClock
) -> None:
    send_file(editor, uploads, CENSUS)
    draft = open_draft(db, customer)
    path = f"{uploads}/{draft.id}/plan"
    stale = editor.form(path) | {"plan": str(customer.plan_ids[0]), "mode": "change"}
    apply_draft(desk, draft)
    files = f"/console/accounts/{customer.account_id}/files"
    applied = open_draft(db, customer)
    for address in (f"{uploads}/{draft.id}", path):
        assert editor.open(address).path == f"{files}/{applied.file_id}"
    for address in (path, f"{uploads}/{draft.id}/discard"):
        editor.post(address, stale)
        assert (editor.status, f"applied, as file {applied.file_id}" in editor.page) == (409, True)
        assert f'href="{files}/{applied.file_id}"' in editor.page
    assert "No upload waits for a step." in editor.open(uploads).page


def apply_draft(desk: Desk, draft: Draft) -> None:
    """Take every step of the draft, as its pages do."""
    requester = desk.requester()
    reach = Reach.of(draft.account_id)

    def take(step: Callable[..., Any], version: int, **values: Any) -> Any:
        key = DraftKey(draft.id, version)
        with desk.db.write() as tx:
            return step(tx, key, reach, requester, **values)

    plan_id = desk.customer.plan_ids[0]
    take(set_plan_and_mode, 2, plan_id=plan_id, mode=FileMode.CHANGE)
    take(set_mapping, 3, mapping={})
    _, file = take(dry_run, 4)
    desk.work(file)
    take(apply, 5)


def test_the_list_of_files_has_the_chooser_and_the_drafts_for_editors(
    editor: Browser,
    sign_in: SignIn,
    uploads: str,
    customer: Customer,
    clock: SetClock,
    db: Database,
) -> None:
    files = f"/console/accounts/{customer.account_id}/files"
    assert "No files yet. Drop one here" in editor.open(files).page
    send_file(editor, uploads, CENSUS)
    clock.advance(20 * 60)
    needs = section(editor.open(files), "Needs you")
    assert "◔ Draft: say its plan census.csv you not applied yet 20 min" in needs
    draft = open_draft(db, customer)
    assert f'href="{uploads}/{draft.id}/plan"' in editor.page
    key = DraftKey(draft.id, draft.version)
    for changes, words in (
        ({"plan_id": customer.plan_ids[0], "mode": "change"}, "look at its columns"),
        ({"suggestion": {"questions": [1]}}, "1 question is open"),
        ({"suggestion": {"questions": [1, 2]}}, "2 questions are open"),
        ({"mapping": {}}, "start the dry run"),
        ({"dry_run_id": 1}, "look at the dry run"),
    ):
        with db.write() as tx:
            changed = change_draft(tx, *key, **changes)
        assert changed is not None
        key = DraftKey(draft.id, changed.version)
        assert f"Draft: {words} census.csv" in section(editor.open(files), "Needs you")
        assert words in section(editor.open(uploads), "Not applied yet")
    for role in (Role.VIEWER, Role.APPROVER, Role.SUPPORT):
        other = sign_in(role).open(files)
        assert "census.csv" not in other.page
        assert "Choose a file" not in other.page
        assert "No files yet. Send one by POST (API)." in other.page
        assert other.open(uploads).status == 403
