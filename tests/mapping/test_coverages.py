"""The access of a member by its coverages: only those that count change it (docs/834.md, Access). The file is of 2026-11-20."""

from typing import Any

import pytest

from frontdesk.eligibility.model import Action
from frontdesk.mapping.model import Row
from tests.formats.reading import file_834, rows_of

BEGIN, END = "effective_date", "expiry_date"
OPEN = "HD*021**HLT*Gold~DTP*348*D8*20260101~"
DENTAL = "HD*021**DEN*Teeth~DTP*348*D8*20200101~"


def row_of(code: str, dates: str, coverages: str, mapping: dict[str, Any] | None = None) -> Row:
    text = f"INS*Y*18*{code}*28*A***FT~REF*0F*FAMILY1~REF*17*01~{dates}NM1*IL*1*Sample*Robin~{coverages}"
    [row] = rows_of(file_834(text), mapping=mapping)
    assert row.faults == ()
    return row


TWO_ENDED = (
    "HD*024**HMO*A~DTP*348*D8*20240101~DTP*349*D8*20251231~"
    "HD*024**PPO*B~DTP*348*D8*20250101~DTP*349*D8*20260131~"
)

# INS03, dates of the member, coverages; begin, end (... for a stored one that stays), plan.
ENROLLED: list[tuple[str, str, str, Any, Any, Any]] = [
    ("021", "", OPEN, "2026-01-01", None, "Gold"),
    ("001", "", "HD*001**HMO~DTP*348*D8*20260101~DTP*349*D8*20261231~", "2026-01-01", "2026-12-31", "HMO"),
    ("001", "", "HD*001**HLT*Gold~", ..., None, "Gold"),
    ("021", "DTP*356*D8*20250601~", "HD*021**HLT*Gold~", "2025-06-01", None, "Gold"),
    ("021", "DTP*356*D8*20250601~", OPEN, "2026-01-01", None, "Gold"),
    # A range of days says begin and end.
    ("021", "", "HD*021**HLT*Gold~DTP*348*RD8*20260101-20261231~", "2026-01-01", "2026-12-31", "Gold"),
    ("021", "DTP*356*RD8*20250601-20270630~", "HD*021**HLT*Gold~", "2025-06-01", "2027-06-30", "Gold"),
    # A day with a time, codes in small letters, and dates before the HD that they are about.
    ("021", "", "HD*021**HLT*Gold~DTP*348*DT*202601010830~", "2026-01-01", None, "Gold"),
    ("021", "", "HD*021**hlt*Gold~DTP*348*D8*20260101~", "2026-01-01", None, "Gold"),
    ("021", "DTP*348*D8*20260101~", "HD*021**HLT*Gold~", "2026-01-01", None, "Gold"),
    ("021", "DTP*348*D8*20250101~", OPEN, "2026-01-01", None, "Gold"),
    ("001", "DTP*349*D8*20261031~", "HD*024**HLT*Gold~", ..., "2026-10-31", "Gold"),
    ("001", "DTP*349*D8*20260731~", OPEN, "2026-01-01", None, "Gold"),
    # The end of a coverage: its own date, else the member's, else the file's.
    ("001", "", "HD*024**HLT*Gold~DTP*349*D8*20261031~", ..., "2026-10-31", "Gold"),
    ("001", "DTP*357*D8*20261015~", "HD*024**HLT*Gold~", ..., "2026-10-15", "Gold"),
    ("001", "", "HD*024**HLT*Gold~", ..., "2026-11-20", "Gold"),
    ("001", "", "HD*024**HLT*Gold~DTP*303*D8*20261031~", ..., "2026-10-31", "Gold"),
    ("001", "DTP*303*D8*20261031~", "HD*024**HLT*Gold~", ..., "2026-11-20", "Gold"),
    # No coverage outlasts the member.
    ("001", "DTP*357*D8*20261015~", OPEN, "2026-01-01", "2026-10-15", "Gold"),
    ("001", "DTP*357*D8*20261015~", OPEN + "DTP*349*D8*20261231~", "2026-01-01", "2026-10-15", "Gold"),
    # What does not count changes nothing, wherever it stands.
    ("001", "", OPEN + "HD*024**DEN*Teeth~DTP*349*D8*20261031~", "2026-01-01", None, "Gold"),
    ("001", "", "HD*024**VIS*Eyes~DTP*349*D8*20261031~" + OPEN, "2026-01-01", None, "Gold"),
    ("021", "", DENTAL + OPEN + DENTAL, "2026-01-01", None, "Gold"),
    # A coverage that was never effective is none.
    ("001", "", "HD*002**HLT*Old~DTP*348*D8*20200101~" + OPEN, "2026-01-01", None, "Gold"),
    # So is one that only the dependents have.
    ("021", "", OPEN + "HD*032**PPO*Other~DTP*348*D8*20200101~", "2026-01-01", None, "Gold"),
    # Of several: from the earliest in force or to come, to the latest end, open if any is.
    ("001", "", OPEN + "HD*021**PPO*Next~DTP*348*D8*20270101~", "2026-01-01", None, "Next"),
    ("001", "", "HD*024**HMO*Old~DTP*348*D8*20240101~DTP*349*D8*20251231~" + OPEN, "2026-01-01", None, "Gold"),
    ("001", "", "HD*024**HMO*Old~DTP*348*D8*20240101~DTP*349*D8*20261231~" + OPEN, "2024-01-01", None, "Gold"),
    ("001", "", OPEN + "DTP*349*D8*20261231~HD*021**PPO*Next~DTP*348*D8*20270101~DTP*349*D8*20271231~",
     "2026-01-01", "2027-12-31", "Next"),
    ("001", "", TWO_ENDED, "2025-01-01", "2026-01-31", "B"),
    # The old plan is in force still and does not say since when: a stored begin stays.
    ("001", "", "HD*024**HMO*Old~DTP*349*D8*20261130~HD*021**PPO*Next~DTP*348*D8*20261201~", ..., None, "Next"),
    ("001", "", "HD*024**HMO*Old~DTP*349*D8*20261031~HD*021**PPO*Next~DTP*348*D8*20261101~",
     "2026-11-01", None, "Next"),
    # Reinstated
    ("025", "", "HD*025**HLT*Gold~DTP*348*D8*20260101~", "2026-01-01", None, "Gold"),
    ("025", "", OPEN + "DTP*349*D8*20271231~", "2026-01-01", "2027-12-31", "Gold"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "dates", "coverages", "begin", "end", "plan"), ENROLLED)
