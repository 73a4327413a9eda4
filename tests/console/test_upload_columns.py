"""The columns of an upload: what is suggested, what a person chooses, and what is wrong with it."""

import json
import re
from functools import partial
from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.console import upload_columns
from frontdesk.db import Tx
from frontdesk.errors import Unavailable
from frontdesk.files import actions, list_mappings, store
from frontdesk.files.drafts import steps
from frontdesk.files.model import Draft, MappingName, StoredMapping, WrongState
from frontdesk.formats.model import FileMode
from frontdesk.mapping.parser import parse_mapping
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.browsing import text_of
from tests.console.conftest import SignIn
from tests.console.drafted import (
    ENDS,
    HEADER,
    MARK,
    begin,
    census,
    choose,
    covers,
    path_of,
    reread,
    take,
)
from tests.files.loading import Desk, csv_of, lines_of, row
from tests.formats.reading import MEMBER, file_834
from tests.formats.workbooks import workbook

# The selects of these columns.
ID = "c0"
LAST = "c1"
BIRTH = "c3"
COST = "c8"
PAGE_BYTES = 100_000


def mapping_of(desk: Desk, draft: Draft) -> dict[str, Any]:
    mapping = reread(desk, draft).mapping
    assert mapping is not None
    return mapping


def test_the_first_visit_suggests_a_field_for_each_column(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, census(without_zip=3))
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    page = text_of(browser)
    assert browser.status == 200
    assert "Columns of census.csv" in page
    assert "Of its 21 rows 17 are good. 1 is left out" in page
    assert "3 lack zipcode: choose a column for it, or ask the sender." in page
    assert "Birth Date 95 % 99/99/9999" in page
    assert "month first: 03/04/1980 is March 4" in page
    assert "▲ Status 95 % 2 words" in page
    assert 'Ends the members of rows with "terminated" (5 of the rows' in page
    form = browser.form(path_of(draft))
    assert [form.get(name) for name in (ID, LAST, BIRTH)] == ["external_id", "last_name", "dob"]
    assert (form["d3"], "q7" in form, "not used" in page) == ("month", False, True)
    assert covers(browser)


def test_one_row_is_counted_as_one(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, csv_of([row(1)]))
    page = text_of(sign_in(Role.EDITOR).open(path_of(draft)))
    assert "Of its 1 row 1 is good." in page


def test_a_look_is_no_step(desk: Desk, sign_in: SignIn, clock: SetClock) -> None:
    draft = begin(desk, census())
    clock.advance(60)
    browser = sign_in(Role.EDITOR)
    for _ in range(2):
        browser.open(path_of(draft))
    found = reread(desk, draft)
    assert found.suggestion is not None
    assert (found.version, found.changed_at) == (draft.version, draft.changed_at)


def test_the_choices_become_the_mapping_and_begin_the_dry_run(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, census())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    choose(browser, draft, d3="day", c8="payor_name", **ENDS)
    assert (browser.status, browser.path) == (200, path_of(draft, "dry-run"))
    mapping = mapping_of(desk, draft)
    assert mapping["fields"]["dob"]["dates"] == ["DD/MM/YYYY"]
    assert mapping["fields"]["effective_date"]["dates"] == ["MM/DD/YYYY"]
    assert mapping["columns"]["Cost Center"] == "payor_name"
    assert mapping["end"] == [{"column": "Status", "equals": ["terminated"]}]
    parse_mapping(mapping)
    form = browser.open(path_of(draft)).form(path_of(draft))
    assert [form[name] for name in ("d3", "d6", COST, "q7")] == ["day", "month", "payor_name", "0"]
    choose(browser, draft, q7="1", c8="")
    mapping = mapping_of(desk, draft)
    assert ("end" in mapping, mapping["questions"]) == (False, {"Status": "unrelated"})
    assert mapping["columns"]["Cost Center"] is None
    assert covers(browser)


