"""Suggested mappings: exports load after the suggestion is accepted, and nothing of a member is in
it.
"""

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import date
from itertools import chain, repeat
from typing import Any, BinaryIO, cast

import pytest

from frontdesk.formats.model import Unreadable
from frontdesk.formats.source import open_source
from frontdesk.mapping.parser import parse_mapping
from frontdesk.mapping.suggest import sample
from frontdesk.mapping.suggest.suggestion import suggest_mapping
from tests.files.exports import excel_export, hr_export, names_in, synthea, written
from tests.files.loading import Desk
from tests.formats.reading import Pieces, rows_of
from tests.formats.workbooks import workbook
from tests.mapping.suggesting import answered, rules_of, suggested

EXPORTS = {"synthea": synthea, "hr": hr_export, "excel": excel_export}
COVERAGE = {"effective_date": {"constant": "2026-01-01"}}


def typed(cell: str) -> Any:
    """The cell as Excel keeps what is typed into it: dates and numbers, without their zeros."""
    if re.fullmatch(r"[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}", cell):
        month, day, year = map(int, cell.split("/"))
        return date(year, month, day)
    return int(cell) if cell.isdigit() else cell or None


def as_workbook(content: bytes, make: Callable[[str], Any]) -> bytes:
    text = content.decode()
    rows = csv.reader(text.splitlines(), delimiter=";" if ";" in text else ",")
    return workbook(
        [], sheets={"Notes": [["A list"]], "People": [[*map(make, row)] for row in rows]}
    )


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("make", [None, typed, lambda cell: cell or None])
def test_an_export_loads_after_the_suggestion_and_one_constant(
    name: str, desk: Desk, make: Any
) -> None:
    content, sheet = (
        (as_workbook(EXPORTS[name](), make), "People") if make else (EXPORTS[name](), None)
    )
    found = suggested(content, sheet=sheet)
    mapping = found["mapping"]
    assert mapping.get("sheet") == sheet
    missing = {each["field"] for each in found["refused"]}
    assert missing <= {"effective_date"}
    if missing:
        mapping = mapping | {"fields": mapping["fields"] | COVERAGE}
    file = desk.load(content, mapping=mapping)
    assert (file.state, file.counts.get("created"), file.counts.get("refused")) == (
        "done",
        40,
        None,
    )
    assert found["skipped_rows"] == file.counts.get("skipped", 0)
    assert found["refused_rows"] == (40 if missing else 0)


@pytest.mark.parametrize("name", EXPORTS)
def test_no_value_of_a_member_is_in_a_suggestion(name: str) -> None:
    content = EXPORTS[name]().decode()
    found = suggested(content)
    delimiter = found["mapping"].get("delimiter", ",")
    cells = {
        cell.strip()
        for row in csv.reader(io.StringIO(content), delimiter=delimiter)
        for cell in row
    }
    samples = {sample for column in found["columns"] for sample in column["samples"]}
    assert samples
    assert samples.isdisjoint(cells - {""})
    assert all(len(column["samples"]) <= 5 for column in found["columns"])
    told = json.dumps([found["columns"], found["refused"]])
    hidden = cells - {column["column"] for column in found["columns"]}
    assert [cell for cell in hidden if len(cell) > 4 and not cell.islower() and cell in told] == []


def test_values_of_an_export_become_rules() -> None:
    rules = rules_of(hr_export())
    assert rules["dob"] == {"column": "DOB", "dates": ["MM/DD/YYYY"]}
    assert rules["zipcode"] == {"column": "Home Address - Zip", "pad": 5}
    assert rules["phone"] == {"column": "Home Phone", "part": "phone"}
    assert rules["gender"]["values"] == {"f": "female", "m": "male", "": "unknown"}
    assert rules["relationship_code_hipaa"]["values"] == {
        "self": "18",
        "spouse": "01",
        "child": "19",
    }
    assert rules["subscriber_relationship"]["values"]["child"] == "Dependent"
    assert rules["member_id"] == {"column": "Employee ID"}
    # A column without a value may get one later.
    assert rules["expiry_date"] == {"column": "Term Date", "dates": ["MM/DD/YYYY"]}
    rules = rules_of(excel_export())
    assert rules["expiry_date"] == {
        "column": "Expiration Date",
        "dates": ["excel"],
        "open": ["9999-12-31"],
    }
    assert rules["first_name"] == {"column": "Name", "part": "first_name"}


