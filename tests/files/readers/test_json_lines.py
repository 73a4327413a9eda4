"""JSON lines: a request body a line, read as strictly; a line that can't be read is refused by itself."""

import pytest

from frontdesk.files.model import Format, Row
from tests.files.readers.reading import codes, read, refused, rows_of


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
        ('{"a": 1, "a": 2}', "has duplicate keys"),
        ('{"metadata": {"a": "1", "a": "2"}}', "has duplicate keys"),
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
