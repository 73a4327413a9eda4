"""Rules of a mapping that make values: words, dates, zeros, joined columns, names in one column, rows to leave out."""

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


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("M", "male"), (" f ", "female"), ("", "unknown"), ("X", "X"), ("none", None), ("skip", ...)],
)
def test_words_become_values(cell: str, expected: object) -> None:
    words = {"m": "male", "F": "female", "": "unknown", "None": None, "skip": ""}
    assert value(cell, {"values": words}, "gender") == expected


@pytest.mark.parametrize(
    ("field", "expected"), [("invite_immediately", True), ("medical_eligibility", "true"), ("city", "true")]
)
def test_a_word_for_true_fits_every_kind_of_field(field: str, expected: object) -> None:
    assert value("Yes", {"values": {"yes": True}}, field) == expected


def test_a_word_can_be_a_relationship_whose_zero_is_kept() -> None:
    assert value("Spouse", {"values": {"spouse": "01"}}, "relationship_code_hipaa") == "01"


DATES: list[tuple[str, list[str], str]] = [
    ("01/11/1977", ["MM/DD/YYYY"], "1977-01-11"),
    ("1/2/1977", ["MM/DD/YYYY"], "1977-01-02"),
    ("1/2/1977 0:00", ["MM/DD/YYYY"], "1977-01-02"),
    ("1/2/1977 12:00:00 AM", ["M/D/YYYY"], "1977-01-02"),
    ("11.01.1977", ["DD.MM.YYYY"], "1977-01-11"),
    ("11.01.1977", ["MM/DD/YYYY", "DD.MM.YYYY"], "1977-01-11"),
    ("11x01x1977", ["DD.MM.YYYY"], "11x01x1977"),
    ("01111977", ["MMDDYYYY"], "1977-01-11"),
    ("1111977", ["MMDDYYYY"], "1111977"),
    ("11-Jan-77", ["DD-MON-YY"], "1977-01-11"),
    ("January 11, 1977", ["MON DD, YYYY"], "1977-01-11"),
    ("1/2/29", ["MM/DD/YY"], "2029-01-02"),
    ("1/2/30", ["MM/DD/YY"], "1930-01-02"),
    ("28136", ["excel"], "1977-01-11"),
    ("28136.0", ["excel"], "1977-01-11"),
    ("1", ["excel"], "1900-01-01"),
    ("59", ["excel"], "1900-02-28"),
    ("60", ["excel"], "60"),
    ("61", ["excel"], "1900-03-01"),
    ("9999999", ["excel"], "9999999"),
    ("1977-01-11", ["MM/DD/YYYY"], "1977-01-11"),
    ("13/01/1977", ["MM/DD/YYYY"], "13/01/1977"),
    ("02/30/1977", ["MM/DD/YYYY"], "1977-02-30"),  # to be refused as a day that does not exist
    ("02/30/1977", ["MM/DD/YYYY", "DD/MM/YYYY"], "1977-02-30"),
    ("30/02/1977", ["MM/DD/YYYY"], "30/02/1977"),
    ("30/Abc/1977", ["DD/MON/YYYY"], "30/Abc/1977"),
    ("\u0661/\u0661/1977", ["MM/DD/YYYY"], "\u0661/\u0661/1977"),
    ("1" * 5000, ["excel", "MM/DD/YYYY"], "1" * 5000),
]


@pytest.mark.parametrize(("cell", "formats", "expected"), DATES)
def test_dates_are_read_by_the_first_format_that_fits(cell: str, formats: list[str], expected: str) -> None:
    assert value(cell, {"dates": formats, "pivot": 29}, "dob") == expected


def test_a_date_that_means_open_clears_the_field() -> None:
    rule = {"dates": "MM/DD/YYYY", "open": ["9999-12-31"]}
    assert value("12/31/9999", rule, "expiry_date") is None
    assert value("9999-12-31", rule, "expiry_date") is None
    assert value("12/31/2026", rule, "expiry_date") == "2026-12-31"
    assert value("", rule, "expiry_date") is ...


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("2134", "02134"), ("02134", "02134"), ("2134-1234", "02134-1234"), ("x1", "x1"), ("", ...)],
)
def test_lost_zeros_come_back(cell: str, expected: object) -> None:
    assert value(cell, {"pad": 5}, "zipcode") == expected


