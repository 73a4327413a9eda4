"""The table of codes: one complete entry for each word in each place."""

import ast
import copy
import json
import pickle
import re
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

import orjson
import pytest

from frontdesk import codes
from frontdesk.api.codes import example_of
from frontdesk.api.remedies import operations_of
from frontdesk.api.routes import ENDPOINTS, GROUPS, REMEDIES
from frontdesk.cli.app import COMMANDS
from frontdesk.cli.output import sentence
from frontdesk.cli.remedies import command_for
from frontdesk.codes import Code, Kind, Remedy, Where
from frontdesk.eligibility.fields import DROPPED
from frontdesk.errors import NotFound
from frontdesk.files.model import WrongState
from frontdesk.interface.document import openapi_document
from frontdesk.web.problems import PROBLEMS, status_of

MODULES = {
    Where.FAULT: codes.faults,
    Where.WARNING: codes.warnings,
    Where.ROW: codes.rows,
    Where.FILE: codes.files,
    Where.QUEUE_EVENT: codes.queue_events,
    Where.OAUTH: codes.oauth,
    Where.OPERATOR: codes.operators,
    Where.MAIL: codes.mail,
}


@pytest.mark.parametrize("where", Where)
def test_a_constant_is_its_word_in_capitals_in_the_module_of_its_place(where: Where) -> None:
    constants = {
        name: value for name, value in vars(MODULES[where]).items() if isinstance(value, Code)
    }
    assert constants
    assert {name: value.upper() for name, value in constants.items()} == {
        name: name for name in constants
    }
    made = [*DROPPED.values(), *codes.operators.NO_SUCH.values()]
    assert {*codes.of(where)} - {*made} == {*constants.values()} - {*made}


def test_a_word_is_declared_once_in_a_place() -> None:
    with pytest.raises(ValueError, match="the code required is declared twice"):
        Code.declared(Where.FAULT, "required", "Another sentence.")


@pytest.mark.parametrize("code", codes.CODES.values(), ids=lambda code: f"{code.where}-{code}")
def test_every_code_has_a_sentence_and_an_example(code: Code) -> None:
    assert code.sentence.endswith((".", "…", "?", "}"))
    assert code in example_of(code)


def test_a_word_from_a_database_is_looked_up_and_an_old_one_is_unknown() -> None:
    assert codes.find(Where.FILE, "zip_bomb") == codes.files.ZIP_BOMB
    assert codes.find(Where.FAULT, "zip_bomb") is None
    assert codes.find_warning("differs") == codes.rows.DIFFERS


def test_a_code_is_written_and_copied_as_its_word() -> None:
    code = codes.faults.REQUIRED
    assert json.dumps({"code": code}) == '{"code": "required"}'
    assert orjson.dumps([code]) == b'["required"]'
    for copied in (copy.deepcopy(code), pickle.loads(pickle.dumps(code))):  # noqa: S301 - our own
        assert (type(copied), copied) == (str, "required")


def test_every_refusal_has_a_kind_with_a_status() -> None:
    refusals = codes.of(Where.FAULT, Where.QUEUE_EVENT, Where.OAUTH)
    assert {status_of(code) for code in refusals} == {
        400,
        401,
        403,
        404,
        409,
        410,
        412,
        413,
        422,
        429,
    }
    with pytest.raises(ValueError, match="no answer is refused for similar_member"):
        status_of(codes.warnings.SIMILAR_MEMBER)


def test_every_warning_names_its_field_but_the_one_of_several() -> None:
    without = [code for code in codes.of(Where.WARNING) if not code.field]
    assert without == [codes.warnings.PLACEHOLDER], "answers and reports add the field"


# What only one door knows: commands and options, headers, methods, parameters, statuses.
OF_ONE_DOOR = re.compile(
    r"frontdesk(-admin)? [a-z]|--[a-z]|If-(None-)?Match|Prefer|Idempotency-Key|only=|move="
    r"|\b(GET|POST|PUT|PATCH|DELETE)\b|\([45][0-9]{2}\)"
)


