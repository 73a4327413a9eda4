"""Which texts name a person, and which only resemble one that does."""

import pytest

from frontdesk.privacy.naming import Names

ROBIN = Names(
    [
        "Sample",
        "AB 123356",
        "robin.sample@example.com",
        "de la Cruz",
        "(617) 555-0100",
        "Zoë",
        "",
        "---",
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        "Sample, Robin.csv",
        "census_SAMPLE_2026.csv",
        "ab-123356.txt",
        "AB 123356",
        "for robin.sample@example.com.xlsx",
        "Cruz de  La_Cruz.csv",
        "617-555-0100.csv",
        "zoe\u0308.csv",
        "\N{FULLWIDTH LATIN CAPITAL LETTER S}ample.csv",
    ],
)
def test_a_value_is_found_whatever_its_case_spaces_and_punctuation(text: str) -> None:
    assert ROBIN.are_in(text)


@pytest.mark.parametrize(
    "text",
    ["samples.csv", "census-2026.csv", "AB 1233567.csv", "la cruz.csv", "", "---", "Robin.csv"],
)
def test_a_part_of_a_word_names_nobody(text: str) -> None:
    assert not ROBIN.are_in(text)


def test_a_column_that_was_cut_is_found_by_its_beginning() -> None:
    long = "x" * 60
    assert Names([long]).are_among([long[:40]], cut_to=40)
    assert not Names([long]).are_among([long[:39]], cut_to=40)
    assert not Names([long]).are_among(["-" * 40], cut_to=40)
