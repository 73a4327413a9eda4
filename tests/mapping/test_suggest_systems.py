"""Header rows of payroll and benefit systems, with invented people: the suggestion and at most one
constant make every row loadable, under a key of each person's own. Columns that may say who has
access are asked about.
"""

import json
import re
from typing import Any

import pytest

from frontdesk.errors import Invalid
from frontdesk.mapping.parser import parse_mapping
from tests.files.exports import names_in, written
from tests.files.loading import Desk
from tests.formats.reading import read, rows_of
from tests.formats.workbooks import workbook
from tests.mapping.suggesting import answered, rules_of, suggested

# Of each system: its name, the keys with their first names (and the field that the suggestion
# leaves to be said), header, rows.
SYSTEMS = """\
a row for each coverage, dependents without an address
1001-Employee Robin, 1001-Spouse Alex, 1002-Employee Lee
Company Name|EID|Last Name|First Name|Middle Initial|SSN|Relationship|Gender|Birth Date\
|Hire Date|Address 1|City|State|ZIP\
|Email|Plan Type|Plan Name|Coverage Effective Date|Coverage Level
Ex|1001|Sample|Robin|J|123-45-6789|Employee|F|01/13/1977|03/14/2019|1 St|Boston|MA|02134|\
|Medical|P|01/01/2026|F
Ex|1001|Sample|Robin|J|123-45-6789|Employee|F|01/13/1977|03/14/2019|1 St|Boston|MA|02134|\
|Dental|D|01/01/2024|F
Ex|1001|Sample|Alex||123-45-6780|Spouse||02/03/1978|||||||Medical|P|01/01/2026|F
Ex|1002|Muster|Lee||123-45-6782|Employee|M|02/03/1980|01/02/2020|2 St|Salem|MA|01970||Medical|H\
|01/01/2026|E

a number of each person, and the family's beside it
M1 Robin, M2 Kim, M3 Lee
Client Employee ID|Member ID|Relationship Code|Last Name|First Name|MI|Birth Date|Gender\
|Address1|City|State|Zip Code\
|Benefit Type|Plan Code|Coverage Begin Date|Coverage End Date|Eligibility Class
E1|M1|S|Sample|Robin|J|19770113|F|1 St|Boston|MA|02134|MED|P1|20260101||FT
E1|M2|C|Sample|Kim||20100506|M|||||MED|P1|20260101||FT
E2|M3|S|Muster|Lee||19800203|M|2 St|Salem|MA|01970|MED|P1|20260101|20261231|PT

no gender
a1 Robin, a2 Lee, gender
Employee ID|Last name|First name|Middle initial|SSN (last four)|Date of birth|Personal email\
|Phone|Home address street 1\
|Home address city|Home address state|Home address zip|Start date|Termination date|Employment type
a1|Sample|Robin|J|6789|01/13/1977|a@example.com|(617) 555-0100|1 St|Boston|MA|02134|03/14/2019|\
|Full time
a2|Muster|Lee||6780|02/03/1980|b@example.com||2 St|Salem|MA|01970|01/02/2020||Full time

the employee's name on the rows of dependents
200-Employee Robin, 200-Child Kim, 201-Employee Lee
Employee Number|Employee Name (Last Suffix, First MI)|Dependent Name (Last Suffix, First MI)\
|Relationship|Birth Date|Gender\
|Address Line 1|City|State|Zip|Plan Code|Coverage Start Date|Coverage Stop Date
200|Sample, Robin J|Sample, Robin J|Employee|01/13/1977|F|1 St|Boston|MA|02134|MED1|01/01/2026|
200|Sample, Robin J|Sample, Kim|Child|05/06/2010|M|||||MED1|01/01/2026|
201|Muster, Lee|Muster, Lee|Employee|02/03/1980|M|2 St|Salem|MA|01970|MED1|01/01/2026|12/31/2026

the name of a dependent beside the employee's
200 Robin, 201 Lee
Employee Number|Employee Name|Dependent Name|Birth Date|Gender|Zip|Start Date
200|Sample, Robin|Sample, Kim|01/13/1977|F|02134|01/01/2026
201|Muster, Lee||02/03/1980|M|01970|01/01/2026

member numbers that count within the family
E1-01 Robin, E1-02 Kim, E2-01 Lee
SSN|Employee ID|Subscriber Number|Member Number|First Name|Last Name|Gender|DOB|Relationship\
|City|State|ZIP|Benefit|Plan\
|Effective Date|Term Date
123456789|E1|S1|01|Robin|Sample|F|1977-01-13|Self|Boston|MA|02134|Medical|P|2026-01-01|
123456780|E1|S1|02|Kim|Sample|M|2010-05-06|Child|Boston|MA|02134|Medical|P|2026-01-01|
123456781|E2|S2|01|Lee|Muster|M|1980-02-03|Self|Salem|MA|01970|Medical|P|2026-01-01|2026-12-31

names of carriers and of continued coverage
W1 Robin, W2 Kim
Member Number|QB Name|QB DOB|MBR_SEX|QB Zip|ELIG_FROM_DT|ELIG_THRU_DT
W1|Sample, Robin|19770113|1|02134|20260101|20261231
W2|Muster, Kim|19800203|2|02134|20260101|

paths of objects
c1 Robin
id|patient.name.0.given.0|patient.name.0.family|patient.birthDate|patient.gender\
|patient.address.0.postalCode|period.start
c1|Robin|Sample|1977-01-13|female|02134|2026-01-01
"""


