"""The report is safe to open in a spreadsheet, and says the same in both forms."""

import csv
import io
from dataclasses import replace

from frontdesk.files.model import RowOutcome
from frontdesk.files.report import (
    ALL,
    ReportFilter,
    ReportLine,
    ReportPlace,
    read_report,
    report_lines,
    report_page,
)
from frontdesk.plans import external_ids_of
from tests.files.loading import Desk, csv_of, row


def test_cells_that_a_spreadsheet_takes_for_formulas_are_made_harmless(desk: Desk) -> None:
    keys = ["=1+1", "+1", "-1", "@SUM(A1)", "|calc", "%0", "\uff1d1", "E1"]
    file = desk.load(csv_of(row(n, external_id=key) for n, key in enumerate(keys)))
    text = b"".join(read_report(desk.db, file.id, as_csv=True)).decode()
    cells = [line[1] for line in list(csv.reader(io.StringIO(text)))[1:]]
    assert cells == [*(f"'{key}" for key in keys[:-1]), "E1"]


def test_a_formula_behind_a_semicolon_is_made_harmless_too(desk: Desk) -> None:
    """Spreadsheets of half the world part cells there."""
    desk_file = desk.load(csv_of([row(1, external_id="E1;=cmd|' /C calc'!A0; +1;x-1")]))
    text = b"".join(read_report(desk.db, desk_file.id, as_csv=True)).decode()
    assert list(csv.reader(io.StringIO(text)))[1][1] == "E1;'=cmd|' /C calc'!A0;' +1;x-1"


def test_a_row_has_a_line_per_outcome_fault_and_warning() -> None:
    refused = RowOutcome(
        2, "E1", "refused", 0, [("dob", "not_a_date", "must be"), ("zipcode", "required", "is")]
    )
    assert [line[3:5] for line in report_lines(refused, {})] == [
        ("not_a_date", "dob"),
        ("required", "zipcode"),
    ]
    warned = RowOutcome(3, "E2", "created", 5, [], [("email", "email_dropped")])
    assert [line[2:5] for line in report_lines(warned, {})] == [
        ("created", "", ""),
        ("warned", "email_dropped", "email"),
    ]


def test_a_report_holds_no_value_of_a_refused_field(desk: Desk) -> None:
    secret = "QUEBEC-CANARY"
    file = desk.load(csv_of([row(1, gender=secret, dob=secret, zipcode=secret, email=secret)]))
    assert secret not in str(desk.report(file))
    assert secret not in str(desk.reread(file))


def test_a_row_names_what_it_changed_and_the_plan_that_its_member_left(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2), row(3)]))
    file = desk.load(csv_of([row(1), row(2, last_name="New", zipcode="02199"), row(4)]), plan=1)
    left = desk.db.ask(lambda tx: external_ids_of(tx, desk.customer.plan_ids))[desk.customer.plan_ids[0]]
    told = [(line["row"], line["outcome"], line["changed"], line["left_plan"]) for line in desk.report(file)]
    assert told == [
        (2, "moved", [], left),
        (3, "moved", ["last_name", "zipcode"], left),
        (4, "created", [], None),
    ]
    [header, _, second, _] = csv.reader(
        io.StringIO(b"".join(read_report(desk.db, file.id, as_csv=True)).decode())
    )
    assert (header[-2:], second[-2:]) == (["changed", "left_plan"], ["last_name zipcode", left])
    dry = desk.load(csv_of([row(2, last_name="Newer")]), plan=1, dry_run=True)
    assert desk.report(dry)[0]["changed"] == ["last_name", "zipcode"]


def test_pages_and_filters_go_through_changed_and_unchanged_rows(desk: Desk) -> None:
    rows = [row(n) for n in range(60)]
    desk.load(csv_of(rows))
    rows[7] |= {"last_name": "New"}
    rows[9] |= {"dob": "never"}
    desk.options = replace(desk.options, chunk_rows=10)
    file = desk.load(csv_of(rows))
    assert file.counts == {"unchanged": 58, "updated": 1, "refused": 1}
    whole = desk.report(file)
    assert [line["row"] for line in whole] == [*range(2, 62)]
    by_member = [ReportFilter(external_id=key) for key in ("E00007", "E00008")]
    for wanted in (ALL, ReportFilter("unchanged"), *by_member):
        lines: list[ReportLine] = []
        place: ReportPlace | None = ReportPlace()
        while place is not None:
            page, place = report_page(desk.db, file.id, wanted, after=place, size=7)
            lines += page
        assert [line.row for line in lines] == [
            each["row"] for each in whole if wanted.wants(ReportLine(**each))
        ]
