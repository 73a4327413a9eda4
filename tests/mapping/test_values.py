"""Rules of a mapping that make values: words, dates, zeros, joined columns, names in one column,
rows to leave out.
"""

import json
from typing import Any

import pytest

from tests.formats.reading import codes, read, refused, rows_of


def value(cell: str, rule: dict[str, Any], field: str = "city", **more: Any) -> object:
    """What the rule makes of one cell; ... if the field is absent."""
    mapping = {"fields": {field: {"column": "Odd"} | rule}} | more
    [row] = rows_of(f'external_id,Odd\n1,"{cell}"\n', mapping=mapping)
    assert row.faults == ()
    return row.values.get(field, ...)


WORDS = {"values": {"m": "male", "F": "female", "": "unknown", "None": None, "skip": ""}}
YES = {"values": {"yes": True}}
OPEN = {"dates": "MM/DD/YYYY", "open": ["9999-12-31"]}
VALUES: list[tuple[str, dict[str, Any], str, object]] = [
    *(
        (cell, WORDS, "gender", sex)
        for cell, sex in (("M", "male"), (" f ", "female"), ("", "unknown"))
    ),
    *(
        (cell, WORDS, "gender", other)
        for cell, other in (("X", "X"), ("none", None), ("skip", ...))
    ),
    # A word for true fits every kind of field.
    ("Yes", YES, "invite_immediately", True),
    ("Yes", YES, "medical_eligibility", "true"),
    ("Yes", YES, "city", "true"),
    ("Spouse", {"values": {"spouse": "01"}}, "relationship_code_hipaa", "01"),  # its zero is kept
    # A date that means open clears the field.
    *((cell, OPEN, "expiry_date", None) for cell in ("12/31/9999", "9999-12-31")),
    ("12/31/2026", OPEN, "expiry_date", "2026-12-31"),
    ("", OPEN, "expiry_date", ...),
    # Lost zeros come back.
    *((cell, {"pad": 5}, "zipcode", "02134") for cell in ("2134", "02134")),
    ("2134-1234", {"pad": 5}, "zipcode", "02134-1234"),
    ("x1", {"pad": 5}, "zipcode", "x1"),
    ("", {"pad": 5}, "zipcode", ...),
    (r"\N", {"pad": 5}, "zipcode", None),
    # A phone loses its extension.
    *(
        (f"(617) 555-0100{end}", {"part": "phone"}, "phone", "(617) 555-0100")
        for end in (" x12", " ext. 12")
    ),
    *(
        (f"(617) 555-0100{end}", {"part": "phone"}, "phone", "(617) 555-0100")
        for end in ("#12", "")
    ),
]


@pytest.mark.parametrize(("cell", "rule", "field", "expected"), VALUES)
def test_a_rule_makes_a_value_of_a_cell(
    cell: str, rule: dict[str, Any], field: str, expected: object
) -> None:
    assert value(cell, rule, field) == expected


def test_the_clearing_word_counts_in_rules() -> None:
    assert value("-", {"dates": ["MM/DD/YYYY"]}, "expiry_date", clear="-") is None


DATES: list[tuple[str, str, str]] = [
    ("01/11/1977", "MM/DD/YYYY", "1977-01-11"),
    ("1/2/1977 0:00", "MM/DD/YYYY", "1977-01-02"),
    ("1/2/1977 12:00:00 AM", "M/D/YYYY", "1977-01-02"),
    ("11.01.1977", "MM/DD/YYYY|DD.MM.YYYY", "1977-01-11"),
    ("11x01x1977", "DD.MM.YYYY", "11x01x1977"),
    ("01111977", "MMDDYYYY", "1977-01-11"),
    ("1111977", "MMDDYYYY", "1111977"),
    ("11-Jan-77", "DD-MON-YY", "1977-01-11"),
    ("January 11, 1977", "MON DD, YYYY", "1977-01-11"),
    ("1/2/29", "MM/DD/YY", "2029-01-02"),
    ("1/2/30", "MM/DD/YY", "1930-01-02"),
    ("28136.0", "excel", "1977-01-11"),
    ("59", "excel", "1900-02-28"),
    ("60", "excel", "60"),
    ("61", "excel", "1900-03-01"),
    ("9999999", "excel", "9999999"),
    ("1977-01-11", "MM/DD/YYYY", "1977-01-11"),
    ("13/01/1977", "MM/DD/YYYY", "13/01/1977"),
    ("02/30/1977", "MM/DD/YYYY", "1977-02-30"),  # to be refused as a day that does not exist
    ("30/Abc/1977", "DD/MON/YYYY", "30/Abc/1977"),
    ("\u0661/\u0661/1977", "MM/DD/YYYY", "\u0661/\u0661/1977"),
    ("1" * 5000, "excel|MM/DD/YYYY", "1" * 5000),
]