def table(header: str, rows: list[str]) -> bytes:
    return written([names_in(header, "|"), *(names_in(row, "|") for row in rows)])


@pytest.mark.parametrize(
    "system", SYSTEMS.split("\n\n"), ids=lambda system: system.partition("\n")[0]
)
def test_the_suggestion_and_one_constant_read_every_row(system: str) -> None:
    _, persons, header, *rows = system.strip().split("\n")
    told = [each.split(" ") for each in persons.split(", ")]
    content = table(header, rows)
    found = suggested(content)
    assert [each["field"] for each in found["refused"]] == [
        each[0] for each in told if len(each) == 1
    ]
    mapping = answered(found)
    for each in found["refused"]:
        [example] = re.findall('{"fields".*}', each["advice"])
        mapping["fields"] |= json.loads(example)["fields"]
    _, read_rows = read(content, mapping=mapping)
    values = [row.values for row in read_rows if not row.skipped]
    assert [[row["external_id"], row["first_name"]] for row in values] == [
        each for each in told if each[1:]
    ]
    assert {str(row["zipcode"]) for row in values} <= {"02134", "01970"}


FAMILY = {"fields": {"family": {"column": "House"}}}
HEAD = "external_id|member_id|first_name|last_name|dob|gender|zipcode|city|effective_date|House"


def in_house(number: str, house: str, address: str) -> str:
    return f"{number}|{number}|Robin {number}|Sample|1980-02-03|female|{address}|2026-01-01|{house}"


def test_a_row_without_a_zip_code_lives_with_its_family_wherever_that_stands(desk: Desk) -> None:
    rows = [
        in_house("E1", "H1", "|"),
        in_house("E2", "H1", "02134|Boston"),
        in_house("E3", "H2", "|"),
    ]
    content = table(HEAD, rows)
    file = desk.load(content, mapping=FAMILY)
    created = [(3, "created", ""), (2, "created", ""), (2, "warned", "address_of_subscriber")]
    assert desk.outcomes(file) == [*created, (4, "refused", "required")]
    assert {key: each["city"] for key, each in desk.members().items()} == {
        "E1": "Boston",
        "E2": "Boston",
    }
    desk.load(content.replace(b"02134,Boston", b"01970,Salem"), mapping=FAMILY)
    assert {each["zipcode"] for each in desk.members().values()} == {"01970"}


def test_only_the_subscriber_gives_its_address_where_the_file_says_its_role() -> None:
    head = f"{HEAD}|subscriber_relationship"
    people = [
        ("E1", "02134|Boston", "Dependent"),
        ("E2", "01970|Salem", "Primary"),
        ("E3", "|", "Dependent"),
    ]
    rows = [f"{in_house(number, 'H1', address)}|{role}" for number, address, role in people]
    as_json = json.dumps(
        [dict(zip(names_in(head, "|"), names_in(row, "|"), strict=True)) for row in rows]
    )
    for content in (table(head, rows), as_json):
        found = {
            row.values["external_id"]: row.values["zipcode"]
            for row in rows_of(content, mapping=FAMILY)
        }
        assert found == {"E1": "02134", "E2": "01970", "E3": "01970"}


