"""The model of invitations: words that are stored, and the sentences that people read."""

from enum import StrEnum

import pytest

from frontdesk.invitations.model import (
    TRANSITIONS,
    DeliverabilitySettings,
    DescribedEnum,
    Invitation,
    InvitationState,
    InvitationStep,
    NotInvitedReason,
)
from frontdesk.invitations.tables import deliverability, invitations


@pytest.mark.parametrize("words", [InvitationStep, NotInvitedReason])
def test_every_word_has_a_sentence_and_is_found_by_its_stored_form(words: type[DescribedEnum]) -> None:
    for word in words:
        assert words(str(word)) is word
        assert word == word.value == word.name.lower()
        assert word.description.endswith(".")


@pytest.mark.parametrize("words", [InvitationState, InvitationStep])
def test_every_word_fits_its_column(words: type[StrEnum]) -> None:
    column = invitations.c.state if words is InvitationState else invitations.c.reason
    assert max(map(len, words)) <= column.type.length  # type: ignore[attr-defined]


def test_every_state_can_be_left_and_reached() -> None:
    starts, ends = zip(*TRANSITIONS, strict=True)
    assert set(starts) == set(ends) == set(InvitationState)
    assert all(start is not end for start, end in TRANSITIONS)


def test_a_row_of_the_model_has_the_columns_of_its_table_in_order() -> None:
    assert Invitation._fields == tuple(column.name for column in invitations.columns)
    settings = tuple(DeliverabilitySettings.__dataclass_fields__)
    assert settings == tuple(column.name for column in deliverability.columns)
