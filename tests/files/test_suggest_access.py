"""Who gets access by a suggested mapping: columns that may say so are asked about, and the begin is no day of hire."""

from typing import Any

import pytest

from frontdesk.errors import Invalid
from frontdesk.files.mapping import parse_mapping
from tests.files.exports import names_in, written
from tests.files.loading import Desk
from tests.files.readers.reading import rows_of
from tests.files.readers.workbooks import workbook
from tests.files.test_suggest import answered, rules_of, suggested

HEAD = "Employee ID|First Name|Last Name|Birth Date|Gender|Zip|Benefits Eligibility Date|Term Date"
WORDS = (
    "Active",
    "Terminated",
    "COBRA",
    "LOA",
    "Waived",
    "Retired",
    "Leave of Absence",
    "Terminated - Voluntary",
)


def table(name: str, words: tuple[str, ...] = WORDS) -> list[list[str]]:
    rows = (f"{n}|Robin|Sample|1977-01-13|F|02134|2026-01-01||{word}" for n, word in enumerate(words))
    return [names_in(line, "|") for line in (f"{HEAD}|{name}", *rows)]


@pytest.mark.parametrize(
    "name",
    [
        *("Status", "Employment Status", "Emp Status", "EMPL_STATUS", "Coverage Status", "Enrollment Status"),
        *("Worker Status Code", "Benefits Status", "Statut", "Active?", "Is Active"),
    ],
)
def test_a_column_of_a_status_is_asked_about_and_its_mapping_refused_until_it_is_answered(name: str) -> None:
    found = suggested(written(table(name)))
    [question] = found["questions"]
    assert question["column"] == name
    assert found["mapping"]["questions"] == {name: "open"}
    with pytest.raises(Invalid) as caught:
        parse_mapping(found["mapping"])
    [fault] = caught.value.faults
    assert (fault.code, "skip" in fault.message, "unrelated" in fault.message) == ("not_allowed", True, True)
    for choice in question["choices"]:
        skip = choice["mapping"].get("skip", [])
        answers = found["mapping"]["questions"] | choice["mapping"].get("questions", {})
        parse_mapping(found["mapping"] | {"skip": skip, "questions": answers})


def test_a_terminated_employee_gets_no_access_after_the_answer(desk: Desk) -> None:
    for content in (written(table("Employment Status")), workbook(table("Employment Status"))):
        found = suggested(content)
        [question] = found["questions"]
        ended, unsure, unrelated = (choice["mapping"] for choice in question["choices"])
        assert ended["skip"][0]["equals"] == ["terminated", "terminated - voluntary", "waived"]
        assert unsure["skip"][0]["equals"] == sorted(word.casefold() for word in WORDS[1:])
        assert unrelated == {"questions": {"Employment Status": "unrelated"}}
        assert "3 of those that were looked at" in question["choices"][0]["does"]
        file = desk.load(content, mapping=found["mapping"] | ended)
        assert file.counts["skipped"] == 3
    assert set(desk.members()) == {"0", "2", "3", "5", "6"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Class", ("Active", "COBRA", "Retiree")),
        ("Benefits Eligible", ("Yes", "No")),
        ("Enrolled", ("Y", "N")),
        ("Status", ()),
        ("Status", ("A", "T", "L")),
        ("Job Status", ("Full-Time", "Part-Time")),
    ],
)
def test_words_of_a_status_are_asked_about_too(name: str, words: tuple[str, ...]) -> None:
    [question] = suggested(written(table(name, words or ("", ""))))["questions"]
    assert question["column"] == name
    assert question["choices"][0]["mapping"]["skip"][0]["equals"]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Marital Status",
            "FLSA Status",
            "Tobacco Status",
            "Student Status",
            "Status Date",
            "Status Reason",
        ),
        *("Veteran Status", "Department"),
    ],
)
def test_another_status_is_not_asked_about(name: str) -> None:
    assert suggested(written(table(name, ("North", "South"))))["questions"] == []