LIST = "Employee ID|First Name|Last Name|Gender|DOB|Zip|Effective Date"


def listed(column: str, cells: list[str]) -> bytes:
    """A list with a column more: a person for each cell."""
    rows = [
        f"{n}|Robin|Sample|F|01/13/1977|02134|01/01/2026|{cell}" for n, cell in enumerate(cells)
    ]
    return table(f"{LIST}|{column}", rows)


def test_a_column_of_coverages_with_an_unknown_word_leaves_no_row_out() -> None:
    assert (
        "skip"
        not in suggested(listed("Benefit Type", ["Medical", "Dental", "Blue Choice"]))["mapping"]
    )


# What tells the persons of a family apart; what it adds to the family's number, and how sure the
# suggestion is of them.
FAMILIES: list[tuple[str, list[str], list[str], bool]] = [
    ("Person Code", ["01", "02", "03"], ["01", "02", "03"], True),
    ("Dependent Number", ["", "1", "2"], ["0", "1", "2"], True),
    ("Relationship", ["Employee", "Spouse", "Child"], ["Employee", "Spouse", "Child"], False),
    ("Relationship", ["Employee", "Child", "Child"], ["DIGEST", "DIGEST", "DIGEST"], False),
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
    content = table(f"{LIST}|{column}", rows)
    found = suggested(content)
    assert found["refused"] == []
    values = [row.values for row in rows_of(content, mapping=found["mapping"])]
    named = [f"E{family}-{key}" for family in (1, 2) for key in keys]
    made = [(str(each["external_id"]), str(each["member_id"])) for each in values]
    assert len(set(made)) == len(made)
    shown = [tuple(re.sub(r"-[0-9a-f]{8}$", "-DIGEST", key) for key in pair) for pair in made]
    assert shown == [(key, key) for key in named]
    assert (found["columns"][0]["confidence"] > 0.8) is is_sure


def test_a_number_that_stands_twice_without_a_family_is_no_reason_for_other_keys() -> None:
    rows = [f"1|{first}|Sample|F|01/13/1977|02134|01/01/2026" for first in ("Robin", "Kim")]
    [refused] = suggested(table(LIST, rows))["refused"]
    assert (refused["field"], refused["code"], refused["rows"]) == (
        "external_id",
        "repeated_differently",
        2,
    )
    assert "1 times several people have one identifier: rows 2 and 3." in refused["advice"]


HOUSEHOLD = f"{LIST}|Relationship|Person Code"


def household(number: int, *, first: str = "", relation: str = "Employee", code: str = "1") -> str:
    """A row of a family; the employee's by default."""
    first = first or f"Robin{number}"
    day = f"02/{1 + number % 28:02}/{1960 + number % 40}"
    return f"E{number}|{first}|Sample|F|{day}|02134|01/01/2026|{relation}|{code}"


EMPLOYEES = [household(number) for number in range(100)]


def key_columns(found: dict[str, Any]) -> Any:
    mapping = found["mapping"]
    plain = [name for name, field in mapping["columns"].items() if field == "external_id"]
    return plain or mapping["fields"]["external_id"]["column"]


def test_a_few_clashes_are_named_by_their_rows_and_change_no_identifier() -> None:
    stray = [household(7, first="Kim"), household(9, first="Lee")]
    found = suggested(table(HOUSEHOLD, [*EMPLOYEES, *stray]))
    assert key_columns(found) == ["Employee ID"]
    [refused] = found["refused"]
    assert (refused["code"], refused["rows"], found["refused_rows"]) == (
        "repeated_differently",
        4,
        4,
    )
    assert (
        "2 times several people have one identifier: rows 9 and 102; rows 11 and 103."
        in (refused["advice"])
    )
    assert [name for name in ("Kim", "Lee", "Robin", "E7") if name in str(found["refused"])] == []


def test_a_repeated_person_number_is_no_reason_for_names_in_identifiers() -> None:
    spouses = [household(n, first="Kim", relation="Spouse", code="2") for n in range(50)]
    twice = household(3, first="Lee", relation="Spouse", code="2")
    found = suggested(table(HOUSEHOLD, [*EMPLOYEES, *spouses, twice]))
    assert key_columns(found) == ["Employee ID", "Person Code"]
    assert [each["rows"] for each in found["refused"]] == [2]


def test_rows_of_one_person_that_differ_are_no_clash_and_are_named(desk: Desk) -> None:
    again = household(3).replace("02134", "01970")
    content = table(HOUSEHOLD, [*EMPLOYEES, again])
    found = suggested(content)
    assert key_columns(found) == ["Employee ID"]
    [refused] = found["refused"]
    assert "rows of one person differ: rows 5 and 102." in refused["advice"]
    assert desk.load(content, mapping=found["mapping"]).counts == {"created": 99, "refused": 2}


@pytest.mark.parametrize("head", [LIST, f"{LIST}|Relationship"])
def test_families_get_an_identifier_that_refuses_nobody(head: str, desk: Desk) -> None:
    people = [
        (number, first, day, relation)
        for number in range(30)
        for first, day, relation in (
            ("Robin", "01/13/1977", "Employee"),
            ("George", "02/03/2010", "Child"),
            ("George", "05/06/2012", "Child"),
        )
    ]
    rows = [
        f"E{number}|{first}|Sample{number}|M|{day}|02134|01/01/2026|{relation}"
        for number, first, day, relation in people
    ]
    if head == LIST:
        rows = [row.rpartition("|")[0] for row in rows]
    content = table(head, rows)
    found = suggested(content)
    assert found["refused"] == []
    assert key_columns(found) == ["Employee ID", "First Name", "DOB"]
    assert desk.load(content, mapping=found["mapping"]).counts == {"created": 90}
    assert [key for key in desk.members() if not re.fullmatch("E[0-9]+-[0-9a-f]{8}", key)] == []


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        ("E|S|C", {"e": "18", "s": "01", "c": "19"}),
        ("S|D", {"s": "18", "d": "19"}),
        ("P|S|D", {"d": "19"}),
        ("E|W|S|D", {"e": "18", "w": "01", "d": "19"}),
        ("18|01|19", {"18": "18", "01": "01", "19": "19"}),
        ("01|02|03", None),
    ],
)
def test_a_code_that_may_mean_two_relationships_is_not_guessed(
    words: str, codes: dict[str, str] | None
) -> None:
    rules = suggested(listed("Rel Cd", words.split("|")))["mapping"]["fields"]
    assert rules.get("relationship_code_hipaa", {}).get("values") == codes


