"""JSON arrays: each item is a request body; a bad item is refused by itself, a damaged array as a whole."""

import json
import random
from typing import Any

import pytest

from frontdesk.formats.model import Format
from frontdesk.mapping.model import Row
from tests.formats.reading import Pieces, codes, read, refused, rows_of, rows_of_stream


def test_each_item_is_a_body_and_counts_from_1() -> None:
    content = (
        '\ufeff [ {"external_id": "1", "city": null},\n\t{"external_id":"2","metadata":{"a":"]}"}}\n]\r\n'
    )
    head, rows = read(content)
    assert head.format is Format.JSON
    assert rows == [
        Row(1, {"external_id": "1", "city": None}),
        Row(2, {"external_id": "2", "metadata": {"a": "]}"}}),
    ]


def test_items_are_what_a_json_parser_makes_of_them_wherever_a_block_ends() -> None:
    chance = random.Random(5)
    words = ['"', "\\", "}", "]", "{[", ",", "é", "\\u0041", "x" * 300]

    def body(number: int) -> dict[str, Any]:
        said = "".join(chance.choices(words, k=chance.randrange(12)))
        nested = {"metadata": {said: said, "deep": [{"a": [said]}]}} if number % 3 else {"city": said}
        return {"external_id": str(number)} | nested

    bodies = [body(number) for number in range(1200)]
    content = json.dumps(bodies, ensure_ascii=False, indent=chance.choice([None, 1]))
    assert len(content) > 500_000
    assert [row.values for row in rows_of(content)] == bodies


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ('{"external_id": "2", "external_id": "2"}', "has the key external_id twice"),
        ('{"a": NaN}', "has NaN or Infinity, which are not JSON"),
        ("7", "must be a JSON object"),
        ('"a, [b"', "must be a JSON object"),
        ("[[1], 2]", "must be a JSON object"),
        ('{"a": "b\0"}', "is not valid JSON"),
    ],
)
def test_an_item_that_is_no_body_is_refused_by_itself(item: str, message: str) -> None:
    before, bad, after = rows_of(f'[{{"external_id": "1"}}, {item}, {{"external_id": "3"}}]')
    assert (before.values, after.values) == ({"external_id": "1"}, {"external_id": "3"})
    assert (bad.place, codes(bad), bad.faults[0].message) == (2, [("row", "not_json")], message)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("[]", "no_rows"),
        ("[ ", "cut_off"),
        ('[{"external_id": "1"}', "cut_off"),
        ('[{"external_id": "1"},', "cut_off"),
        ('[{"external_id": "1', "cut_off"),
        ('[{"external_id": "1", {"external_id": "2"}]', "bad_json_array"),
        ('[{"external_id": "1"}, no words]', "bad_json_array"),
        ('[{"external_id": "1"}, 7', "cut_off"),
        ("[" * 5000 + "]" * 5000, "bad_json_array"),
        ('[{"external_id": "1"} {"external_id": "2"}]', "bad_json_array"),
        ('[{"external_id": "1"},, {"external_id": "2"}]', "bad_json_array"),
        ('[{"external_id": "1"},]', "bad_json_array"),
        ('[{"external_id": "1"}] [', "bad_json_array"),
        ('[{"external_id": "Zo\\ud800"}]', ""),
    ],
)
def test_a_damaged_array_is_refused_as_a_whole(content: str, code: str) -> None:
    if code:
        assert refused(lambda: rows_of(content, format_=Format.JSON))[0] == code
    else:
        assert codes(rows_of(content)[0]) == [("row", "not_json")]


def test_other_text_is_no_array() -> None:
    assert refused(lambda: rows_of("external_id\n1\n", format_=Format.JSON))[0] == "bad_json_array"


def test_letters_outside_the_encoding_are_found_in_their_item() -> None:
    code, sentence = refused(lambda: rows_of(b'[{"external_id": "1"}, {"city": "Zo\xeb"}]'))
    assert (code, sentence[:7]) == ("wrong_encoding", "Item 2:")


def test_an_endless_array_is_read_as_it_comes_and_an_endless_item_is_not() -> None:
    item = b'{"external_id": "1", "city": "Boston"},'
    stream = Pieces(b"[" + item * 100 if n == 0 else item * 100 for n in range(10**9))
    rows = rows_of_stream(stream)
    assert [next(rows).place for _ in range(5000)][-1] == 5000
    assert stream.taken < 400_000
    endless = Pieces(b'[{"city": "' if n == 0 else b"x" * 4096 for n in range(10**9))
    assert refused(lambda: list(rows_of_stream(endless)))[0] == "line_too_long"
    assert endless.taken < 400_000
