"""Who gets access by a suggested mapping: columns that may say so are asked about, and the begin is no day of hire."""

from typing import Any

import pytest

from frontdesk.errors import Invalid
from frontdesk.mapping.parser import parse_mapping
from tests.files.exports import names_in, written
from tests.files.loading import Desk
from tests.formats.reading import rows_of
from tests.formats.workbooks import workbook
from tests.mapping.test_suggest import answered, rules_of, suggested

HEAD = "Employee ID|First Name|Last Name|Birth Date|Gender|Zip|Benefits Eligibility Date|Term Date"
WORDS = names_in(
    "Active|Terminated|COBRA|LOA|Waived|Retired|Leave of Absence|Terminated - Voluntary|Not Eligible", "|"
)
STATUSES = "Status|Action Code|Employment Status|Emp Status|EMPL_STATUS|Coverage Status|Worker Status Code|Benefits Status"
OTHERS = "Marital Status|FLSA Status|Tobacco Status|Student Status|Status Date|Status Reason|Veteran Status|Department"
ENDS = "Termination Date|Employment Termination Date|Last Day Worked|Benefits Term Date|ELIG_THRU_DT|Coverage Through Date"
Choice = dict[str, Any]


def table(name: str, words: list[str]) -> list[list[str]]:
    rows = (f"{n}|Robin|Sample|1977-01-13|F|02134|2026-01-01||{word}" for n, word in enumerate(words))
    return [names_in(line, "|") for line in (f"{HEAD}|{name}", *rows)]


def choices_for(name: str, words: list[str]) -> list[Choice]:
    [question] = suggested(written(table(name, words)))["questions"]
    assert question["column"] == name
    return [choice["mapping"] for choice in question["choices"]]


def ended_words(choice: Choice) -> list[str]:
    return [word for rule in choice["end"] for word in rule["equals"]]


@pytest.mark.parametrize("name", [*names_in(STATUSES, "|"), "Active?", "Is Active"])
def test_a_column_of_a_status_is_asked_about_and_its_mapping_refused_until_it_is_answered(name: str) -> None:
    mapping = suggested(written(table(name, WORDS)))["mapping"]
    assert mapping["questions"] == {name: "open"}
    with pytest.raises(Invalid) as caught:
        parse_mapping(mapping)
    [fault] = caught.value.faults
    assert fault.code == "not_allowed"
    assert [word for word in ("end", "skip", "unrelated") if word not in fault.message] == []
    for choice in choices_for(name, WORDS):
        parse_mapping(mapping | choice)


@pytest.mark.parametrize("name", ["Medical Plan Election", "Medical Plan"])
def test_a_plan_that_members_waived_is_asked_about(name: str) -> None:
    assert choices_for(name, ["PPO 500", "Waive", "HSA 2000"])
    assert not suggested(written(table("Dental Plan", ["DMO", "Waive"])))["questions"]


def test_each_choice_says_who_has_access_and_does_that(desk: Desk) -> None:
    ends, unrelated = choices_for("Job Status", WORDS)
    mapping = suggested(written(table("Job Status", WORDS)))["mapping"] | ends
    for content in (written(table("Job Status", WORDS)), workbook(table("Job Status", WORDS))):
        [question] = suggested(content)["questions"]
        assert ended_words(ends) == ["not eligible", "terminated", "terminated - voluntary", "waived"]
        assert unrelated == {"questions": {"Job Status": "unrelated"}}
        said = question["choices"][0]["does"]
        assert '"terminated - voluntary", "waived" (4 of the rows' in said
        assert "on the row's expiry_date, else on the day of the file" in said
        assert '"cobra", "leave of absence", "loa", "retired" have access' in question["question"]
        assert desk.load(content, mapping=mapping).counts["skipped"] == 4
    assert set(desk.members()) == {"0", "2", "3", "5", "6"}
    left = written(table("Job Status", ["Terminated"]))
    assert desk.load(left, mapping=mapping).counts == {"ended": 1}


@pytest.mark.parametrize(
    ("name", "words", "ended"),
    [
        ("Class", "Active|Deceased|Retiree", "deceased"),
        ("Benefits Eligible", "Yes|No", "no"),
        ("Enrolled", "Y|Y", "0|false|n|no"),
        ("Active", "Y|N", "n"),
        ("Terminated", "Y|N", "y"),
        ("Status", "", "deceased|inactive|terminated"),
        ("Status", "A|T|L", "t"),
        ("Type", "A|T", "t"),
        ("Status", "Not Active|Not Enrolled|Opt Out", "not active|not enrolled|opt out"),
        ("Job Status", "Full-Time|Part-Time", "deceased|inactive|terminated"),
    ],
)
def test_words_of_a_status_are_asked_about_too(name: str, words: str, ended: str) -> None:
    assert ended_words(choices_for(name, words.split("|"))[0]) == ended.split("|")


@pytest.mark.parametrize("name", names_in(OTHERS, "|"))
def test_another_status_is_not_asked_about(name: str) -> None:
    assert suggested(written(table(name, ["North", "South"])))["questions"] == []