HEADERS = {
    "external_id": "Employee ID|Emp No|Associate ID|Worker ID|File Number|Employee #|EecEmpNo|EMPLID|"
    "PERSON_NUMBER|Position ID"
    "|employeeId|Employee_EmployeeNumber|External ID*|External ID:|EEID|EE ID|EE #|EMPNO|EMPLOYEEID|"
    "Employee ID No.|Assoc ID|Associate OID",
    "first_name": (
        "First Name|Legal First Name|FNAME|Given Name|Legal Name - First Name|EepNameFirst|"
        "firstName|RECIP_FST_NM|F_NAME|* First Name|[First Name]"
    ),
    "last_name": "Surname|Last_Name|Legal Last Name|LNAME|Last Name [Required]|Last Name - Required|"
    "Last Name {required}|RECIP_LST_NM",
    "dob": "DOB|Date of Birth|Birth Date|BIRTHDATE|Birthday|D.O.B.|MEM_BIRTH_DT|Birth_Date_(MM/DD/YYYY)|"
    "Date of Birth (YYYY-MM-DD)|Date of Birth [MM/DD/YYYY]*|DOB MM/DD/YYYY|DATEOFBIRTH|RECIP_BRTH_DT|Birth",
    "gender": "Sex|Gender|Legal Sex|Gender Code|M/F|Gender / Sex (Self-ID)|GNDR_CD|Sex (M/F):",
    "zipcode": (
        "Zip Code|Home Address - Zip|Home Zip/Postal Code|Primary Address: Zip / Postal Code|"
        "POSTAL|Private ZIP Code|RES_ZIP|RES_ZIP_CD|MAIL_ZIP|Zip5|ZIP (5 digits)"
    ),
    "email": "E-Mail|Work Email|Email Address|Email - Work|EMAIL_ADDR|Personal Contact: Personal Email",
    "phone": "Phone|Mobile Phone|Home Phone|Cell",
    "effective_date": (
        "Effective Date|Coverage Begin Date|EFFDT|COV_EFF_DT|Start date|Employee_HireDate|"
        "EecDateOfLastHire|ELIG_BEG_DT|COV_BEG_DT|BEG_DT|EFF DT|ENROLL_DT|SPAN_BEG_DT|Effective Date:"
    ),
    "expiry_date": (
        "Expiration Date|Term Date|Coverage End Date|Departure date|COV_TERM_DT|Last Day|"
        "COVERAGE_THRU_DATE|ELIG_END_DT|TERM DT|DISENROLL_DT|Term Date (if applicable)"
    ),
    "member_id": "Member ID|Card Number|Subscriber ID|MEM_ID|Member ID:|Member ID #|MBRID|RECIP_ID|"
    "Recipient ID|MEDICAID_ID|Medicaid No|CIN|MBI|Subscriber Code",
    "city": "City|Home Address - City|TOWN_OR_CITY|Home city",
    "state": "State|Home Address - State|Home State|REGION_2|Home state id|RES_ST",
    "county": "County|RES_CNTY",
}
VALUE = {
    "dob": "1977-01-11",
    "gender": "female",
    "zipcode": "02134",
    "email": "a@example.com",
    "state": "MA",
}
VALUE |= {"phone": "6175550100", "effective_date": "2026-01-01", "expiry_date": "2026-01-01"}


@pytest.mark.parametrize(
    ("field", "name"),
    [(field, name) for field, names in HEADERS.items() for name in names.split("|")],
)
def test_the_names_of_senders_are_known(field: str, name: str) -> None:
    value = VALUE.get(field, "Sample")
    column = suggested(written([["Something", name], ["x", value], ["y", value]]))["columns"][1]
    assert field in column["fields"]
    assert column["confidence"] > 0.3


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (["01/31/1980", "02/01/1981"], {"column": "Birth", "dates": ["MM/DD/YYYY"]}),
        (["Boston", "Lyon"], None),
        (["1980", "1981"], None),
    ],
)
def test_a_column_named_birth_is_the_birth_date_if_its_values_are_dates(
    values: list[str], rule: dict[str, Any] | None
) -> None:
    rows = [["Employee ID", "Birth"], *([f"E{n}", each] for n, each in enumerate(values))]
    assert rules_of(written(rows)).get("dob") == rule


