"""Where a table's header is: below titles and `sep=`, or where the mapping says."""

import pytest

from tests.formats.reading import HEADER, refused, rows_of

ROW = "AB 1,M-1,Robin,Sample\n"
TITLES = '"Eligibility, as of 11/20/2026",,,\n\nExample Health;"confidential"\nPlan: Gold,First name of contact: Kim\n'


def test_rows_above_the_header_are_passed_over_and_counted() -> None:
    [row] = rows_of(TITLES + HEADER + ROW)
    assert (row.place, row.values["external_id"], row.values["last_name"]) == (6, "AB 1", "Sample")


@pytest.mark.parametrize("delimiter", [",", "\t", "|", ";"])
@pytest.mark.parametrize("titles", ["", "Members, all; of | them\t\n", '"a title\nof two lines"\n'])
def test_the_delimiter_is_that_of_the_header_whatever_the_titles_hold(delimiter: str, titles: str) -> None:
    [row] = rows_of(titles + (HEADER + ROW).replace(",", delimiter))
    assert (row.place, row.values["external_id"]) == (3 if titles else 2, "AB 1")


@pytest.mark.parametrize("line", ["sep=;\r\n", "SEP=;\n", '"sep=;"\n', "sep=;;;\n"])
def test_the_separator_line_of_excel_names_the_delimiter_and_is_no_row(line: str) -> None:
    [row] = rows_of(line + "external_id;city\n1;Boston, MA\n")
    assert (row.place, row.values) == (2, {"external_id": "1", "city": "Boston, MA"})


def test_a_header_that_the_mapping_renames_is_found() -> None:
    mapping = {
        "columns": {"Surname": "last_name"},
        "fields": {"external_id": {"column": ["Group", "No"], "join": "-"}},
    }
    [row] = rows_of("Group list\n\nGroup,No,Surname\n7,8,Sample\n", mapping=mapping)
    assert row.values == {"external_id": "7-8", "last_name": "Sample"}


def test_the_mapping_may_say_which_row_is_the_header() -> None:
    content = "external_id,city\nexternal_id,state\n1,MA\n"
    assert [row.values for row in rows_of(content, mapping={"header_row": 2})] == [
        {"external_id": "1", "state": "MA"}
    ]
    assert refused(lambda: rows_of(content, mapping={"header_row": 3}))[0] == "no_header"
    assert refused(lambda: rows_of(content, mapping={"header_row": 9}))[0] == "no_header"


def test_the_first_row_with_the_key_is_the_header_and_no_later_one() -> None:
    rows = rows_of("external_id\nexternal_id,first_name,last_name\n")
    assert [row.place for row in rows] == [2]


def test_a_table_without_the_key_is_refused_at_the_row_that_names_most() -> None:
    code, sentence = refused(lambda: rows_of("A title\nfirst_name,last_name\nRobin,Sample\n"))
    assert (code, sentence[:6]) == ("no_key_column", "Row 2:")


def test_a_header_far_down_is_not_searched_for() -> None:
    assert refused(lambda: rows_of("x\n" * 60 + HEADER + ROW))[0] == "no_header"
    assert refused(lambda: rows_of(("x" * 60_000 + "\n") * 3 + HEADER + ROW))[0] == "no_header"
