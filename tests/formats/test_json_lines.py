"""JSON lines: a request body a line, read as strictly; a line that can't be read is refused by itself."""

import pytest

from frontdesk.formats.model import Format
from frontdesk.mapping.model import Row
from tests.formats.reading import codes, read, refused, rows_of


def test_each_line_is_a_body_and_blank_lines_are_passed_over() -> None:
    content = '\ufeff{"external_id": "1", "city": null}\r\n\n  \n{"external_id": "2", "metadata": {"a": "b"}}'
    assert rows_of(content) == [
        Row(1, {"external_id": "1", "city": None}),
        Row(4, {"external_id": "2", "metadata": {"a": "b"}}),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "must be a JSON object"),
        ('"text"', "must be a JSON object"),
        ('{"a": 1, "a": 2}', "has the key a twice"),
        ('{"metadata": {"a": "1", "a": "2"}}', "has the key a twice"),
        ('{"a": NaN}', "has NaN or Infinity, which are not JSON"),
        ('{"a": 1e400}', "has a number that is too large"),
        (r'{"a": "\ud800"}', "has half of a surrogate pair"),
        (r'{"\udc00": 1}', "has half of a surrogate pair"),
        ("[" * 20_000, "is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "is not valid JSON"),
        ('{"a": "b\0"}', "is not valid JSON"),
    ],
)
def test_a_line_that_is_no_body_is_refused_by_itself(line: str, message: str) -> None:
    bad, good = rows_of(f'{line}\n{{"external_id": "1"}}\n', format_=Format.JSON_LINES)
    assert (bad.place, bad.values, codes(bad)) == (1, {}, [("row", "not_json")])
    assert bad.faults[0].message == message
    assert good == Row(2, {"external_id": "1"})


def test_a_whole_surrogate_pair_is_a_letter() -> None:
    assert rows_of(r'{"external_id": "\ud83d\ude00"}')[0].values == {"external_id": "\U0001f600"}


def test_blank_lines_only_are_no_file() -> None:
    assert refused(lambda: rows_of("\n \n", format_=Format.JSON_LINES))[0] == "no_rows"


def test_keys_that_are_no_field_are_named_once_and_not_without_end() -> None:
    lines = [f'{{"external_id": "1", "a {n % 30}": "x"}}\n' for n in range(90)]
    assert read("".join(lines))[0].ignored == [f"a%20{n}" for n in range(20)]


MAPPING = {
    "columns": {"Employee No": "external_id", "Town": "city", "Home": "metadata.home"},
    "fields": {
        "gender": {"column": "Sex", "values": {"M": "male", "": "unknown"}},
        "zipcode": {"column": "ZIP", "pad": 5},
        "member_id": {"column": ["Group", "Employee No"], "join": "-"},
        "medical_eligibility": {"column": "Covered", "values": {"true": "TRUE", "no": "FALSE"}},
        "payor_name": {"constant": "Example Payor"},
    },
    "skip": [{"column": "Sex", "equals": "total"}],
}


def test_a_mapping_reads_objects_as_rows_of_a_table() -> None:
    lines = [
        '{"Employee No": 7, "Group": "G", "Sex": "m", "ZIP": 2134, "Town": null, "Covered": true}',
        '{"employee_no": "8", "Group": "G", "Sex": "", "ZIP": 2134.0, "Home": "x", "Shoe": 44}',
        '{"Sex": "Total", "Employee No": 2}',
        '{"Employee No": "9", "Town": ""}',
        '{"Town": "Bern"}',
    ]
    header, rows = read("\n".join(lines), mapping=MAPPING)
    common = {"payor_name": "Example Payor"}
    assert [row.values for row in rows] == [
        {
            "external_id": "7",
            "city": None,
            "gender": "male",
            "zipcode": "02134",
            "member_id": "G-7",
            "medical_eligibility": "TRUE",
        }
        | common,
        {
            "external_id": "8",
            "gender": "unknown",
            "zipcode": "02134",
            "member_id": "G-8",
            "metadata": {"home": "x"},
        }
        | common,
        {},
        {"external_id": "9", "gender": "unknown"} | common,
        {"city": "Bern", "gender": "unknown"} | common,
    ]
    assert [row.place for row in rows if row.skipped] == [3]
    assert list(header.ignored) == ["Shoe"]


def test_a_mapped_object_that_names_a_field_twice_is_refused_by_itself() -> None:
    bad, good = rows_of(
        '{"external_id": "1", "Town": "a", "TOWN": "b"}\n{"external_id": "2", "Town": "c"}\n',
        mapping={"columns": {"town": "city"}},
    )
    assert (codes(bad), bad.values) == ([("row", "not_json")], {})
    assert good.values == {"external_id": "2", "city": "c"}


def test_a_key_of_the_mapping_that_no_object_has_fails_the_file() -> None:
    lines = [f'{{"external_id": "{n}", "a{n}": 1}}' for n in range(100)]
    mapping = {"fields": {"city": {"column": "a99"}}}
    assert rows_of("\n".join(lines), mapping=mapping)[99].values == {"external_id": "99", "city": "1"}
    assert refused(lambda: rows_of("\n".join(lines[:99]), mapping=mapping))[0] == "missing_column"
