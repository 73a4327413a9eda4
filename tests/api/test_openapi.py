"""The OpenAPI document is complete and valid, and changes knowingly."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import schemathesis

import frontdesk
from frontdesk.access.model import Scope
from frontdesk.api.openapi import openapi_document
from frontdesk.api.routes import ENDPOINTS
from frontdesk.eligibility.model import FAULT_CODES, WARNINGS
from frontdesk.files.model import BRAKES, FILE_PROBLEMS, NEEDS_MAPPING, ONLY_COMPARED, REPORT_CODES
from frontdesk.invitations.model import NotInvitedReason
from frontdesk.web.problems import EXACT_CODES, PROBLEMS
from tests.conftest import Api

BASE_URL = "https://api.example.com"
DOCUMENT = openapi_document(BASE_URL, ENDPOINTS)
SNAPSHOT = Path(__file__).parent / "snapshots/openapi.json"
RENEW = "FRONTDESK_TEST_RENEW"


def schema_validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """A validator for a schema of the document, which may refer to the document's components."""
    return jsonschema_rs.Draft202012Validator(
        schema | {"components": DOCUMENT["components"]}, validate_formats=True
    )


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and description of every operation."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """A part of the document, or the component that it refers to."""
    if "$ref" in part:
        _, _, kind, name = part["$ref"].split("/")
        return dict(DOCUMENT["components"][kind][name])
    return part


def examples_in(part: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every example below a part of the document, with its schema; those of a shared response wherever it is referred to."""
    if isinstance(part, dict):
        if "/responses/" in str(part.get("$ref")):
            part = resolved(part)
        if "schema" in part:
            yield from ((part["schema"], entry["value"]) for entry in part.get("examples", {}).values())
            yield from ((part["schema"], part[name]) for name in ("example",) if name in part)
        elif isinstance(part.get("examples"), list):
            yield from ((part, example) for example in part["examples"])
        for inner in part.values():
            yield from examples_in(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from examples_in(inner)


def test_a_change_of_the_document_is_made_knowingly() -> None:
    text = json.dumps(DOCUMENT, indent=1, ensure_ascii=False) + "\n"
    text = re.sub(r'\{\s+("\$ref": "[^"]+")\s+\}', r"{\1}", text)  # a reference takes one line
    if os.environ.get(RENEW):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert SNAPSHOT.read_text(encoding="utf-8") == text, (
        f"Look at what customers will see: {RENEW}=1 .venv/bin/pytest {__file__}; git diff. Commit what is right."
    )


def test_what_linters_of_openapi_ask_for_is_there() -> None:
    """The rules of Redocly (recommended) and Spectral (oas) that the document's own schema does not have."""
    assert {"contact", "license", "description"} <= set(DOCUMENT["info"])
    assert {"name", "identifier"} <= set(DOCUMENT["info"]["license"])
    assert not DOCUMENT["servers"][0]["url"].endswith("/")
    parameters = [parameter["schema"] for parameter in DOCUMENT["components"]["parameters"].values()]
    assert [schema for schema in parameters if "true" in schema.get("enum", ())] == []  # a flag is a boolean
    tags = [tag["name"] for tag in DOCUMENT["tags"] if tag["description"]]
    for path, _, operation in operations():
        assert "" not in (operation["summary"], operation["description"])
        assert set(operation["tags"]) <= set(tags)
        names = {resolved(parameter)["name"] for parameter in operation["parameters"]}
        assert set(re.findall(r"{(\w+)}", path)) <= names
        assert {status[0] for status in operation["responses"]} >= {"2", "4"}
        assert all(resolved(response)["description"] for response in operation["responses"].values())


def test_the_document_is_valid_openapi_of_every_route_with_its_scope_and_is_served(api: Api) -> None:
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
    documented = {int(status) for _, _, operation in operations() for status in operation["responses"]}
    assert {problem.status for problem in PROBLEMS.values()} <= documented
    responses = [operation["responses"] for _, _, operation in operations()]
    texts = " ".join(each["422"]["description"] for each in responses if "422" in each)
    assert [code for code in FAULT_CODES if f"`{code}`" not in texts] == []
    words = (*Scope, *WARNINGS, *NotInvitedReason)
    assert [word for word in words if word not in json.dumps(DOCUMENT)] == []


def test_the_problems_page_names_every_code_with_an_anchor_for_every_type(api: Api) -> None:
    anchors = re.findall(r' id="([^"]+)"', api.get("/problems").text)
    names = {*PROBLEMS, *FAULT_CODES, *WARNINGS, *NotInvitedReason}
    names |= {f"row-{code}" for code in REPORT_CODES} | {f"file-{code}" for code in FILE_PROBLEMS}
    assert names - set(anchors) == set()
    assert len(set(anchors)) == len(anchors)


def test_every_code_that_a_file_can_bring_about_is_in_the_document() -> None:
    package = Path(frontdesk.__file__).parent
    paths = [path for name in ("formats", "mapping", "files") for path in (package / name).rglob("*.py")]
    paths += [package / "eligibility/enrol.py", package / "workbooks.py"]
    code = "".join(path.read_text() for path in paths)
    faults = set(re.findall(r'\b(?:Fault|_fault)\(\s*"?\w+"?,\s*"(\w+)"', code))
    problems = {*BRAKES, NEEDS_MAPPING, ONLY_COMPARED}
    problems |= set(re.findall(r'(?:\b(?:Unreadable|WorkbookFault)|_unreadable)\(\s*"(\w+)"', code))
    problems |= set(re.findall(r'\b(?:_at|at_segment)\(\s*\w+,\s*"(\w+)"', code))
    problems |= set(re.findall(r'\b_end\(\s*claim,\s*model\.FileState\.\w+,\s*"(\w+)"', code))
    assert (len(faults) > 8, len(problems) > 20) == (True, True)
    assert faults - set(REPORT_CODES) - set(FAULT_CODES) - set(EXACT_CODES) == set()
    assert problems == set(FILE_PROBLEMS)


def test_every_example_fits_its_schema_and_every_component_is_referred_to() -> None:
    examples = list(examples_in(DOCUMENT))
    assert len(examples) > 150
    assert [example for schema, example in examples if not schema_validator(schema).is_valid(example)] == []
    referred = set(re.findall(r'"#/components/(\w+)/([^"]+)"', json.dumps(DOCUMENT)))
    kinds = ("schemas", "responses", "headers", "parameters")
    assert {(kind, name) for kind in kinds for name in DOCUMENT["components"][kind]} - referred == set()