def test_the_coverages_that_count_give_the_access(
    code: str, dates: str, coverages: str, begin: Any, end: Any, plan: str
) -> None:
    row = row_of(code, dates, coverages)
    found = tuple(row.values.get(name, ...) for name in (BEGIN, END, "medical_plan_description"))
    assert (row.action, found) == (Action.ENROL, (begin, end, plan))
    assert (row.warnings, row.context.causes) == ((), ())


@pytest.mark.parametrize(
    ("dates", "coverage"),
    [
        ("", "DTP*303*D8*20261201~"),
        ("DTP*303*D8*20261201~", ""),
        ("DTP*303*D8*20261001~", "DTP*303*D8*20261201~"),
    ],
)
def test_without_a_begin_a_new_member_begins_on_the_day_of_the_change(dates: str, coverage: str) -> None:
    row = row_of("021", dates, "HD*021**HLT*Gold~" + coverage)
    assert (row.values.get(BEGIN), row.values_of_new) == (None, {BEGIN: "2026-12-01"})
    begun = row_of("021", "DTP*356*D8*20260101~" + dates, "HD*021**HLT*Gold~" + coverage)
    assert (begun.values.get(BEGIN), begun.values_of_new) == ("2026-01-01", None)
    other = row_of("001", "", "HD*024**HMO*Old~DTP*349*D8*20261130~HD*021**PPO~DTP*348*D8*20261201~")
    assert other.values_of_new == {BEGIN: "2026-12-01"}  # the begin that is known