ISSUED = ["123456789", "665010001", "001 01 0001", "899-99-9999", "900-12-3456"]
NOT_ISSUED = [
    "000123456",
    "666123456",
    "900123456",
    "123006789",
    "123450000",
    "12345678",
    "1234567890",
]
OFFICIAL = ["SSN", "Social Security Number", "Tax ID", "Passport"]


@pytest.mark.parametrize(
    "name", [*OFFICIAL, "Member ID", "member_id", "Card Number", "External ID", "Dependent ID"]
)
@pytest.mark.parametrize(
    "numbers", [ISSUED, [*ISSUED, *NOT_ISSUED[:4]], NOT_ISSUED, [*ISSUED[:3], *NOT_ISSUED[:3]]]
)
def test_a_column_of_social_security_numbers_is_no_identifier(
    name: str, numbers: list[str]
) -> None:
    rows = ([each, f"E{each}", "Robin"] for each in numbers)
    content = written([[name, "Employee ID", "First Name"], *rows])
    found = suggested(content)
    column = found["columns"][0]
    is_official = name in OFFICIAL
    are_ssns = sum(each in ISSUED for each in numbers) * 2 > len(numbers)
    is_unused = is_official or are_ssns or name == "Dependent ID"  # nobody shares a number here
    assert (column["fields"] == []) is is_unused
    assert (column["note"] is None) is (is_official or not are_ssns)
    if is_unused:
        [first, *_] = rows_of(content, mapping=found["mapping"])
        assert (first.values["external_id"], first.values["member_id"]) == (f"E{numbers[0]}",) * 2
    if column["note"]:
        assert ["Ask the sender" in column["note"], '"ssn": "plain"' in column["note"]] == [
            True,
            True,
        ]


def test_without_another_number_no_row_of_social_security_numbers_has_an_identifier() -> None:
    content = written(
        [["External ID", "Member ID", "First Name"], *([n, n, "Robin"] for n in ISSUED)]
    )
    found = suggested(content)
    assert found["mapping"]["columns"] == {"External ID": None, "Member ID": None}
    assert {each["field"] for each in found["refused"]} > {"external_id", "member_id"}
    with pytest.raises(Unreadable, match="external_id"):
        rows_of(content, mapping=found["mapping"])


@pytest.mark.parametrize(
    "name",
    [
        "Emergency Contact First Name",
        "Manager Email",
        "Spouse DOB",
        "Employer Zip",
        f"DOB ({'x' * 200})",
    ],
)
def test_columns_about_another_person_and_those_with_endless_names_are_left_out(name: str) -> None:
    assert (
        suggested(written([["Employee ID", name], ["1", "1977-01-11"]]))["columns"][1]["fields"]
        == []
    )


DATES: list[tuple[list[str], dict[str, Any]]] = [
    (["1/2/1980", "1/31/1980"], {"dates": ["MM/DD/YYYY"]}),
    (["1/2/1980", "31/1/1980"], {"dates": ["DD/MM/YYYY"]}),
    (["1.2.1980"], {"dates": ["DD.MM.YYYY"]}),
    (["01/02/80", "12/31/99"], {"dates": ["MM/DD/YY"], "pivot": 26}),
    (["January 13, 1977"], {"dates": ["MON DD, YYYY"]}),
    (["11-Jan-1977"], {"dates": ["DD-MON-YYYY"]}),
    (["19770111"], {"dates": ["YYYYMMDD"]}),
    (["1977-01-11 00:00:00"], {"dates": ["YYYY-MM-DD"]}),
    (["28136", "1977-01-11"], {"dates": ["excel"]}),
    (["28136", "1/31/1977"], {"dates": ["excel", "MM/DD/YYYY"]}),
    (["1977-01-11", "1977-01-11T00:00:00Z"], {}),
]


@pytest.mark.parametrize(("values", "rule"), DATES)
def test_formats_of_dates_are_found(values: list[str], rule: dict[str, Any]) -> None:
    rows = ([str(number), value] for number, value in enumerate(values))
    found = rules_of(written([["Employee ID", "Birth Date"], *rows]))["dob"]
    assert sorted(found.pop("dates", [])) == sorted(rule.get("dates", []))
    assert found == {"column": "Birth Date"} | {
        name: rule[name] for name in rule if name != "dates"
    }