def test_a_flag_of_ends_is_read_the_other_way_round() -> None:
    words = {}
    for name in ("Active", "Terminated"):
        [question] = suggested(written(table(name, ("Y", "N", "Y"))))["questions"]
        words[name] = question["choices"][0]["mapping"]["skip"][0]["equals"]
    assert words == {"Active": ["n"], "Terminated": ["y"]}


def test_words_that_are_not_known_are_counted_and_never_shown() -> None:
    found = suggested(written(table("Status", ("Active", "Sample", "M\u00fcller terminated", "Terminated"))))
    [question] = found["questions"]
    assert "2 of its 4 words" in question["question"]
    assert question["choices"][0]["mapping"]["skip"][0]["equals"] == ["terminated"]
    assert "sample" not in str(found["questions"]).lower()


BEGINS = [
    ("Original Hire Date", "Benefits Eligibility Date"),
    ("Hire Date", "ELIG_FROM_DT"),
    ("Start Date", "Coverage Begin"),
    ("Hire Date", "Health Plan Eligible From"),
    ("Date of Hire", "Benefits Service Date"),
    ("Hire Date", "Effective Date"),
]


@pytest.mark.parametrize(("hired", "begin"), BEGINS)
@pytest.mark.parametrize("has_values", [True, False])
def test_access_begins_on_no_day_of_hire_where_a_better_date_stands_beside_it(
    hired: str, begin: str, has_values: bool
) -> None:
    day = "13/01/26 or so" if not has_values else "01/13/2026"
    found = suggested(
        written([["Employee ID", hired, begin], *([str(n), "01/13/2019", day] for n in range(9))])
    )
    fields: dict[str, Any] = {each["column"]: each["fields"] for each in found["columns"]}
    assert fields[hired] == []
    assert (fields[begin] == ["effective_date"]) is has_values


def test_access_begins_on_the_day_of_hire_where_there_is_no_better_date() -> None:
    for name in ("Job Effective Date", "Dental Effective Date", "Status Effective Date"):
        rules = rules_of(written([["Employee ID", name, "Hire Date"], ["1", "2026-01-01", "2019-01-01"]]))
        assert rules["effective_date"]["column"] == "Hire Date"


@pytest.mark.parametrize(
    "name",
    [
        *("Termination Date", "Employment Termination Date", "Last Day Worked", "Benefits Term Date"),
        *("ELIG_THRU_DT", "Coverage Through Date"),
    ],
)
def test_access_ends_on_a_date_of_termination(name: str) -> None:
    rows = [["Employee ID", name], ["1", "00/00/0000"], ["2", "12/31/2026"]]
    assert rules_of(written(rows))["expiry_date"]["column"] == name


def test_zeros_in_every_row_leave_room_for_dates_of_later_files() -> None:
    rows = [["Employee ID", "DOB", "Term Date"], ["1", "01/13/1977", "00/00/0000"]]
    assert rules_of(written(rows))["expiry_date"]["dates"] == ["MM/DD/YYYY"]


def test_names_of_carriers_and_of_continued_coverage_are_known() -> None:
    head = "Member Number|QB Name|QB DOB|MBR_SEX|QB Zip|ELIG_FROM_DT|ELIG_THRU_DT"
    rows = [
        "W1|Sample, Robin|19770113|1|02134|20260101|20261231",
        "W2|Muster, Kim|19800203|2|02135|20260101|",
    ]
    content = written([names_in(line, "|") for line in (head, *rows)])
    found = suggested(content)
    assert found["refused"] == []
    first, second = rows_of(content, mapping=answered(found))
    assert first.values == {
        "external_id": "W1", "member_id": "W1", "first_name": "Robin", "last_name": "Sample", "dob": "1977-01-13",
        "gender": "male", "zipcode": "02134", "effective_date": "2026-01-01", "expiry_date": "2026-12-31",
    }  # fmt: skip
    assert second.values["gender"] == "female"
    [sex] = [each for each in found["columns"] if each["column"] == "MBR_SEX"]
    assert sex["confidence"] < 0.8