def test_what_is_wrong_stands_at_its_place_and_what_was_typed_stays(
    desk: Desk, sign_in: SignIn
) -> None:
    draft = begin(desk, census())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    choose(browser, draft, c8="last_name", d3="day")
    page = text_of(browser)
    assert browser.status == 422
    assert "last_name is also chosen for “Last Name”. Choose one column." in page
    assert "last_name is also chosen for “Cost Center”. Choose one column." in page
    assert "Answer this question: it says who has access." in page
    form = browser.form(path_of(draft))
    assert (form[COST], form[LAST], form["d3"]) == ("last_name", "last_name", "day")
    choose(browser, draft, c0="", c8="shoe size", **ENDS)
    page = text_of(browser)
    assert "Choose the column that holds the external_id" in page
    assert "There is no such field. Choose one of the list." in page
    assert "No column has member_id." in page
    found = reread(desk, draft)
    assert (found.mapping, found.version) == (None, draft.version)
    assert covers(browser)


def test_a_date_that_is_chosen_by_hand_has_its_order_beside_it(desk: Desk, sign_in: SignIn) -> None:
    header = "external_id,member_id,first_name,last_name,gender,zipcode,Fecha,Geburtsdatum"
    lines = [f"E{n},M{n},Robin,Sample {n},female,59718,{n}/4/2026,{n}.4.80" for n in range(1, 10)]
    draft = begin(desk, "\n".join([header, *lines, ""]).encode())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    assert "if it is a date, day first: 03/04/1980 is April 3" in text_of(browser)
    form = browser.form(path_of(draft))
    assert ("c6" in form, form["d6"], "d7" in form) == (False, "month", False)
    choose(browser, draft, c6="effective_date", d6="day", c7="dob")
    assert mapping_of(desk, draft)["fields"] == {
        "effective_date": {"column": "Fecha", "dates": ["DD/MM/YYYY"]},
        "dob": {"column": "Geburtsdatum", "dates": ["DD/MM/YYYY", "DD.MM.YY"], "pivot": 26},
    }
    assert desk.work_on_any()
    assert "9 would be created" in text_of(browser.open(path_of(draft, "dry-run")))
    assert browser.open(path_of(draft)).form(path_of(draft))["d6"] == "day"
    choose(browser, draft, d6="month")
    assert mapping_of(desk, draft)["fields"]["effective_date"]["dates"] == ["MM/DD/YYYY"]


def test_dates_of_a_saved_mapping_without_an_order_get_the_chosen_one(
    desk: Desk, sign_in: SignIn
) -> None:
    lines = [f"E{n},{n}/4/1980" for n in range(1, 10)]
    draft = begin(desk, "\n".join(["external_id,Fecha", *lines, ""]).encode())
    mapping = {"columns": {"Fecha": "dob"}}
    draft = take(desk, draft, steps.set_mapping, mapping=mapping)
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    choose(browser, draft, d1="day")
    rule = {"column": "Fecha", "dates": ["DD/MM/YYYY"]}
    assert mapping_of(desk, draft)["fields"] == {"dob": rule}


def test_a_field_that_no_column_has_is_said_and_may_lack(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, census(header="Employee ID,Last,First,Birth Date,Sex,Town,Start,State,X"))
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    assert "No column has zipcode. A new member needs it" in text_of(browser)
    choose(browser, draft, c7="", q7="1")
    assert browser.path == path_of(draft, "dry-run")


def test_two_windows_do_not_undo_each_other(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, census())
    one = sign_in(Role.EDITOR).open(path_of(draft))
    other = sign_in(Role.EDITOR, Role.APPROVER).open(path_of(draft))
    choose(one, draft, **ENDS)
    choose(other, draft, q7="1")
    assert (other.status, "changed meanwhile, maybe in another window" in other.page) == (409, True)
    assert other.form(path_of(draft))["q7"] == "0"
    assert "end" in mapping_of(desk, draft)
    for action in ("text", "saved"):
        fields = {"mapping": "{}", "saved": "x", "version": str(draft.version)}
        other.open(path_of(draft))
        token = other.form(path_of(draft))["token"]
        other.post(f"{path_of(draft)}/{action}", fields | {"token": token})
        assert other.status in (404, 409)
    assert "end" in mapping_of(desk, draft)