@pytest.mark.parametrize(("cell", "formats", "expected"), DATES)
def test_dates_are_read_by_the_first_format_that_fits(
    cell: str, formats: str, expected: str
) -> None:
    assert value(cell, {"dates": formats.split("|"), "pivot": 29}, "dob") == expected


@pytest.mark.parametrize(
    ("family", "person", "expected"),
    [("W1", "2", "W1-2"), ("W1", "", "W1-0"), ("", "2", ...), ("", "", ...), ("", r"\N", ...)],
)
def test_a_blank_cell_behind_the_first_may_stand_for_something(
    family: str, person: str, expected: object
) -> None:
    rule = {"column": ["family", "person"], "join": "-", "blank": "0"}
    content = f"family,person,first_name\n{family},{person},Robin\n"
    [row] = rows_of(content, mapping={"fields": {"external_id": rule}})
    assert row.values.get("external_id", ...) == expected


NAMES = [  # first | middle | last
    ("Sample, Robin Lee", "Robin|Lee|Sample"),
    ("Robin Lee Sample", "Robin|Lee|Sample"),
    ("van Sample, Robin", "Robin||van Sample"),
    ("Robin Sample Jr.", "Robin||Sample Jr."),
    ("Robin Sample, MD", "Robin||Sample MD"),
    ("Robin Lee Sample, Jr., PhD", "Robin|Lee|Sample Jr. PhD"),
    ("Sample Jr, Robin Lee", "Robin|Lee|Sample Jr"),
    ("Sample, Jr., Robin Lee", "Robin|Lee|Sample Jr."),
    ("SAMPLE, ROBIN LEE II", "ROBIN|LEE|SAMPLE II"),
    ("Dr. Robin Sample", "Robin||Sample"),
    ("Sample, Mrs. Robin", "Robin||Sample"),
    ("Robin Lee van der Berg Jr", "Robin|Lee|van der Berg Jr"),
    ("Van Sample", "Van||Sample"),
    ("Robin Van", "Robin||Van"),
    ("  Robin   Sample ", "Robin||Sample"),
    ("Sample,", "||Sample"),
    (",", "||"),
    ("Jr.", "||Jr."),
    ("Mr.", "||"),
]


@pytest.mark.parametrize(("cell", "names"), NAMES)
def test_a_name_in_one_column_is_taken_apart(cell: str, names: str) -> None:
    parts = ("first_name", "middle_name", "last_name")
    assert [value(cell, {"part": part}, part) for part in parts] == [
        name or ... for name in names.split("|")
    ]


def test_columns_are_joined_and_one_column_makes_several_fields() -> None:
    rules = {
        "external_id": {"column": ["Group", "No"], "join": "-"},
        "member_id": {"column": "No"},
        "city": {"column": ["Group", "Town"]},
    }
    content = "group,NO,Town,Odd\nA,7,Boston,x\n,8,Boston,x\nA,9,Boston,x,x\nA\n"
    head, rows = read(content, mapping={"fields": rules})
    assert [row.values for row in rows] == [
        {"external_id": "A-7", "member_id": "7", "city": "A Boston"},
        {"member_id": "8", "city": "Boston"},  # half of an identifier is none
        {"external_id": "A-9"},  # a refused row keeps its key
        {},
    ]
    assert head.ignored == ("Odd",)


