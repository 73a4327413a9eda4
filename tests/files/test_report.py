"""The report is safe to open in a spreadsheet, and says the same in both forms."""

import csv
import io
from dataclasses import replace

from frontdesk.files.model import EligibilityFile
from frontdesk.files.report import ALL, ReportFilter, ReportLine, ReportPlace, read_report, report_page
from frontdesk.plans import external_ids_of
from tests.files.loading import ON_SQLITE, Desk, csv_of, row


def as_csv(desk: Desk, file: EligibilityFile) -> list[list[str]]:
    text = b"".join(read_report(desk.db, file.id, as_csv=True)).decode()
    return list(csv.reader(io.StringIO(text)))


@ON_SQLITE
def test_cells_that_a_spreadsheet_takes_for_formulas_are_made_harmless(desk: Desk) -> None:
    """Also behind a semicolon: spreadsheets of half the world part cells there."""
    keys = ["=1+1", "+1", "-1", "@SUM(A1)", "|calc", "%0", "\uff1d1"]
    hidden = "E1;=cmd|' /C calc'!A0; +1;x-1"
    file = desk.load(csv_of(row(n, external_id=key) for n, key in enumerate([*keys, hidden, "E1"])))
    cells = [line[1] for line in as_csv(desk, file)[1:]]
    assert cells == [*(f"'{key}" for key in keys), "E1;'=cmd|' /C calc'!A0;' +1;x-1", "E1"]


@ON_SQLITE
def test_a_report_holds_no_value_of_a_refused_field(desk: Desk) -> None:
    secret = "QUEBEC-CANARY"
    file = desk.load(csv_of([row(1, gender=secret, dob=secret, zipcode=secret, email=secret)]))
    assert secret not in str((desk.report(file), desk.reread(file)))


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
    header, _, second, _ = as_csv(desk, file)
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
        expected = [each["row"] for each in whole if wanted.wants(ReportLine(**each))]
        assert [line.row for line in lines] == expected
