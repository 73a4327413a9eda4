"""JSON arrays and JSON lines: each object is a request body; a bad one is refused by itself, a
damaged array as a whole.
"""

import json
import random
from typing import Any

import pytest

from frontdesk.formats.model import Format
from frontdesk.mapping.model import Row
from tests.formats.reading import Pieces, codes, read, refused, rows_of, rows_of_stream

ONE: dict[str, object] = {"external_id": "1", "city": None}
TWO: dict[str, object] = {"external_id": "2", "metadata": {"a": "]}"}}


def test_each_item_or_line_is_a_body_and_blank_lines_are_passed_over() -> None:
    head, rows = read(f"\ufeff [ {json.dumps(ONE)},\n\t{json.dumps(TWO)}\n]\r\n")
    assert (head.format, rows) == (Format.JSON, [Row(1, ONE), Row(2, TWO)])
    lines = rows_of(f"\ufeff{json.dumps(ONE)}\r\n\n  \n{json.dumps(TWO)}")
    assert lines == [Row(1, ONE), Row(4, TWO)]


def test_items_are_what_a_json_parser_makes_of_them_wherever_a_block_ends() -> None:
    chance = random.Random(5)
    words = ['"', "\\", "}", "]", "{[", ",", "é", "\\u0041", "\U0001f600", "x" * 300]

    def body(number: int) -> dict[str, Any]:
        said = "".join(chance.choices(words, k=chance.randrange(12)))
        nested = (
            {"metadata": {said: said, "deep": [{"a": [said]}]}} if number % 3 else {"city": said}
        )
        return {"external_id": str(number)} | nested

    bodies = [body(number) for number in range(1200)]
    content = json.dumps(bodies, ensure_ascii=False, indent=chance.choice([None, 1]))
    assert len(content) > 500_000
    assert [row.values for row in rows_of(content)] == bodies


@pytest.mark.parametrize("is_array", [True, False])
@pytest.mark.parametrize(
    ("item", "message"),
    [
        ('"a, [b"', "must be a JSON object"),
        ("[[1], 2]", "must be a JSON object"),
        ('{"a": 1, "a": 2}', "has the key a twice"),
        ('{"metadata": {"a": "1", "a": "2"}}', "has the key a twice"),
        ('{"a": NaN}', "has NaN or Infinity, which are not JSON"),
        ('{"a": 1e400}', "has a number that is too large"),
        (r'{"a": "\ud800"}', "has half of a surrogate pair"),
        ('{"a": ' + "9" * 5000 + "}", "is not valid JSON"),
        ('{"a": "b\0"}', "is not valid JSON"),
    ],
)
def test_what_is_no_body_is_refused_by_itself(item: str, message: str, is_array: bool) -> None:
    items = ['{"external_id": "1"}', item, r'{"external_id": "\ud83d\ude00"}']
    before, bad, after = rows_of(f"[{', '.join(items)}]" if is_array else "\n".join(items))
    assert (before.values, after.values) == ({"external_id": "1"}, {"external_id": "\U0001f600"})
    assert (bad.place, bad.values, codes(bad)) == (2, {}, [("row", "not_json")])
    assert bad.faults[0].message == message


def test_a_line_that_has_no_end_is_refused_by_itself() -> None:
    for line, message in (("{", "is not valid JSON"), ("[" * 20_000, "is nested too deeply")):
        bad, good = rows_of(f"{line}\n{json.dumps(ONE)}\n", format_=Format.JSON_LINES)
        assert ([fault.message for fault in bad.faults], good) == ([message], Row(2, ONE))


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("external_id\n1\n", "bad_json_array"),
        ("[]", "no_rows"),
        ("[ ", "cut_off"),
        ('[{"external_id": "1"}', "cut_off"),
        ('[{"external_id": "1', "cut_off"),
        ('[{"external_id": "1", {"external_id": "2"}]', "bad_json_array"),
        ('[{"external_id": "1"}, no words]', "bad_json_array"),
        ("[" * 5000 + "]" * 5000, "bad_json_array"),
        ('[{"external_id": "1"},, {"external_id": "2"}]', "bad_json_array"),
        ('[{"external_id": "1"},]', "bad_json_array"),
        ('[{"external_id": "1"}] [', "bad_json_array"),
    ],
)
def test_a_damaged_array_is_refused_as_a_whole(content: str, code: str) -> None:
    assert refused(lambda: rows_of(content, format_=Format.JSON))[0] == code


def test_letters_outside_the_encoding_are_found_in_their_item() -> None:
    code, sentence = refused(lambda: rows_of(b'[{"external_id": "1"}, {"city": "Zo\xeb"}]'))
    assert (code, sentence[:7]) == ("wrong_encoding", "Item 2:")


def test_blank_lines_only_are_no_file() -> None:
    assert refused(lambda: rows_of("\n \n", format_=Format.JSON_LINES))[0] == "no_rows"


def test_an_endless_array_is_read_as_it_comes_and_an_endless_item_is_not() -> None:
    item = b'{"external_id": "1", "city": "Boston"},'
    stream = Pieces(b"[" + item * 100 if n == 0 else item * 100 for n in range(10**9))
    rows = rows_of_stream(stream)
    assert [next(rows).place for _ in range(5000)][-1] == 5000
    assert stream.taken < 400_000
    endless = Pieces(b'[{"city": "' if n == 0 else b"x" * 4096 for n in range(10**9))
    assert refused(lambda: list(rows_of_stream(endless)))[0] == "line_too_long"
    assert endless.taken < 400_000


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
    },
    "skip": [{"column": "Sex", "equals": "total"}],
}


def test_a_mapping_reads_objects_as_rows_of_a_table() -> None:
    lines = [
        '{"Employee No": 7, "Group": "G", "Sex": "m", "ZIP": 2134, "Town": null, "Covered": true}',
        '{"employee_no": "8", "Group": "G", "Sex": "", "ZIP": 2134.0, "Home": "x", "Shoe": 44}',
        '{"Sex": "Total", "Employee No": 2}',
        '{"Town": "Bern"}',
        '{"external_id": "1", "Town": "a", "TOWN": "b"}',
    ]
    header, rows = read("\n".join(lines), mapping=MAPPING)
    first = {
        "external_id": "7",
        "city": None,
        "gender": "male",
        "zipcode": "02134",
        "member_id": "G-7",
    }
    second = {"external_id": "8", "gender": "unknown", "zipcode": "02134", "member_id": "G-8"}
    assert [row.values for row in rows] == [
        first | {"medical_eligibility": "TRUE"},
        second | {"metadata": {"home": "x"}},
        {},
        {"city": "Bern", "gender": "unknown"},
        {},
    ]
    assert [row.place for row in rows if row.skipped] == [3]
    assert codes(rows[4]) == [("row", "not_json")], "a field that is named twice"
    assert list(header.ignored) == ["Shoe"]


def test_a_key_of_the_mapping_that_no_object_has_fails_the_file() -> None:
    lines = [f'{{"external_id": "{n}", "a{n}": 1}}' for n in range(100)]
    mapping = {"fields": {"city": {"column": "a99"}}}
    assert rows_of("\n".join(lines), mapping=mapping)[99].values == {
        "external_id": "99",
        "city": "1",
    }
    assert refused(lambda: rows_of("\n".join(lines[:99]), mapping=mapping))[0] == "missing_column"
