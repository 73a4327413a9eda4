"""Errors carry stable words: a kind that is an entry of /problems, and a code that programs decide by."""

import pytest

from frontdesk import errors
from frontdesk.errors import Fault, FrontdeskError, NotFound, Unavailable, unknown_faults
from frontdesk.text import SHOWN_NAMES
from frontdesk.web.problems import PROBLEMS

KINDS = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, FrontdeskError)
]


@pytest.mark.parametrize("error", KINDS, ids=lambda error: error.__name__)
def test_every_kind_of_error_is_an_entry_of_the_problems(error: type[FrontdeskError]) -> None:
    assert error.kind in PROBLEMS


def test_a_code_is_the_kind_unless_it_says_more() -> None:
    assert Unavailable("The database is away.").code == "unavailable"
    assert Unavailable("The disk is full.", code="database_full").code == "database_full"
    assert NotFound("API client").code == "no_such_api_client"
    assert NotFound("API client").detail == "There is no such API client."


def test_unknown_names_are_faults_made_fit_to_be_shown() -> None:
    assert unknown_faults(["a b"]) == [Fault("a%20b", "unknown_field", "there is no such field")]
    assert unknown_faults(["x"], what="parameter")[0].code == "unknown_parameter"
    assert len(unknown_faults(str(n) for n in range(100))) == SHOWN_NAMES
    assert Fault("dob", "required", "must not be blank").serialize() == {
        "field": "dob",
        "code": "required",
        "message": "must not be blank",
    }