def test_codes_of_relationships_are_no_identifier_of_any_name() -> None:
    found = suggested(listed("Subscriber Code", ["S", "D", "D"]))
    assert found["columns"][-1]["fields"] == [
        "relationship_code",
        "relationship_code_hipaa",
        "subscriber_relationship",
    ]
    found = suggested(listed("Subscriber Code", ["S10", "S11", "S12"]))
    assert found["columns"][-1]["fields"] == ["member_id"]


STAFF = "Employee ID|First Name|Last Name|Birth Date|Gender|Zip|Benefits Eligibility Date|Term Date"
WORDS = names_in(
    "Active|Terminated|COBRA|LOA|Waived|Retired|Leave of Absence|Terminated - Voluntary|Not Eligible",
    "|",
)
STATUSES = (
    "Status|Action Code|Employment Status|Emp Status|EMPL_STATUS|Coverage Status|"
    "Worker Status Code|Benefits Status"
)
OTHERS = (
    "Marital Status|FLSA Status|Tobacco Status|Student Status|Status Date|Status Reason|"
    "Veteran Status|Department"
)
ENDS = (
    "Termination Date|Employment Termination Date|Last Day Worked|Benefits Term Date|ELIG_THRU_DT|"
    "Coverage Through Date"
)
Choice = dict[str, Any]


def staff(name: str, words: list[str]) -> list[list[str]]:
    rows = (
        f"{n}|Robin|Sample|1977-01-13|F|02134|2026-01-01||{word}" for n, word in enumerate(words)
    )
    return [names_in(line, "|") for line in (f"{STAFF}|{name}", *rows)]


def choices_for(name: str, words: list[str]) -> list[Choice]:
    [question] = suggested(written(staff(name, words)))["questions"]
    assert question["column"] == name
    return [choice["mapping"] for choice in question["choices"]]


def ended_words(choice: Choice) -> list[str]:
    return [word for rule in choice["end"] for word in rule["equals"]]


@pytest.mark.parametrize("name", [*names_in(STATUSES, "|"), "Active?", "Is Active"])
def test_a_status_column_needs_an_answer_before_its_mapping_is_taken(name: str) -> None:
    mapping = suggested(written(staff(name, WORDS)))["mapping"]
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
    assert not suggested(written(staff("Dental Plan", ["DMO", "Waive"])))["questions"]