def test_days_and_months_that_cannot_be_told_apart_are_less_sure() -> None:
    sure, unsure = (
        suggested(written([["Employee ID", "Birth Date"], ["1", day]]))["columns"][1]["confidence"]
        for day in ("1/31/1980", "1/2/1980")
    )
    assert (sure, unsure) == (1.0, 0.6)


def test_the_interfaces_own_names_need_no_mapping() -> None:
    header = "external_id,member_id,first_name,last_name,dob,gender,zipcode,effective_date"
    found = suggested(f"{header}\n1,1,Robin,Sample,1980-01-01,male,02134,2026-01-01\n")
    assert (found["mapping"], found["refused"], found["refused_rows"]) == ({}, [], 0)


def test_what_would_be_refused_is_counted_as_a_load_would() -> None:
    rows = [
        ["Employee ID", "First Name", "Last Name", "DOB", "Sex", "Zip", "Start Date"],
        ["1", "Robin", "Sample", "1980-01-01", "F", "02134", "2026-01-01"],
        ["2", "Robin", "Sample", "1780-01-01", "F", "02134", "2026-01-01"],
        ["3", "Robin", "Sample", "1980-01-01", "F", "what", "2026-01-01"],
        ["4", "Robin", "Sample", "1980-01-01", "F", "02134", "2026-01-01"],
        ["4", "Kim", "Sample", "1980-01-01", "F", "02134", "2026-01-01"],
        ["5", "Robin"],
    ]
    found = suggested(written(rows))
    told = [f"{each['field']} {each['code']} {each['rows']}" for each in found["refused"]]
    dropped = ["dob before_1900 1", "zipcode malformed_zipcode 1", "row wrong_column_count 1"]
    assert sorted(told) == sorted([*dropped, "external_id repeated_differently 2"])
    assert (found["rows"], found["refused_rows"]) == (6, 5)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("7,Robin,Sample,1977-01-31,F,02134\n8,Lee,Sample,1978-01-31,M,02134\n", "no_header"),
        ("id,robin@example.com\n1,2\n", "no_header"),
        ("Employee ID,DOB\n", "no_rows"),
        ("Employee ID," + ",".join(f"DOB {n}" for n in range(300)) + "\n1\n", "too_large"),
        (workbook([["Employee ID", *[None] * 300, "DOB"], ["1"]]), "too_large"),
        ("ISA*00*          *00*          *ZZ*S", "cut_off"),
        (workbook([["E1", "Robin"], ["E2", "Lee"]]), "no_header"),
        (workbook([["Employee ID", "DOB"]]), "no_rows"),
        (b"", "empty"),
    ],
)
def test_what_has_no_names_of_columns_is_refused(content: bytes | str, code: str) -> None:
    with pytest.raises(Unreadable) as caught:
        suggested(content)
    assert caught.value.code == code
    assert "robin" not in caught.value.detail.lower()


def test_the_keys_of_json_are_named_by_who_writes_them() -> None:
    with pytest.raises(Unreadable, match="name the keys in `columns`"):
        suggested('{"employeeId": 7, "firstName": "Robin"}\n')


def test_a_part_of_a_file_may_end_anywhere() -> None:
    content = "Employee ID,First Name\n" + "".join(f"{n},J\u00f6rg\n" for n in range(80))
    raw = content.encode()
    for end in range(len(raw) - 20, len(raw)):
        assert suggested(raw[:end], is_cut=True)["rows"] >= 77
    with pytest.raises(Unreadable):
        suggested(raw[: raw.rindex("\u00f6".encode()) + 1])


def test_only_the_first_thousand_rows_are_looked_at() -> None:
    endless = Pieces(chain([b"Employee ID,First Name\n"], repeat(b"1,Robin\n" * 1000)))
    assert suggest_mapping(cast("BinaryIO", endless), today="2026-11-22")["rows"] == 1000


def test_a_suggestion_can_be_parsed_whatever_the_names_are() -> None:
    names = [
        *names_in("Employee ID,Employee-ID,Birth Date,birth_date,,-,City"),
        "M\u0000",
        "State" * 30,
    ]
    found = suggested(written([names, [str(n) for n in range(9)]]))
    parse_mapping(found["mapping"])


@pytest.mark.parametrize("first", ["", "x" * 600, "Note"])
def test_a_column_that_no_mapping_can_name_gets_no_rule(first: str) -> None:
    names = [first, "Employee ID", "First Name", "Note", "note"]
    rows = [["x", str(n), "Robin", "Boston", "Boston"] for n in range(9)]
    found = suggested(written([names, *rows, ["Total", "", "", "", ""]]))
    assert found["skipped_rows"] == 1