def test_the_rest_of_a_mapping_is_a_text_that_is_checked(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, census())
    text = path_of(draft) + "/text"
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    wrong = '{"fields": {"shoe": {}, "dob": {"column": "Birth Date", "dates": "nonsense"}}}'
    browser.send(text, mapping=wrong)
    page = text_of(browser)
    assert (browser.status, "fields.shoe" in page, "fields.dob.dates" in page) == (422, True, True)
    assert "nonsense" in browser.page  # what was typed
    for broken in ("{", "[]", '{"skip": 1, "skip": 2}'):
        browser.send(text, mapping=broken)
        assert (browser.status, "must be one JSON object" in browser.page) == (422, True)
    browser.send(text, mapping="x" * (upload_columns.LONGEST_MAPPING + 1))
    assert browser.status == 422
    mine = {
        "columns": {"employee id": "external_id", "Cost Center": "metadata.cost_center"},
        "fields": {"dob": {"column": "Birth Date", "dates": ["DD/MM/YYYY"]}},
        "end": [{"column": "Status", "equals": ["Gone"]}],
        "header_row": 3,
    }
    browser.send(text, mapping=json.dumps(mine))
    assert (browser.status, browser.path) == (200, path_of(draft))
    assert mapping_of(desk, draft) == mine
    assert "As the mapping says now, by rules of its own." in browser.page
    form = browser.form(path_of(draft))
    assert [form[name] for name in (ID, BIRTH, "d3", "q7")] == ["external_id", "dob", "day", "own"]
    choose(browser, draft)  # the form changes nothing that it does not show
    assert mapping_of(desk, draft) == mine


def test_a_mapping_is_saved_under_a_name_and_used_again(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, census())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    assert "Use a saved mapping" not in browser.page
    browser.send(path_of(draft), do="save_as", name="a name", **ENDS)
    assert (browser.status, "The name must have 1 to 64 letters" in browser.page) == (422, True)
    browser.send(path_of(draft), do="save_as", name="hr-export", **ENDS)
    assert (browser.path, "This mapping is saved as hr-export." in browser.page) == (
        path_of(draft),
        True,
    )
    key = MappingName(desk.customer.account_id, "hr-export")
    saved = desk.db.ask(lambda tx: actions.get_mapping(tx, key))
    assert saved.mapping == mapping_of(desk, draft)
    next_month = begin(desk, census(30))
    browser.open(path_of(next_month)).send(path_of(next_month) + "/saved", saved="hr-export")
    assert mapping_of(desk, next_month) == saved.mapping
    assert browser.form(path_of(next_month))["q7"] == "0"
    browser.send(path_of(next_month), do="save_as", name="hr-export", q7="1")
    assert "A mapping of this name is saved already." in browser.page
    assert desk.db.ask(lambda tx: actions.get_mapping(tx, key)) == saved
    browser.send(path_of(next_month), do="save_as", name="hr-export", q7="1", replace="yes")
    assert "end" not in desk.db.ask(lambda tx: actions.get_mapping(tx, key)).mapping


