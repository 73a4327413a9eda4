"""Exports of payroll and benefit systems, with invented people: the suggestion alone makes every row loadable."""

from typing import Any

import pytest

from tests.files.exports import names_in, written
from tests.files.readers.reading import rows_of
from tests.files.test_suggest import suggested

# The header, and the first rows. Other rows differ in the numbers only.
EXPORTS: dict[str, tuple[str, list[str]]] = {
    "names run together": (
        "EecEmpNo|EepNameLast|EepNameFirst|EepNameMiddle|EepDateOfBirth|EepGender|EepAddressZipCode|EecDateOfLastHire",
        [
            "00001|Sample|Robin|J|01/13/1977|F|02134|03/14/2019",
            "00002|Muster|Kim||02/03/1980|M|02135|01/02/2020",
        ],
    ),
    "formats in the header, zeros for no date": (
        "Employee_Code|Employee_Name|SS_Number|Birth_Date_(MM/DD/YYYY)|Gender|Primary_Zip/Postal_Code|Hire_Date|Termination_Date",
        [
            "A1|SAMPLE, ROBIN|XXX-XX-0001|01/13/1977|F|02134|03/14/2019|00/00/0000",
            "A2|MUSTER, KIM|XXX-XX-0002|02/03/1980|M|02135|01/02/2020|12/31/2026",
        ],
    ),
    "words for no end and no gender": (
        "Employee #|First Name|Last Name|Birth Date|Gender|Zip Code|Hire Date|Termination Date",
        [
            "1|Robin|Sample|1977-01-13|Not Declared|02134|2019-03-14|0000-00-00",
            "2|Kim|Muster|1980-02-03|Female|02135|2020-01-02|N/A",
        ],
    ),
    "columns of a database": (
        "EMPLID|NAME|BIRTHDATE|SEX|POSTAL|EMAIL_ADDR|HIRE_DT|EFFDT",
        [
            "01|Sample,Robin J|1977-01-13|F|02134|a@example.com|2019-03-14|2026-01-01",
            "02|Muster,Kim|1980-02-03|M|02135||2020-01-02|2026-01-01",
        ],
    ),
    "abbreviations": (
        "MEM_ID|MEM_FIRST_NM|MEM_LAST_NM|MEM_BIRTH_DT|MEM_GENDER_CD|MEM_ZIP_CD|MEM_STATE_CD|COV_EFF_DT|COV_TERM_DT",
        [
            "W1|Robin|Sample|19770113|F|02134|MA|20260101|99991231",
            "W2|Kim|Muster|19800203|M|02135|MA|20260101|",
        ],
    ),
    "a list that somebody made": (
        "#|Emp. No.|Full Name|D.O.B.|M/F|E-mail|Cell #|Zip|Start",
        [
            "1|501|Robin Sample|1/13/1977|F|a@example.com|(617) 555-0100|02134|1/1/2026",
            "2|502|Kim Muster|2/3/1980|M||617.555.0101|02135|1/1/2026",
        ],
    ),
    "paths of objects": (
        "id|patient.name.0.given.0|patient.name.0.family|patient.birthDate|patient.gender|patient.address.0.postalCode|period.start",
        ["c1|Robin|Sample|1977-01-13|female|02134|2026-01-01"],
    ),
}


def table(header: str, rows: list[str]) -> bytes:
    return written([names_in(header, "|"), *(names_in(row, "|") for row in rows)])


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_needs_nothing_but_its_suggestion(name: str) -> None:
    content = table(*EXPORTS[name])
    found = suggested(content)
    assert (found["refused"], found["refused_rows"]) == ([], 0)
    rows = [row.values for row in rows_of(content, mapping=found["mapping"])]
    names = [(str(row["first_name"]).title(), str(row["last_name"]).title()) for row in rows]
    assert names == [("Robin", "Sample"), ("Kim", "Muster")][: len(rows)]
    assert [row["dob"] for row in rows] == ["1977-01-13", "1980-02-03"][: len(rows)]
    assert {row["effective_date"] for row in rows} <= {"2026-01-01", "2019-03-14", "2020-01-02"}


# What tells the persons of a family apart; the keys, and how sure the suggestion is of them.
FAMILIES: list[tuple[str, list[str], list[str], bool]] = [
    ("Person Code", ["01", "02", "03"], ["E1-01", "E1-02", "E1-03", "E2-01"], True),
    ("Dependent Number", ["", "1", "2"], ["E1-0", "E1-1", "E1-2", "E2-0"], True),
    (
        "Relationship",
        ["Employee", "Spouse", "Child"],
        ["E1-Employee", "E1-Spouse", "E1-Child", "E2-Employee"],
        False,
    ),
    ("Relationship", ["Employee", "Child", "Child"], ["E1-Robin", "E1-Kim", "E1-Sam", "E2-Robin"], False),
]


@pytest.mark.parametrize(("column", "cells", "keys", "is_sure"), FAMILIES)
def test_dependents_under_the_number_of_the_employee_are_told_apart(
    column: str, cells: list[str], keys: list[str], is_sure: bool
) -> None:
    rows = [
        f"E{family}|{first}|Sample|F|01/13/19{family}{place}|02134|01/01/2026|{cell}"
        for family in (1, 2)
        for place, (first, cell) in enumerate(zip(("Robin", "Kim", "Sam"), cells, strict=True))
    ]
    content = table(f"Employee ID|First Name|Last Name|Gender|DOB|Zip|Effective Date|{column}", rows)
    found = suggested(content)
    assert found["refused"] == []
    assert [row.values["external_id"] for row in rows_of(content, mapping=found["mapping"])][:4] == keys
    [number] = [each for each in found["columns"] if each["column"] == "Employee ID"]
    assert (number["confidence"] > 0.8) is is_sure


def test_a_number_that_stands_twice_without_a_family_is_no_reason_for_other_keys() -> None:
    rows = [f"1|{first}|Sample|F|01/13/1977|02134|01/01/2026" for first in ("Robin", "Kim")]
    found = suggested(table("Employee ID|First Name|Last Name|Gender|DOB|Zip|Effective Date", rows))
    [refused] = found["refused"]
    assert (refused["field"], refused["code"], refused["rows"]) == ("external_id", "repeated_differently", 2)
    assert refused["advice"] is None


def test_codes_of_relationships_are_read_as_such() -> None:
    rows = [
        "1|Robin|Sample|F|01/13/1977|02134|01/01/2026|18",
        "2|Kim|Muster|M|02/03/1980|02135|01/01/2026|19",
    ]
    content = table("Employee ID|First Name|Last Name|Gender|DOB|Zip|Effective Date|Rel Cd", rows)
    read: list[dict[str, Any]] = [
        dict(row.values) for row in rows_of(content, mapping=suggested(content)["mapping"])
    ]
    assert [(row["relationship_code_hipaa"], row["subscriber_relationship"]) for row in read] == [
        ("18", "Primary"),
        ("19", "Dependent"),
    ]