@pytest.mark.parametrize("line", ["DEN", "VIS", "HE", "PDG", "LTD", "LIF", "AD", ""])
@pytest.mark.parametrize("code", ["021", "001", "025", "024"])
def test_a_member_without_a_coverage_that_counts_keeps_its_access(code: str, line: str) -> None:
    row = row_of(code, "DTP*356*D8*20200101~", f"HD*{code}**{line}*Other~DTP*349*D8*20261031~")
    assert row.action is Action.ENROL
    assert not row.values.keys() & {BEGIN, END, "medical_plan_description"}
    assert row.values["first_name"] == "Robin"
    assert row.warnings == ("no_medical_coverage",)
    assert [(cause.field, cause.code) for cause in row.context.causes] == [(BEGIN, "no_medical_coverage")]


def test_the_employee_of_covered_dependents_is_not_covered() -> None:
    row = row_of("021", "", "HD*032**HLT*Gold~DTP*348*D8*20260101~")
    assert (row.warnings, BEGIN in row.values) == (("no_medical_coverage",), False)


def test_a_change_without_any_coverage_is_no_news_of_the_access() -> None:
    row = row_of("001", "DTP*356*D8*20200101~", "")
    assert (row.values.keys() & {BEGIN, END}, row.warnings) == (set(), ())
    assert [cause.code for cause in row.context.causes] == ["no_medical_coverage"]
    assert row_of("025", "", "").values[END] is None


# Dates of the member, coverages, the last day.
ENDS: list[tuple[str, str, str]] = [
    ("", "", "2026-11-20"),
    ("DTP*357*D8*20261031~", "", "2026-10-31"),
    # A date of a coverage means nothing before HD.
    ("DTP*349*D8*20260930~", "", "2026-11-20"),
    ("DTP*357*D8*20261031~", "HD*024**DEN~DTP*349*D8*20261231~", "2026-10-31"),
    ("DTP*357*D8*20261031~", "HD*024**HLT~DTP*349*D8*20261231~", "2026-10-31"),
    ("DTP*357*D8*20261031~", "HD*024**HLT~DTP*349*D8*20260930~", "2026-10-31"),
    ("", "HD*024**HLT~DTP*349*D8*20260930~", "2026-09-30"),
    ("", "HD*024**HLT~DTP*349*D8*20260930~HD*024**PPO*B~DTP*349*D8*20261231~", "2026-12-31"),
    ("", "HD*024**HLT~DTP*349*D8*20260930~HD*024**DEN~DTP*349*D8*20261231~", "2026-09-30"),
    ("", "HD*024**HLT~DTP*349*D8*20260930~HD*024**PPO*B~", "2026-09-30"),
    ("", "HD*024**HLT~", "2026-11-20"),
]


@pytest.mark.parametrize(("dates", "coverages", "day"), ENDS)
def test_the_end_of_a_member_carries_the_last_day_only(dates: str, coverages: str, day: str) -> None:
    row = row_of("024", dates, coverages)
    assert (row.action, row.values) == (Action.END, {"external_id": "FAMILY1-01", END: day})


def test_an_account_may_count_every_line() -> None:
    every = {"834": {"coverages": "all"}}
    dental = row_of("021", "", DENTAL, every)
    assert (dental.values[BEGIN], dental.values[END], dental.warnings) == ("2020-01-01", None, ())
    begun = row_of("021", "DTP*356*D8*20260301~DTP*357*D8*20270630~", "", every)
    assert (begun.values[BEGIN], begun.values[END]) == ("2026-03-01", "2027-06-30")
    assert begun.context.causes == ()


def test_codes_in_small_letters_are_read() -> None:
    text = "INS*y*18*021*28*a***ft~REF*0F*FAMILY1~REF*17*01~NM1*il*1*Sample*Robin~"
    [row] = rows_of(file_834(text + "DMG*D8*19770111*f~" + OPEN))
    assert row.faults == ()
    found = (row.values["first_name"], row.values["gender"], row.values[BEGIN])
    assert found == ("Robin", "female", "2026-01-01")