def test_a_name_that_another_window_takes_at_the_same_time_is_not_replaced(
    desk: Desk, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = MappingName(desk.customer.account_id, "hr-export")
    draft = begin(desk, census())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    with desk.db.write() as tx:
        actions.save_mapping(tx, key, {}, desk.requester(), default=False)
    looks = []

    def list_before_it(tx: Any, account_id: int) -> Any:
        looks.append(account_id)
        return [] if len(looks) == 1 else list_mappings(tx, account_id)

    monkeypatch.setattr(store, "list_mappings", list_before_it)
    browser.send(path_of(draft), do="save_as", name="hr-export", **ENDS)
    assert (browser.status, len(looks)) == (422, 2)
    assert "A mapping of this name is saved already." in browser.page
    assert desk.db.ask(lambda tx: actions.get_mapping(tx, key)).mapping == {}


def test_a_mapping_is_saved_without_the_end_of_its_dry_run(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, census())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    choose(browser, draft, **ENDS)
    assert desk.work_on_any()
    dry_run_id = reread(desk, draft).dry_run_id
    browser.open(path_of(draft)).send(path_of(draft), do="save_as", name="hr-export")
    assert "This mapping is saved as hr-export." in text_of(browser)
    assert (reread(desk, draft).dry_run_id, dry_run_id is None) == (dry_run_id, False)


def test_a_saved_mapping_that_somebody_has_deleted_is_said_so(desk: Desk, sign_in: SignIn) -> None:
    key = MappingName(desk.customer.account_id, "mine")
    with desk.db.write() as tx:
        actions.save_mapping(tx, key, {}, desk.requester(), default=True)
    draft = begin(desk, census())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    with desk.db.write() as tx:
        actions.delete_mapping(tx, key, desk.requester())
    browser.send(path_of(draft) + "/saved", saved="mine")
    assert browser.status == 404
    assert "There is no mapping of this name now. Nothing was changed." in text_of(browser)
    assert "Employee ID" in browser.page


def test_what_the_first_rows_lacked_is_not_said_of_a_field_that_is_chosen(
    desk: Desk, sign_in: SignIn
) -> None:
    draft = begin(desk, census(header=HEADER.replace("First Name", "Notes")))
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    assert "lack first_name: choose a column for it" in text_of(browser)
    choose(browser, draft, c2="first_name", **ENDS)
    page = text_of(browser.open(path_of(draft)))
    assert "By the suggestion, before your choices: Of its 21 rows" in page
    assert "lack first_name" not in page


def test_a_column_with_the_name_of_another_is_chosen_in_its_list(
    desk: Desk, sign_in: SignIn
) -> None:
    draft = begin(desk, census(header=HEADER.replace("Hire Date", "Birth Date")))
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    words = "Another column has this name. If this one holds a field of its own, choose it."
    assert words in text_of(browser)
    assert "{" not in text_of(browser).partition("Dry run of all rows")[0]


def test_a_file_that_nothing_is_suggested_for_says_what_to_do(
    desk: Desk, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = begin(desk, lines_of([row(1), row(2)]))
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    page = text_of(browser)
    assert "Of JSON, name the keys in `columns` of a mapping of your own." in page
    assert "If its columns have the names of our fields, nothing has to be said." in page
    browser.send(path_of(draft), do="dry_run")
    assert (browser.path, mapping_of(desk, draft)) == (path_of(draft, "dry-run"), {})
    dry_run_id = reread(desk, draft).dry_run_id
    assert dry_run_id is not None
    [found] = [desk.work_on_any()]
    assert found
    assert "2 would be created" in text_of(browser.open(path_of(draft, "dry-run")))

    def unavailable(*_: object, **__: object) -> None:
        raise Unavailable("ended early")

    other = begin(desk, census())
    monkeypatch.setattr(upload_columns, "suggest", unavailable)
    browser.open(path_of(other))
    assert (browser.status, "could not be looked at now" in browser.page) == (200, True)
    monkeypatch.undo()
    assert "Employee ID" in browser.open(path_of(other)).page


def test_a_file_in_another_encoding_is_uploaded_again_with_its_own(
    desk: Desk, sign_in: SignIn
) -> None:
    draft = begin(desk, csv_of([row(1, first_name="Zoë")]).decode().encode("cp1252"))
    page = text_of(browser := sign_in(Role.EDITOR).open(path_of(draft)))
    assert "Line 2 is not written in “UTF-8, or as its byte order mark says”." in page
    assert "is mostly in “Windows 1252: CSV of Excel on Windows”. Upload the file again" in page
    assert "Dry run of all rows" not in page
    assert f'href="/console/accounts/{draft.account_id}/uploads"' in browser.page


def test_a_table_without_a_header_says_that_a_line_with_names_is_added(
    desk: Desk, sign_in: SignIn
) -> None:
    draft = begin(desk, b"E1,Sample,Robin,1980-02-03\nE2,Other,Robin,1980-02-04\n")
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    page = text_of(browser)
    assert "Without one, add it above the first person, with names such as external_id" in page
    assert "Dry run of all rows" not in page
    browser.send(path_of(draft) + "/text", mapping='{"columns": {"E1": "external_id"}}')
    assert "Dry run of all rows" in browser.page


def test_one_suggestion_at_a_time_is_made_for_an_account(
    desk: Desk, sign_in: SignIn, app: App
) -> None:
    draft = begin(desk, census())
    browser = sign_in(Role.EDITOR)
    end = app.suggestions.begin(desk.customer.account_id)
    assert "Another" not in browser.open(path_of(draft)).page
    assert "The columns of another upload are being looked at." in browser.page
    end()
    assert "Employee ID" in browser.open(path_of(draft)).page


def test_an_834_asks_how_its_people_are_named(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, file_834(MEMBER).encode())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    page = text_of(browser)
    assert "What it does not say is how its sender names people" in page
    assert "is suggested" in page
    browser.send(path_of(draft), do="dry_run")
    assert browser.path == path_of(draft, "dry-run")
    assert "identify" in mapping_of(desk, draft)["834"]


@pytest.mark.parametrize("mapping", ['{"834": {"counts": "lenient"}}', "{}"])
def test_an_834_is_shown_by_a_mapping_that_names_nobody(
    desk: Desk, sign_in: SignIn, mapping: str
) -> None:
    draft = begin(desk, file_834(MEMBER).encode())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    browser.send(path_of(draft) + "/text", mapping=mapping)
    assert (browser.status, browser.path) == (200, path_of(draft))
    assert "What it does not say is how its sender names people." in text_of(browser)


def test_a_status_that_may_end_the_access_can_be_said_to_end_it(
    desk: Desk, sign_in: SignIn
) -> None:
    content = census().replace(b"Active", b"On Leave", 3)
    draft = begin(desk, content)
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    assert 'Ends those with "on leave" as well.' in text_of(browser)
    choose(browser, draft, q7="1")
    words = ["on leave", "terminated"]
    assert mapping_of(desk, draft)["end"] == [{"column": "Status", "equals": words}]
    assert browser.open(path_of(draft)).form(path_of(draft))["q7"] == "1"


def test_no_value_of_a_person_is_in_the_mapping_as_a_text(desk: Desk, sign_in: SignIn) -> None:
    header, *rows = census(header=f"{HEADER},Benefit Type").decode().splitlines()[2:-2]
    kinds = ("Medical", f"Dental: {MARK}last 1943-03-02")
    lines = [f"{line},{kinds[n % 2]}" for n, line in enumerate(rows[1:])]
    draft = begin(desk, "\n".join([header, *lines, ""]).encode())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    assert "Benefit Type" in browser.page
    assert covers(browser)


def test_a_file_with_hundreds_of_columns_stays_small(desk: Desk, sign_in: SignIn) -> None:
    names = [f"A quite long name of a column {n}" for n in range(198)]
    header = ",".join(["Employee ID", "Last Name", *names])
    rows = [",".join([f"E{n}", "Sample", *["some text"] * 198]) for n in range(50)]
    draft = begin(desk, "\n".join([header, *rows, ""]).encode())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    assert len(browser.answer.content) < PAGE_BYTES
    assert "160 more columns, not used" in text_of(browser)
    form = browser.form(path_of(draft))
    assert len([name for name in form if re.fullmatch(r"c\d+", name)]) > 150
    choose(browser, draft, c100="metadata.note", c150="nonsense")
    assert (browser.status, "There is no such field" in browser.page) == (422, True)
    assert browser.form(path_of(draft))["c100"] == "metadata.note"
    choose(browser, draft, c150="")
    assert browser.path == path_of(draft, "dry-run")
    assert mapping_of(desk, draft)["columns"][names[98]] == "metadata.note"


def test_an_upload_without_a_plan_or_that_was_applied_leads_on(desk: Desk, sign_in: SignIn) -> None:
    browser = sign_in(Role.EDITOR)
    without = begin(desk, census(), mode=None)
    browser.open(path_of(without))
    assert browser.path == path_of(without, "plan")
    draft = begin(desk, csv_of([row(1)]))
    draft = take(desk, draft, steps.set_mapping, mapping={})
    draft = take(desk, draft, steps.dry_run)
    assert desk.work_on_any()
    draft = take(desk, draft, steps.apply)
    for step in ("columns", "dry-run", "apply"):
        browser.open(path_of(draft, step))
        assert browser.path.endswith(f"/files/{draft.file_id}")


def test_another_accounts_upload_looks_like_an_unknown_one(
    desk: Desk, other: Desk, sign_in: SignIn
) -> None:
    theirs = begin(other, census())
    browser = sign_in(Role.EDITOR)
    answers = []
    for draft_id in (theirs.id, 999_999):
        for step in ("columns", "dry-run", "apply"):
            path = f"/console/accounts/{desk.customer.account_id}/uploads/{draft_id}/{step}"
            browser.open(path)
            answers.append((browser.status, re.sub(r"Request [0-9a-f]+", "", browser.page)))
    assert {status for status, _ in answers} == {404}
    assert len({re.sub("value=.[0-9]+.", "", page) for _, page in answers}) == 1


def test_no_account_has_a_mapping_of_another(desk: Desk, other: Desk, sign_in: SignIn) -> None:
    key = MappingName(other.customer.account_id, "theirs")
    with other.db.write() as tx:
        actions.save_mapping(tx, key, {}, other.requester(), default=True)
    draft = begin(desk, census())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    assert "theirs" not in browser.page
    form = browser.form(path_of(draft) + "/text")
    browser.post(path_of(draft) + "/saved", form | {"saved": "theirs"})
    assert browser.status == 404
    own = desk.customer.account_id
    assert desk.db.ask(lambda tx: list_mappings(tx, own)) == []


def test_a_form_that_outlives_its_session_comes_back_filled(
    desk: Desk, sign_in: SignIn, clock: SetClock
) -> None:
    draft = begin(desk, census())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    clock.advance(31 * 60)
    choose(browser, draft, c8="payor_name", **ENDS)
    assert "Nothing was done" in browser.page
    carried = browser.form("/console/sign-in")
    assert (carried["carried.c8"], carried["carried.q7"]) == ("payor_name", "0")
    assert covers(browser)
    assert reread(desk, draft).mapping is None


def rows_of(*numbers: int) -> list[list[str]]:
    return [line.split(",") for line in csv_of([row(n) for n in numbers]).decode().splitlines()]


def two_sheets(first: str = "Salaried", second: str = "Hourly") -> bytes:
    return workbook([], sheets={first: rows_of(1, 2, 3), "Blank": [], second: rows_of(4, 5)})


def test_a_file_of_everyone_needs_a_choice_of_its_sheet(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, two_sheets(), mode=FileMode.FULL)
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    page = text_of(browser)
    assert "Only the sheet Salaried is read. The workbook has 1 other sheet with rows" in page
    assert "Blank" not in browser.page
    choose(browser, draft)
    assert (browser.status, reread(desk, draft).mapping) == (422, None)
    assert "Say which sheet of the workbook is read" in text_of(browser)
    overtaking = take(desk, draft, steps.set_mapping, mapping={})
    with pytest.raises(WrongState, match="Say which sheet"):
        take(desk, overtaking, steps.dry_run)
    browser.open(path_of(draft)).send(path_of(draft) + "/sheet", sheet="")
    assert (browser.status, reread(desk, draft).version) == (422, overtaking.version)
    browser.send(path_of(draft) + "/sheet", sheet="No such sheet")
    assert (browser.status, "has no sheet of the name" in text_of(browser)) == (422, True)
    browser.send(path_of(draft) + "/sheet", sheet="Hourly")
    assert "Only the sheet Hourly is read." in text_of(browser)
    assert "Of its 2 rows" in text_of(browser)
    choose(browser, draft)
    assert browser.path == path_of(draft, "dry-run")
    assert mapping_of(desk, draft)["sheet"] == "Hourly"
    assert desk.work_on_any()
    for step in ("dry-run", "apply"):
        page = text_of(browser.open(path_of(draft, step)))
        assert (
            "Only the sheet Hourly is read. The workbook has 1 other sheet with rows: who" in page
        )
    assert "2 would be created" in page


def test_a_file_of_changes_says_which_sheet_is_read(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, two_sheets())
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    assert "Only the sheet Salaried is read." in text_of(browser)
    choose(browser, draft)
    assert browser.path == path_of(draft, "dry-run")
    assert "Only the sheet Salaried is read." in text_of(browser)
    other = begin(desk, workbook(rows_of(1, 2)), mode=FileMode.FULL)
    assert "Only the sheet" not in text_of(browser.open(path_of(other)))
    choose(browser, other)
    assert browser.path == path_of(other, "dry-run")


def test_a_first_sheet_of_notes_asks_for_the_name_of_another(desk: Desk, sign_in: SignIn) -> None:
    draft = begin(desk, workbook([], sheets={"Notes": [["A list"]], "People": rows_of(1, 2)}))
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    page = text_of(browser)
    assert "Of the first sheet of the workbook: No row has names of columns" in page
    browser.send(path_of(draft) + "/sheet", sheet="people")
    assert "Of its 2 rows" in text_of(browser)
    assert "Only the sheet People is read" in text_of(browser)


def test_a_saved_mapping_keeps_the_sheet_that_was_chosen(desk: Desk, sign_in: SignIn) -> None:
    with desk.db.write() as tx:
        name = MappingName(desk.customer.account_id, "hr")
        actions.save_mapping(tx, name, {}, desk.requester(), default=None)
    draft = begin(desk, two_sheets(), mode=FileMode.FULL)
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    browser.send(path_of(draft) + "/sheet", sheet="Hourly")
    browser.send(path_of(draft) + "/saved", saved="hr")
    assert mapping_of(desk, draft) == {"sheet": "Hourly"}


def test_of_two_editors_who_save_under_one_new_name_at_once_one_is_asked(
    desk: Desk, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = MappingName(desk.customer.account_id, "hr")
    with desk.db.write() as tx:
        actions.save_mapping(tx, name, {"delimiter": "|"}, desk.requester(), default=None)
    # Both look before either of them has saved: this one has seen none.
    early: list[list[StoredMapping]] = [[], []]

    def look(tx: Tx, account_id: int) -> list[StoredMapping]:
        return early.pop() if early else list_mappings(tx, account_id)

    draft = begin(desk, csv_of([row(1)]))
    browser = sign_in(Role.EDITOR).open(path_of(draft))
    monkeypatch.setattr(upload_columns, "list_mappings", look)
    monkeypatch.setattr("frontdesk.files.store.list_mappings", look)
    choose(browser, draft, do="save_as", name="hr")
    assert (browser.status, early) == (422, [])
    assert "A mapping of this name is saved already." in text_of(browser)
    saved = desk.db.ask(partial(actions.get_mapping, key=name))
    assert saved.mapping == {"delimiter": "|"}
