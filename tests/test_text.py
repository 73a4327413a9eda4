"""The rule of every text, and that hostile text is refused before anything expensive is done with
it.
"""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.text import Rejected, isolated, parse_text, shown_name, trimmed, visible

# The first is one character when composed, of the longest decomposition there is; some of the
# letters never compose.
THREE_MARKS = "\u03b1\u0313\u0300\u0345"
LETTERS = (
    "aeo\u03b1\u0301\u0316\u0308\u0313\u0300\u0345\u0344\u0340"
    "\u1100\u1161\u11a8\u09c7\u09be\ufb2c\u1f82\u0390 "
)


def code_of(value: object, limit: int = 10) -> str:
    with pytest.raises(Rejected) as caught:
        parse_text(value, limit=limit)
    return caught.value.code


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        # The last has a joiner inside.
        *(
            (same, same)
            for same in (
                "\u0e01\u0e33",
                "Łódź",
                "\U0001f600",
                "\u0645\u06cc\u200c\u0631\u0632\u0627",
            )
        ),
        ("  inner  space ", "inner  space"),
        ("\u00a0edges\u3000\n", "edges"),
        ("Zoe\u0308", "Zo\u00eb"),
        ("\ufeffedges\u200b \u2060", "edges"),
        ("\u202aedges\u202c\u200f", "edges"),
        (" \n ", ""),
        (" \u200b\u200d", ""),
    ],
)
def test_text_is_stored_composed_and_trimmed(sent: str, stored: str) -> None:
    assert parse_text(sent, limit=12) == stored


@pytest.mark.parametrize("inside", "\0\n\t\x1b\x7f\x85\ud800\u2028\u2029\u202e\u2066\u200f")
def test_control_characters_inside_are_refused(inside: str) -> None:
    assert code_of(f"a{inside}b") == "control_character"


@pytest.mark.parametrize("edge", "\x1c\x1d\x1e\x1f\0\x07")
def test_control_characters_are_refused_at_the_ends_too(edge: str) -> None:
    assert [code_of(edge), code_of(f"a{edge}"), code_of(f"{edge}é")] == ["control_character"] * 3
    assert trimmed(f" {edge} ")


def test_all_white_space_and_all_invisible_characters_of_unicode_are_trimmed() -> None:
    trimmed_alone = {
        each for each in map(chr, range(0x110000)) if not trimmed(f"{each}\xe9").startswith(each)
    }
    spaces = {each for each in map(chr, range(0x110000)) if each.isspace()} - set(
        "\x1c\x1d\x1e\x1f"
    )
    invisible = {each for each in map(chr, range(0x110000)) if unicodedata.category(each) == "Cf"}
    assert trimmed_alone == spaces | invisible


@pytest.mark.parametrize("value", ["", " ", "\t\r\n", "\u3000", "\u200b", "\ufeff \u2060"])
def test_text_with_nothing_to_see_is_blank(value: str) -> None:
    assert not trimmed(value)


def test_only_a_string_is_a_text() -> None:
    assert {*map(code_of, (None, True, 1, 1.5, [], {}, ["text"], b"text"))} == {"wrong_type"}


def test_the_limit_counts_characters_as_they_are_stored() -> None:
    for character, stored in (("é", "é"), ("e\u0301", "é"), (THREE_MARKS, "\u1f82")):
        assert parse_text(character * 10, limit=10) == stored * 10
    # The last is never composed: three characters each.
    for too_long in ("é" * 11, "a" * 11, "\ufb2c" * 10):
        assert code_of(too_long) == "too_long"


@given(st.text(st.sampled_from(LETTERS), max_size=60))
def test_text_is_too_long_exactly_when_its_stored_form_is(text: str) -> None:
    composed = unicodedata.normalize("NFC", text.strip())
    if len(composed) > 10:
        assert code_of(text) == "too_long"
    else:
        assert parse_text(text, limit=10) == composed


@pytest.mark.parametrize("filler", ["\u0301\u0316", "\0", "\ud800", "e\u0301"])
def test_text_that_is_too_long_in_any_form_is_refused_before_it_is_normalised(filler: str) -> None:
    # Were it normalised or searched first, the fault would be another one, and later.
    assert code_of("a" + filler * 20_000) == "too_long"


def test_a_name_that_a_caller_chose_is_shown_encoded_and_short() -> None:
    assert shown_name("odd\r\nname") == "odd%0D%0Aname"
    assert shown_name("\ud800") == "%3F"
    assert shown_name("x" * 60_000) == "x" * 40


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Muñoz 株式会社", "Muñoz 株式会社"),
        ("a\u200db\u200c", "a[U+200D]b[U+200C]"),
        ("\u0646\u200c\u0647", "\u0646\u200c\u0647"),
        (
            "a\u202eb\u2066\ufeff\u3164\ud800\n",
            "a[U+202E]b[U+2066][U+FEFF][U+3164][U+D800][U+000A]",
        ),
    ],
)
def test_characters_that_nobody_sees_are_shown_as_numbers(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_text_in_a_sentence_turns_no_letters_around() -> None:
    assert isolated("\u05d0") == "\u2068\u05d0\u2069"
    assert isolated("Robin") == "Robin"