def test_a_rule_without_a_column_is_for_the_one_that_has_the_fields_name() -> None:
    mapping = {
        "columns": {"Start": "effective_date"},
        "fields": {
            name: {"dates": ["MM/DD/YYYY"]} for name in ("dob", "effective_date", "expiry_date")
        },
    }
    [row] = rows_of("external_id,DOB,start\n1,1/11/1977,2/1/2026\n", mapping=mapping)
    assert row.values == {"external_id": "1", "dob": "1977-01-11", "effective_date": "2026-02-01"}
    [row] = rows_of(
        "external_id,city,Town\n1,a,b\n", mapping={"fields": {"city": {"column": "Town"}}}
    )
    assert row.values["city"] == "b"  # a rule goes before the column of the field's name


def test_constants_metadata_and_the_plan_of_a_row() -> None:
    rules = {
        "effective_date": {"constant": "2026-01-01"},
        "metadata.Site": {"column": "Site", "values": {"1": "North"}},
        "metadata.Source": {"constant": "HR"},
        "plan": {"column": "Plan"},
    }
    content = "external_id,metadata.a,Site,Plan\n1,x,1,G\n2,,2,S\n3,,2,\n"
    known, unknown, none = rows_of(content, mapping={"fields": rules, "plans": {"G": "gold-2026"}})
    metadata = {"a": "x", "Site": "North", "Source": "HR"}
    assert known.values == {
        "external_id": "1",
        "effective_date": "2026-01-01",
        "metadata": metadata,
    }
    assert (known.plan, none.plan, none.faults) == ("gold-2026", None, ())
    assert (codes(unknown), unknown.values) == ([("plan", "unknown_plan")], {"external_id": "2"})


def test_rows_can_be_left_out() -> None:
    skip = [
        {"column": "external_id", "equals": ["", "n/a"]},
        {"column": "Name", "starts_with": "Total"},
    ]
    content = "external_id,Name\n1,Robin\n,Robin\nN/A ,Robin\n2,TOTAL of all\n3,,\nx,total\n4\n"
    rows = rows_of(content, mapping={"skip": skip})
    assert [(row.place, row.skipped) for row in rows] == [
        *[(2, False), (3, True), (4, True), (5, True), (6, False), (7, True), (8, False)]
    ]
    assert {row.place: codes(row) for row in rows if row.faults} == {
        place: [("row", "wrong_column_count")] for place in (6, 8)
    }
    # A short last line with a total too.
    total = {"skip": [{"column": "Name", "equals": "total"}]}
    rows = rows_of("Name,external_id\nRobin,1\nTotal\n", mapping=total)
    assert [(row.values, row.skipped) for row in rows] == [
        ({"external_id": "1"}, False),
        ({}, True),
    ]


@pytest.mark.parametrize("content", ["external_id\nE1\nE2\n", '{"external_id": "E1"}\n'])
def test_a_file_of_which_every_row_is_left_out_has_no_rows(content: str) -> None:
    mapping = {"skip": [{"column": "external_id", "starts_with": "e"}]}
    assert refused(lambda: rows_of(content, mapping=mapping))[0] == "no_rows"


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        ({"fields": {"gender": {"column": "Sex"}}}, "missing_column"),
        ({"skip": [{"column": "Sex", "equals": ""}]}, "missing_column"),
        ({"fields": {"gender": {"column": "twice"}}}, "repeated_column"),
        ({"fields": {"external_id": {"column": "Twice"}}}, "repeated_column"),
    ],
)
def test_a_column_that_is_not_there_or_twice_fails_the_file(
    mapping: dict[str, Any], code: str
) -> None:
    found, message = refused(lambda: rows_of("external_id,Twice,TWICE\n1,M,F\n", mapping=mapping))
    assert (found, message[:6]) == (code, "Row 1:")