def test_words_that_are_not_known_are_counted_and_never_shown() -> None:
    words = ["Active", "Sample", "M\u00fcller terminated", "Terminated"]
    found = suggested(written(table("Status", words)))
    assert "2 of its 4 words" in found["questions"][0]["question"]
    assert ended_words(choices_for("Status", words)[0]) == ["terminated"]
    assert "sample" not in str(found["questions"]).lower()


BEGINS = [
    ("Original Hire Date", "Benefits Eligibility Date"),
    ("Hire Date", "ELIG_FROM_DT"),
    ("Start Date", "Coverage Begin"),
    ("Hire Date", "Health Plan Eligible From"),
    ("Date of Hire", "Benefits Service Date"),
    ("Hire Date", "Effective Date"),
    ("Hire Date", "Dependent Effective Date"),
]


@pytest.mark.parametrize(("hired", "begin"), BEGINS)
@pytest.mark.parametrize("has_values", [True, False])
def test_access_begins_on_no_day_of_hire_where_a_better_date_stands_beside_it(
    hired: str, begin: str, has_values: bool
) -> None:
    day = "01/13/2026" if has_values else "13/01/26 or so"
    rows = ([str(n), "01/13/2019", day] for n in range(9))
    found = suggested(written([["Employee ID", hired, begin], *rows]))
    fields: dict[str, Any] = {each["column"]: each["fields"] for each in found["columns"]}
    assert fields[hired] == []
    assert (fields[begin] == ["effective_date"]) is has_values


@pytest.mark.parametrize("name", ["Job Effective Date", "Dental Effective Date", "Status Effective Date"])
def test_access_begins_on_the_day_of_hire_where_there_is_no_better_date(name: str) -> None:
    rules = rules_of(written([["Employee ID", name, "Hire Date"], ["1", "2026-01-01", "2019-01-01"]]))
    assert rules["effective_date"]["column"] == "Hire Date"


@pytest.mark.parametrize("name", [*names_in(ENDS, "|"), "Death Date"])
def test_access_ends_on_a_date_of_termination(name: str) -> None:
    rows = [["Employee ID", name], ["1", "00/00/0000"], ["2", "12/31/2026"]]
    assert rules_of(written(rows))["expiry_date"]["column"] == name
    # Zeros in every row leave room for dates of later files.
    only = [["Employee ID", "DOB", name], ["1", "01/13/1977", "00/00/0000"]]
    assert rules_of(written(only))["expiry_date"]["dates"] == ["MM/DD/YYYY"]


def test_access_ends_with_the_coverage_rather_than_with_the_employment() -> None:
    head = ["Employee ID", "DateOfTermination", "CovStopDate"]
    rules = rules_of(written([head, ["1-0", "2026-09-15", "2026-09-30"], ["1-1", "", "2026-09-30"]]))
    assert rules["expiry_date"]["column"] == "CovStopDate"
    # A column of coverage without any date is none to rely on.
    rules = rules_of(written([head, ["1-0", "2026-09-15", ""]]))
    assert rules["expiry_date"]["column"] == "DateOfTermination"


def test_names_of_reports_are_known() -> None:
    head = "Individual ID|Worker|Preferred First Name|Legal First Name|First Day of COBRA|Last Day of COBRA|Hire Date"
    row = "I10001|Sample, Robin|Rob|Robin|2026-01-01|2026-12-31|2019-01-01"
    found = suggested(written([names_in(head, "|"), row.split("|")]))["columns"]
    fields = ["external_id", "last_name", None, "first_name", "effective_date", "expiry_date", None]
    assert [next(iter(each["fields"]), None) for each in found] == fields


def test_names_of_carriers_and_of_continued_coverage_are_known() -> None:
    rows = [
        "Member Number|QB Name|QB DOB|MBR_SEX|QB Zip|ELIG_FROM_DT|ELIG_THRU_DT",
        "W1|Sample, Robin|19770113|1|02134|20260101|20261231",
        "W2|Muster, Kim|19800203|2|02135|20260101|",
    ]
    content = written([names_in(line, "|") for line in rows])
    found = suggested(content)
    assert found["refused"] == []
    first, _ = rows_of(content, mapping=answered(found))
    assert first.values == {
        "external_id": "W1", "member_id": "W1", "first_name": "Robin", "last_name": "Sample", "dob": "1977-01-13",
        "gender": "male", "zipcode": "02134", "effective_date": "2026-01-01", "expiry_date": "2026-12-31",
    }  # fmt: skip
    assert found["columns"][3]["confidence"] < 0.8  # genders in numbers are a guess


@pytest.mark.parametrize(("suffixes", "keys"), [("00|01", ["S1-00", "S1-01"]), ("Jr.|", ["S1", "S1"])])
def test_a_suffix_is_the_number_of_a_person_unless_it_is_that_of_a_name(
    suffixes: str, keys: list[str]
) -> None:
    rows = (["S1", each, f"R{each}"] for each in suffixes.split("|"))
    content = written([["Subscriber ID", "Suffix", "First Name"], *rows])
    found = rows_of(content, mapping=suggested(content)["mapping"])
    assert [row.values["external_id"] for row in found] == keys