def test_each_choice_says_who_has_access_and_does_that(desk: Desk) -> None:
    ends, *_, unrelated = choices_for("Job Status", WORDS)
    mapping = suggested(written(staff("Job Status", WORDS)))["mapping"] | ends
    for content in (written(staff("Job Status", WORDS)), workbook(staff("Job Status", WORDS))):
        [question] = suggested(content)["questions"]
        assert ended_words(ends) == [
            "not eligible",
            "terminated",
            "terminated - voluntary",
            "waived",
        ]
        assert unrelated == {"questions": {"Job Status": "unrelated"}}
        said = question["choices"][0]["does"]
        assert '"terminated - voluntary", "waived" (4 of the rows' in said
        assert "on the row's expiry_date, else on the day of the file" in said
        assert '"cobra", "leave of absence", "loa", "retired" have access' in question["question"]
        assert desk.load(content, mapping=mapping).counts["skipped"] == 4
    assert set(desk.members()) == {"0", "2", "3", "5", "6"}
    left = written(staff("Job Status", ["Terminated"]))
    assert desk.load(left, mapping=mapping).counts == {"ended": 1, "lost": 1}


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
    assert suggested(written(staff(name, ["North", "South"])))["questions"] == []


def test_words_that_are_not_known_are_counted_and_never_shown() -> None:
    words = ["Active", "Sample", "M\u00fcller terminated", "Terminated"]
    found = suggested(written(staff("Status", words)))
    assert "2 of its 4 words" in found["questions"][0]["question"]
    assert ended_words(choices_for("Status", words)[0]) == ["terminated"]
    assert "sample" not in str(found["questions"]).lower()


BEGINS = [
    ("Original Hire Date", "Benefits Eligibility Date"),
    ("Start Date", "Coverage Begin"),
    ("Date of Hire", "Benefits Service Date"),
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


@pytest.mark.parametrize(
    "name", ["Job Effective Date", "Dental Effective Date", "Status Effective Date"]
)
def test_access_begins_on_the_day_of_hire_where_there_is_no_better_date(name: str) -> None:
    rules = rules_of(
        written([["Employee ID", name, "Hire Date"], ["1", "2026-01-01", "2019-01-01"]])
    )
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
    rules = rules_of(
        written([head, ["1-0", "2026-09-15", "2026-09-30"], ["1-1", "", "2026-09-30"]])
    )
    assert rules["expiry_date"]["column"] == "CovStopDate"
    # A column of coverage without any date is none to rely on.
    rules = rules_of(written([head, ["1-0", "2026-09-15", ""]]))
    assert rules["expiry_date"]["column"] == "DateOfTermination"


def test_names_of_reports_are_known() -> None:
    head = (
        "Individual ID|Worker|Preferred First Name|Legal First Name|First Day of COBRA|"
        "Last Day of COBRA|Hire Date"
    )
    row = "I10001|Sample, Robin|Rob|Robin|2026-01-01|2026-12-31|2019-01-01"
    found = suggested(written([names_in(head, "|"), row.split("|")]))["columns"]
    fields = ["external_id", "last_name", None, "first_name", "effective_date", "expiry_date", None]
    assert [next(iter(each["fields"]), None) for each in found] == fields


def test_genders_in_numbers_are_a_guess() -> None:
    content = written([["Employee ID", "MBR_SEX"], ["1", "1"], ["2", "2"]])
    found = suggested(content)
    assert found["columns"][1]["confidence"] < 0.8
    genders = [row.values["gender"] for row in rows_of(content, mapping=found["mapping"])]
    assert genders == ["male", "female"]


@pytest.mark.parametrize(
    ("suffixes", "keys"), [("00|01", ["S1-00", "S1-01"]), ("Jr.|", ["S1", "S1"])]
)
def test_a_suffix_is_the_number_of_a_person_unless_it_is_that_of_a_name(
    suffixes: str, keys: list[str]
) -> None:
    rows = (["S1", each, f"R{each}"] for each in suffixes.split("|"))
    content = written([["Subscriber ID", "Suffix", "First Name"], *rows])
    found = rows_of(content, mapping=suggested(content)["mapping"])
    assert [row.values["external_id"] for row in found] == keys