TWICE = "external_id,Effective Date,Effective Date,City\n1,2026-01-01,2026-12-31,Boston\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Effective Date", "Effective Date#2"),
        ("Effective Date#1", "effective-date #2"),
        ("Effective Date#1", "Effective Date"),
    ],
)
@pytest.mark.parametrize("in_columns", [True, False])
def test_columns_of_one_name_are_told_apart_by_their_number(
    first: str, second: str, in_columns: bool
) -> None:
    fields = {"effective_date": first, "expiry_date": second}
    mapping: dict[str, Any] = {
        "fields": {field: {"column": name} for field, name in fields.items()}
    }
    if in_columns:
        mapping = {"columns": {name: field for field, name in fields.items()}}
    [row] = rows_of(TWICE, mapping=mapping)
    assert row.values == {
        "external_id": "1",
        "effective_date": "2026-01-01",
        "expiry_date": "2026-12-31",
        "city": "Boston",
    }


def test_one_of_two_columns_can_be_left_out_or_decide_about_its_rows() -> None:
    [row] = rows_of(TWICE, mapping={"columns": {"Effective Date#1": None}})
    assert row.values["effective_date"] == "2026-12-31"
    skip = [{"column": "Effective Date#2", "starts_with": "2026"}]
    content = TWICE + "2,2026-01-01,2027-01-01,Boston\n"
    assert [row.skipped for row in rows_of(content, mapping={"skip": skip})] == [True, False]


def test_a_header_that_ends_in_a_number_sign_and_a_number_is_named_by_it() -> None:
    content = "external_id,City,City,City#2,Job#3\n1,Boston,Salem,Rome,x\n"
    mapping = {
        "columns": {"City#1": None, "City": None, "City#2": "county", "Job#3": "metadata.job"}
    }
    [row] = rows_of(content, mapping=mapping)
    assert row.values == {"external_id": "1", "county": "Rome", "metadata": {"job": "x"}}


@pytest.mark.parametrize(
    ("mapping", "part"),
    [
        ({"columns": {"Effective Date#3": "expiry_date"}}, "columns"),
        ({"fields": {"expiry_date": {"column": "Effective Date#3"}}}, "fields.expiry_date"),
        ({"skip": [{"column": "Effective Date#3", "equals": ""}]}, "skip"),
    ],
)
def test_a_number_that_no_column_has_fails_the_file(mapping: dict[str, Any], part: str) -> None:
    found, message = refused(lambda: rows_of(TWICE, mapping=mapping))
    said = f"Row 1: the mapping's {part} names a column that the file does not have"
    assert (found, message) == (
        "missing_column",
        f"{said}: #3 of a name that 2 of its columns have",
    )


def test_the_columns_of_rules_help_to_find_the_delimiter() -> None:
    mapping = {"fields": {"external_id": {"column": "Nr"}, "city": {"column": "Ort"}}}
    assert rows_of("Nr;Ort\n1;Bern\n", mapping=mapping)[0].values == {
        "external_id": "1",
        "city": "Bern",
    }


@pytest.mark.parametrize("is_json", [False, True])
def test_a_row_whose_rules_read_one_long_cell_again_and_again_is_refused_alone(
    is_json: bool,
) -> None:
    mapping = {"fields": {f"metadata.{number}": {"column": "Odd"} for number in range(100)}}
    cells = enumerate(["a", "x" * 656, "b", "x" * 655])
    if is_json:
        content = "".join(json.dumps({"external_id": n, "Odd": cell}) + "\n" for n, cell in cells)
    else:
        content = "external_id,Odd\n" + "".join(f"{n},{cell}\n" for n, cell in cells)
    rows = rows_of(content, mapping=mapping)
    assert [codes(row) for row in rows] == [[], [("row", "values_too_long")], [], []]
    found: list[Any] = [row.values.get("metadata", {}) for row in rows]
    assert list(map(len, found)) == [100, 0, 100, 100]
    assert rows[1].values["external_id"] == "1"
