"""The report is safe to open in a spreadsheet, and says the same in both forms."""

import csv
import io

from frontdesk.files.model import RowOutcome
from frontdesk.files.report import report_csv, report_lines
from tests.files.loading import Desk, csv_of, row


def test_cells_that_a_spreadsheet_takes_for_formulas_are_made_harmless(desk: Desk) -> None:
    keys = ["=1+1", "+1", "-1", "@SUM(A1)", "|calc", "%0", "\uff1d1", "E1"]
    file = desk.load(csv_of(row(n, external_id=key) for n, key in enumerate(keys)))
    text = b"".join(report_csv(desk.db, file.id)).decode()
    cells = [line[1] for line in list(csv.reader(io.StringIO(text)))[1:]]
    assert cells == [*(f"'{key}" for key in keys[:-1]), "E1"]


def test_a_formula_behind_a_semicolon_is_made_harmless_too(desk: Desk) -> None:
    """Spreadsheets of half the world part cells there."""
    desk_file = desk.load(csv_of([row(1, external_id="E1;=cmd|' /C calc'!A0; +1;x-1")]))
    text = b"".join(report_csv(desk.db, desk_file.id)).decode()
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