@pytest.mark.parametrize(
    ("family", "person", "expected"),
    [("W1", "2", "W1-2"), ("W1", "", "W1-0"), ("", "2", ...), ("", "", ...), ("", r"\N", ...)],
)
def test_a_blank_cell_behind_the_first_may_stand_for_something(
    family: str, person: str, expected: object
) -> None:
    rule = {"column": ["family", "person"], "join": "-", "blank": "0"}
    [row] = rows_of(
        f"family,person,first_name\n{family},{person},Robin\n", mapping={"fields": {"external_id": rule}}
    )
    assert row.values.get("external_id", ...) == expected


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("Sample, Robin Lee", ("Robin", "Lee", "Sample")),
        ("Robin Lee Sample", ("Robin", "Lee", "Sample")),
        ("van Sample, Robin", ("Robin", ..., "van Sample")),
        ("Sample", (..., ..., "Sample")),
        ("Robin L. Sample", ("Robin", "L.", "Sample")),
        ("Robin Sample Jr.", ("Robin", ..., "Sample Jr.")),
        ("Robin Lee Sample III", ("Robin", "Lee", "Sample III")),
        ("Robin Sample, MD", ("Robin", ..., "Sample MD")),
        ("Robin Lee Sample, Jr., PhD", ("Robin", "Lee", "Sample Jr. PhD")),
        ("Sample Jr, Robin Lee", ("Robin", "Lee", "Sample Jr")),
        ("Sample, Jr., Robin Lee", ("Robin", "Lee", "Sample Jr.")),
        ("Sample, Robin Lee, Sr", ("Robin", "Lee", "Sample Sr")),
        ("SAMPLE, ROBIN LEE II", ("ROBIN", "LEE", "SAMPLE II")),
        ("Dr. Robin Sample", ("Robin", ..., "Sample")),
        ("Sample, Mrs. Robin", ("Robin", ..., "Sample")),
        ("Robin de la Cruz", ("Robin", ..., "de la Cruz")),
        ("Robin Lee van der Berg Jr", ("Robin", "Lee", "van der Berg Jr")),
        ("De La Cruz, Robin", ("Robin", ..., "De La Cruz")),
        ("Van Sample", ("Van", ..., "Sample")),
        ("Robin Van", ("Robin", ..., "Van")),
        ("Robin O'Sample-Muster", ("Robin", ..., "O'Sample-Muster")),
        ("  Robin   Sample ", ("Robin", ..., "Sample")),
        ("Sample,", (..., ..., "Sample")),
        (",", (..., ..., ...)),
        ("Jr.", (..., ..., "Jr.")),
        ("Mr.", (..., ..., ...)),
    ],
)
def test_a_name_in_one_column_is_taken_apart(cell: str, names: tuple[object, ...]) -> None:
    parts = ("first_name", "middle_name", "last_name")
    assert tuple(value(cell, {"part": part}, part) for part in parts) == names


@pytest.mark.parametrize(
    "cell", ["(617) 555-0100 x12", "(617) 555-0100 ext. 12", "(617) 555-0100#12", "(617) 555-0100"]
)
def test_a_phone_loses_its_extension(cell: str) -> None:
    assert value(cell, {"part": "phone"}, "phone") == "(617) 555-0100"


def test_columns_are_joined_and_one_column_makes_several_fields() -> None:
    mapping = {
        "fields": {
            "external_id": {"column": ["Group", "No"], "join": "-"},
            "member_id": {"column": "No"},
            "city": {"column": ["Group", "Town"]},
        }
    }
    head, (first, second) = read("group,NO,Town,Odd\nA,7,Boston,x\n,8,Boston,x\n", mapping=mapping)
    assert first.values == {"external_id": "A-7", "member_id": "7", "city": "A Boston"}
    # Half of an identifier is none.
    assert second.values == {"member_id": "8", "city": "Boston"}
    assert head.ignored == ("Odd",)


def test_a_rule_without_a_column_is_for_the_one_that_has_the_fields_name() -> None:
    mapping = {
        "columns": {"Start": "effective_date"},
        "fields": {name: {"dates": ["MM/DD/YYYY"]} for name in ("dob", "effective_date", "expiry_date")},
    }
    [row] = rows_of("external_id,DOB,start\n1,1/11/1977,2/1/2026\n", mapping=mapping)
    assert row.values == {"external_id": "1", "dob": "1977-01-11", "effective_date": "2026-02-01"}


def test_a_rule_goes_before_the_column_of_the_fields_name() -> None:
    [row] = rows_of("external_id,city,Town\n1,a,b\n", mapping={"fields": {"city": {"column": "Town"}}})
    assert row.values["city"] == "b"


