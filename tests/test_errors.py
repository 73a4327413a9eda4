"""Errors carry stable words: a kind that is an entry of /problems, and a code that programs decide
by.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import frontdesk
from frontdesk import codes, errors
from frontdesk.db.failures import DatabaseState
from frontdesk.errors import Fault, FrontdeskError, NotFound, Unavailable, unknown_faults
from frontdesk.text import SHOWN_NAMES
from frontdesk.web.problems import PROBLEMS

KINDS = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, FrontdeskError)
]
# What carries a rule: a clause that reports, commands and other sentences go on from.
RULES = {"Fault", "Rejected", "NotStrict", "with_hint"}


@pytest.mark.parametrize("error", KINDS, ids=lambda error: error.__name__)
def test_every_kind_of_error_is_an_entry_of_the_problems(error: type[FrontdeskError]) -> None:
    assert error.kind in PROBLEMS


def test_a_code_is_the_kind_unless_it_says_more() -> None:
    assert Unavailable("The database is away.").code == "unavailable"
    assert Unavailable("The disk is full.", code=DatabaseState.FULL).code == DatabaseState.FULL
    assert NotFound("API client").code == "no_such_api_client"
    assert NotFound("API client").detail == "There is no such API client."


def test_unknown_names_are_faults_made_fit_to_be_shown() -> None:
    assert unknown_faults(["a b"]) == [
        Fault("a%20b", codes.faults.UNKNOWN_FIELD, "there is no such field")
    ]
    assert unknown_faults(["x"], what="parameter")[0].code == "unknown_parameter"
    assert len(unknown_faults(str(n) for n in range(100))) == SHOWN_NAMES
    said = {"field": "dob", "code": "required", "message": "must not be blank"}
    assert Fault("dob", codes.faults.REQUIRED, "must not be blank").serialize() == said


def test_no_rule_ends_with_a_sign_since_sentences_go_on_from_it() -> None:
    """A message said `is the area code missing?.`."""
    ends = {text: text.rstrip()[-1:] for text in rules_in_code()}
    assert len(ends) > 100
    assert [text for text, end in ends.items() if end in (".", "?", "!", ":", ";", ",")] == []


def rules_in_code() -> Iterator[str]:
    """The rules and hints of the package, and the ends of those with something put in."""
    package = Path(frontdesk.__file__).parent
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in RULES
            ):
                for argument in node.args:
                    yield from texts(argument)
            elif (
                isinstance(node, ast.Return) and path.name == "hints.py" and node.value is not None
            ):
                yield from texts(node.value)


def texts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=[*_, ast.Constant(value=str(text))]):
            yield text
        case ast.IfExp(body=body, orelse=other):
            yield from texts(body)
            yield from texts(other)
