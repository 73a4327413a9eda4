"""The OpenAPI document is complete and valid, and changes knowingly."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import schemathesis

import frontdesk
from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.api.routes import ENDPOINTS
from frontdesk.codes import Kind, Where
from frontdesk.invitations.model import NotInvitedReason
from frontdesk.web.problems import PROBLEMS
from tests.api.reference import DOCUMENT, SNAPSHOT, operations, schema_validator
from tests.conftest import Api
from tests.interface.made import document_text, resolved


def examples_in(part: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every example below a part of the document, with its schema; those of a shared response
    wherever it is referred to.
    """
    if isinstance(part, dict):
        if "/responses/" in str(part.get("$ref")):
            part = resolved(part)
        if "schema" in part:
            yield from (
                (part["schema"], entry["value"]) for entry in part.get("examples", {}).values()
            )
            yield from ((part["schema"], part[name]) for name in ("example",) if name in part)
        elif isinstance(part.get("examples"), list):
            yield from ((part, example) for example in part["examples"])
        for inner in part.values():
            yield from examples_in(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from examples_in(inner)


def test_a_change_of_the_document_is_made_knowingly() -> None:
    assert SNAPSHOT.read_text(encoding="utf-8") == document_text(DOCUMENT), (
        "Look at what customers will see: make interface; git diff. Commit what is right."
    )


def test_what_linters_of_openapi_ask_for_is_there() -> None:
    """The rules of Redocly (recommended) and Spectral (oas) that the document's own schema does not
    have.
    """
    assert {"contact", "license", "description"} <= set(DOCUMENT["info"])
    assert {"name", "identifier"} <= set(DOCUMENT["info"]["license"])
    assert not DOCUMENT["servers"][0]["url"].endswith("/")
    parameters = [
        parameter["schema"] for parameter in DOCUMENT["components"]["parameters"].values()
    ]
    # A flag is a boolean.
    assert [schema for schema in parameters if "true" in schema.get("enum", ())] == []
    tags = [tag["name"] for tag in DOCUMENT["tags"] if tag["description"]]
    for path, _, operation in operations():
        assert "" not in (operation["summary"], operation["description"])
        assert set(operation["tags"]) <= set(tags)
        names = {resolved(parameter)["name"] for parameter in operation["parameters"]}
        assert set(re.findall(r"{(\w+)}", path)) <= names
        assert {status[0] for status in operation["responses"]} >= {"2", "4"}
        assert all(
            resolved(response)["description"] for response in operation["responses"].values()
        )


def test_the_document_is_valid_openapi_of_every_route_with_its_scope_and_is_served(
    api: Api,
) -> None:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.validate()
    assert len(list(schema.get_all_operations())) == len(ENDPOINTS)
    assert len({operation["operationId"] for _, _, operation in operations()}) == len(ENDPOINTS)
    for endpoint in ENDPOINTS:
        security = DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]["security"]
        scopes = [scope for way in security for scope in way.get("client", [])]
        assert scopes == ([endpoint.scope.value] if endpoint.scope else [])
    assert api.as_(None).get("/openapi.json").json() == DOCUMENT


def test_every_status_code_scope_warning_and_reason_is_in_the_document() -> None:
    documented = {
        int(status) for _, _, operation in operations() for status in operation["responses"]
    }
    assert {problem.status for problem in PROBLEMS.values()} <= documented
    responses = [operation["responses"] for _, _, operation in operations()]
    texts = " ".join(each["422"]["description"] for each in responses if "422" in each)
    faults = [code for code in codes.of(Where.FAULT) if code.kind is Kind.INVALID]
    assert [code for code in faults if f"`{code}`" not in texts] == []
    words = (*Scope, *codes.of(Where.WARNING), *NotInvitedReason)
    assert [word for word in words if word not in json.dumps(DOCUMENT)] == []


def test_the_problems_page_names_every_code_with_an_anchor_for_every_type(api: Api) -> None:
    anchors = re.findall(r' id="([^"]+)"', api.get("/problems").text)
    names = {*PROBLEMS, *codes.of(Where.FAULT, Where.WARNING), *NotInvitedReason}
    names |= {f"row-{code}" for code in codes.of(Where.ROW)}
    names |= {f"file-{code}" for code in codes.of(Where.FILE)}
    assert names - set(anchors) == set()
    assert len(set(anchors)) == len(anchors)


def test_the_process_that_reads_workbooks_knows_words_of_the_table_only() -> None:
    """It imports no other module of the package, so its words are texts."""
    code = (Path(frontdesk.__file__).parent / "workbooks.py").read_text()
    words = set(re.findall(r'\bWorkbookFault\(\s*"(\w+)"', code))
    assert len(words) > 5
    assert words - set(codes.of(Where.FILE)) == set()


def test_every_code_of_a_file_and_its_report_is_in_the_document() -> None:
    document = json.dumps(DOCUMENT)
    assert [code for code in codes.of(Where.ROW, Where.FILE) if f"`{code}`" not in document] == []


def test_every_example_fits_its_schema_and_every_component_is_referred_to() -> None:
    examples = list(examples_in(DOCUMENT))
    assert len(examples) > 150
    assert [
        example for schema, example in examples if not schema_validator(schema).is_valid(example)
    ] == []
    referred = set(re.findall(r'"#/components/(\w+)/([^"]+)"', json.dumps(DOCUMENT)))
    kinds = ("schemas", "responses", "headers", "parameters")
    assert {
        (kind, name) for kind in kinds for name in DOCUMENT["components"][kind]
    } - referred == set()