def test_constants_metadata_and_the_plan_of_a_row() -> None:
    mapping = {
        "fields": {
            "effective_date": {"constant": "2026-01-01"},
            "metadata.Site": {"column": "Site", "values": {"1": "North"}},
            "metadata.Source": {"constant": "HR"},
            "plan": {"column": "Plan"},
        },
        "plans": {"G": "gold-2026"},
    }
    known, unknown, none = rows_of(
        "external_id,metadata.a,Site,Plan\n1,x,1,G\n2,,2,S\n3,,2,\n", mapping=mapping
    )
    metadata = {"a": "x", "Site": "North", "Source": "HR"}
    assert known.values == {"external_id": "1", "effective_date": "2026-01-01", "metadata": metadata}
    assert (known.plan, none.plan, none.faults) == ("gold-2026", None, ())
    assert (codes(unknown), unknown.values) == ([("plan", "unknown_plan")], {"external_id": "2"})


def test_rows_can_be_left_out() -> None:
    skip = [{"column": "external_id", "equals": ["", "n/a"]}, {"column": "Name", "starts_with": "Total"}]
    content = "external_id,Name\n1,Robin\n,Robin\nN/A ,Robin\n2,TOTAL of all\n3,,\nx,total\n4\n"
    rows = rows_of(content, mapping={"skip": skip})
    assert [(row.place, row.skipped, codes(row)) for row in rows] == [
        (2, False, []),
        (3, True, []),
        (4, True, []),
        (5, True, []),
        (6, False, [("row", "wrong_column_count")]),
        (7, True, []),
        (8, False, [("row", "wrong_column_count")]),
    ]


def test_a_short_last_line_with_a_total_is_left_out_too() -> None:
    rows = rows_of(
        "Name,external_id\nRobin,1\nTotal\n", mapping={"skip": [{"column": "Name", "equals": "total"}]}
    )
    assert [(row.values, row.skipped) for row in rows] == [({"external_id": "1"}, False), ({}, True)]


def test_a_file_of_which_every_row_is_left_out_has_no_rows() -> None:
    mapping = {"skip": [{"column": "external_id", "starts_with": "e"}]}
    assert refused(lambda: rows_of("external_id\nE1\nE2\n", mapping=mapping))[0] == "no_rows"
    assert refused(lambda: rows_of('{"external_id": "E1"}\n', mapping=mapping))[0] == "no_rows"


def test_the_clearing_word_counts_in_rules() -> None:
    assert value(r"\N", {"pad": 5}, "zipcode") is None
    assert value("-", {"dates": ["MM/DD/YYYY"]}, "expiry_date", clear="-") is None


def test_a_refused_row_keeps_the_key_that_a_rule_makes() -> None:
    mapping = {"fields": {"external_id": {"column": ["a", "b"], "join": "-"}}}
    long, short = rows_of("a,b\n1,2,3\n1\n", mapping=mapping)
    assert (long.values, short.values) == ({"external_id": "1-2"}, {})


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        ({"fields": {"gender": {"column": "Sex"}}}, "missing_column"),
        ({"skip": [{"column": "Sex", "equals": ""}]}, "missing_column"),
        ({"fields": {"gender": {"column": "twice"}}}, "repeated_column"),
        ({"fields": {"external_id": {"column": "Twice"}}}, "repeated_column"),
    ],
)
def test_a_column_that_is_not_there_or_twice_fails_the_file(mapping: dict[str, Any], code: str) -> None:
    found, message = refused(lambda: rows_of("external_id,Twice,TWICE\n1,M,F\n", mapping=mapping))
    assert (found, message[:6]) == (code, "Row 1:")


def test_the_columns_of_rules_help_to_find_the_delimiter() -> None:
    mapping = {"fields": {"external_id": {"column": "Nr"}, "city": {"column": "Ort"}}}
    assert rows_of("Nr;Ort\n1;Bern\n", mapping=mapping)[0].values == {"external_id": "1", "city": "Bern"}


@pytest.mark.parametrize("is_json", [False, True])
def test_a_row_whose_rules_read_one_long_cell_again_and_again_is_refused_alone(is_json: bool) -> None:
    mapping = {"fields": {f"metadata.{number}": {"column": "Odd"} for number in range(100)}}
    cells = ["a", "x" * 656, "b"]
    if is_json:
        content = "".join(json.dumps({"external_id": n, "Odd": cell}) + "\n" for n, cell in enumerate(cells))
    else:
        content = "external_id,Odd\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells))
    rows = rows_of(content, mapping=mapping)
    assert [codes(row) for row in rows] == [[], [("row", "values_too_long")], []]
    assert [len(row.values.get("metadata", {})) for row in rows] == [100, 0, 100]  # type: ignore[arg-type]
    assert rows[1].values["external_id"] == "1"
    assert rows_of("external_id,Odd\n1," + "x" * 655, mapping=mapping)[0].faults == ()