def test_no_sentence_names_a_door() -> None:
    assert OF_ONE_DOOR.search("free the number (frontdesk member rename)")
    sentences = {code: code.sentence for code in codes.CODES.values()}
    assert {code: text for code, text in sentences.items() if OF_ONE_DOOR.search(text)} == {}


# A command: `frontdesk`, and a group or a command of the command line.
A_COMMAND = re.compile(r"\bfrontdesk (?:" + "|".join(COMMANDS) + r")\b")
AN_OPERATION = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE) /|If-(?:None-)?Match")
PACKAGE = Path(codes.__file__).parents[1]
# Printed by commands only: problems of an installation, and of a domain's records.
# The page System tells operators, who have a shell, which command helps.
OF_COMMANDS = (
    "cli",
    "backtest",
    "console/system_words.py",
    "db/checks.py",
    "invitations/dns_records.py",
)


def sentences_of(*, of_commands: bool) -> list[str]:
    """The texts of the modules that only commands print, or of all others."""
    return [
        text
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).as_posix().startswith(OF_COMMANDS) is of_commands
        for text in texts_of(ast.parse(path.read_text()))
    ]


def test_no_answer_over_http_names_a_command() -> None:
    """Nouns raise errors, and files keep their problems; the doors say the command."""
    assert A_COMMAND.search("To accept it: frontdesk file accept 1")
    texts = sentences_of(of_commands=False)
    assert len(texts) > 5000
    assert [text for text in texts if A_COMMAND.search(text)] == []
    examples = files("frontdesk.api.assets").joinpath("examples.json").read_text(encoding="utf-8")
    assert A_COMMAND.findall(examples) == []
    document = openapi_document("https://api.example.com", GROUPS, ENDPOINTS, REMEDIES)
    assert A_COMMAND.findall(json.dumps(document)) == []


def test_no_output_of_a_command_names_an_operation() -> None:
    texts = sentences_of(of_commands=True)
    texts += [command_for(remedy, {"file_id": 1}) for remedy in Remedy]
    assert len(texts) > 1000
    assert [text for text in texts if AN_OPERATION.search(text)] == []


@pytest.mark.parametrize("code", codes.of(Where.FILE), ids=str)
def test_both_doors_say_what_a_file_needs(code: Code) -> None:
    if code.remedy is not None:
        assert A_COMMAND.search(command_for(code.remedy, {"file_id": 1}))
        assert operations_of(ENDPOINTS)[code.remedy].path.startswith("/v2/plans/{plan_id}/")


def texts_of(tree: ast.Module) -> list[str]:
    """The texts of a module without its docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    ]


def test_a_command_is_said_with_the_ids_of_the_error() -> None:
    error = WrongState("It needs a mapping.", remedy=Remedy.ACCEPT_MAPPING, ids={"file_id": 7})
    assert sentence(error) == "It needs a mapping. To accept it: frontdesk file accept 7"
    assert sentence(NotFound("plan")).endswith("`frontdesk plan list` shows those there are.")
    assert command_for(None, {}) == ""


def test_every_remedy_of_customers_is_an_operation() -> None:
    operations = operations_of(ENDPOINTS)
    assert operations[Remedy.RENAME_MEMBER].shown(
        Remedy.RENAME_MEMBER, {"plan_id": 1, "eligibility_id": 7}
    ) == {"action": "rename_member", "method": "POST", "path": "/v2/plans/1/eligibility/7/rename"}
    with pytest.raises(ValueError, match="the remedy accept_mapping has no endpoint"):
        operations_of(())


def test_a_kind_without_a_status_stops_the_start() -> None:
    assert list(PROBLEMS) == list(Kind)

    class Colour(StrEnum):
        RED = "red"
        BLUE = "blue"

    assert codes.complete(Colour, {Colour.RED: 1, Colour.BLUE: 2})
    with pytest.raises(ValueError, match="Colour without an entry: blue"):
        codes.complete(Colour, {Colour.RED: 1})