def test_columns_of_one_name_are_told_apart_in_a_suggestion() -> None:
    header = ["Employee ID", "City", "CITY", "Effective Date", "Effective Date", "Status", "status"]
    content = written([header, ["1", "Boston", "Salem", "01/13/2026", "", "active", "retired"]])
    found = suggested(content)
    assert found["mapping"]["columns"] == {
        "City#1": "city",
        "CITY#2": None,
        "Effective Date#2": None,
        "Employee ID": "external_id",
    }
    assert found["mapping"]["fields"]["effective_date"]["column"] == "Effective Date#1"
    notes = {each["column"]: each["note"] for each in found["columns"]}
    assert '{"columns": {"Effective Date#2": "…"}}' in notes["Effective Date#2"]
    assert (notes["Effective Date#1"], notes["Status#1"]) == (None, None)
    assert [each["column"] for each in found["questions"]] == ["Status#1", "status#2"]
    [row] = rows_of(content, mapping=answered(found))
    assert (row.values["city"], row.values["effective_date"]) == ("Boston", "2026-01-13")
    ended = found["questions"][1]["choices"][0]["mapping"]["end"]
    assert ended[0]["column"] == "status#2"
    parse_mapping(found["mapping"] | {"questions": {}, "end": ended})


def test_a_column_of_every_kind_of_date_gets_as_many_formats_as_a_rule_may_have() -> None:
    dates = (
        "1977-01-13 00:00|1977/01/13|19770113|13-JAN-1977|13 JAN 1977|13-JAN-77|13.01.1977|"
        "13.01.77|45000|01/13/1977|01-13-77"
    )
    found = rules_of(
        written([["Employee ID", "DOB"], *([each, each] for each in dates.split("|"))])
    )
    assert len(found["dob"]["dates"]) == 10


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_no_row_of_a_sample_is_wider_than_what_is_looked_at(delimiter: str) -> None:
    content = f"Employee ID{delimiter}DOB\n" + (delimiter.join(["a"] * 30_000) + "\n") * 20
    opened = open_source(io.BytesIO(f"{content}1{delimiter}2\n".encode()), None, "utf-8")
    found = sample.read_sample(*opened, is_cut=False)
    assert found.rows == [["1", "2"]]
    assert {len(row) for row in found.odd_rows} == {sample.MOST_COLUMNS + 1}


def test_so_many_letters_of_a_file_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "SAMPLE_LETTERS", 500)
    rows = [["Employee ID", "First Name"], *([str(n), "Robin"] for n in range(200))]
    for content in (written(rows), workbook(rows)):
        assert 5 < suggested(content)["rows"] < 100


def test_people_in_columns_of_their_own_are_asked_about() -> None:
    rows = [
        ["Employee ID", "First Name", "Dependent 1 First Name"],
        ["1", "Robin", "Lee"],
        ["2", "Kim", ""],
    ]
    found = suggested(written(rows))
    [question] = found["questions"]
    assert question["column"] == "Dependent 1 First Name"
    assert "a row for each person" in question["question"]
    assert found["mapping"]["questions"] == {"Dependent 1 First Name": "open"}


def test_every_column_tells_its_fill_its_values_and_their_shapes() -> None:
    header = "Employee ID,Birth Date,Status,Cost Center,Memo\n"
    rows = [
        f"E-{n:04d},01/{n % 28 + 1:02d}/1980,{'Active' if n % 3 else 'active'},{n % 4 or ''},\n"
        for n in range(40)
    ]
    columns = {each["column"]: each for each in suggested(header + "".join(rows))["columns"]}
    told = {name: (each["filled"], each["distinct"]) for name, each in columns.items()}
    assert told == {
        "Employee ID": (100, 40),
        "Birth Date": (100, 28),
        "Status": (100, 1),
        "Cost Center": (75, 3),
        "Memo": (0, 0),
    }
    shapes = {name: each["samples"] for name, each in columns.items()}
    assert shapes["Employee ID"] == ["X-9999"]
    assert shapes["Birth Date"] == ["99/99/9999"]
    assert (columns["Cost Center"]["fields"], shapes["Cost Center"]) == ([], ["9"])
    assert shapes["Memo"] == []
