"""The guard of the fixture `api`: what the service answers in any test, its operation declares."""

import re
from typing import Any

import httpx

from frontdesk.api.routes import ENDPOINTS, ENTRANCE, PAGES
from frontdesk.codes import Where, find
from frontdesk.interface.document import fault_codes, problem_kinds
from frontdesk.interface.operations import Operation
from frontdesk.operator.routes import ENDPOINTS as OPERATORS
from tests.interface.made import document, resolved

# Headers that OpenAPI leaves to HTTP. A process that drains adds `Connection` to any answer.
OF_HTTP = {"content-type", "content-length", "date", "server", "connection"}
OPERATIONS = (*ENDPOINTS, *ENTRANCE, *PAGES, *OPERATORS)
LITERAL_FIRST = sorted(OPERATIONS, key=lambda each: "{" in each.path.rpartition("/")[2])
PATTERNS = [(re.compile(re.sub(r"{\w+}", "[^/]+", each.path)), each) for each in LITERAL_FIRST]


def check_declared(answer: httpx.Response) -> None:
    """Raises AssertionError for an answer that its operation does not declare. Answers without an
    operation, such as those of unknown paths and methods, declare nothing.
    """
    operation = operation_of(answer.request.method, answer.request.url.path)
    if operation is None:
        return
    if is_problem(answer):
        answer.read()
    undeclared = found_undeclared(operation, answer)
    assert undeclared == [], f"{operation.id} {answer.status_code}: undeclared {undeclared}"


def is_problem(answer: httpx.Response) -> bool:
    return bool(answer.headers.get("Content-Type") == "application/problem+json")


def operation_of(method: str, path: str) -> Operation | None:
    method = "GET" if method == "HEAD" else method
    for pattern, operation in PATTERNS:
        if operation.method == method and pattern.fullmatch(path):
            return operation
    return None


def found_undeclared(operation: Operation, answer: httpx.Response) -> list[str]:
    """The status, kind, codes and headers of the answer that the operation does not declare."""
    body = answer.json() if is_problem(answer) and answer.content else {}
    kind = body.get("type", "").partition("#")[2]
    words = [fault["code"] for fault in body.get("errors", ())]
    if operation not in ENDPOINTS:
        kinds = [str(each) for each in problem_kinds(operation)]
        is_declared = kind in kinds or answer.status_code in operation.contract["answers"]
        return [] if is_declared else [kind or "status"]
    response = response_of(operation, answer.status_code)
    if response is None:
        return ["status", kind, *words]
    headers = {name.lower() for name in response["headers"]}
    found = sorted(set(answer.headers) - headers - OF_HTTP)
    if kind and kind not in kinds_of(response):
        found.append(kind)
    if kind == "invalid":
        return found + [word for word in words if word not in fault_codes(operation)]
    return found + [word for word in words if getattr(find(Where.FAULT, word), "kind", "") != kind]


def response_of(operation: Operation, status: int) -> dict[str, Any] | None:
    """What the document says of the operation's answers with this status."""
    described = document()["paths"][operation.path][operation.method.lower()]
    response = described["responses"].get(str(status))
    return None if response is None else resolved(response)


def kinds_of(response: dict[str, Any]) -> set[str]:
    """The kinds of problems that the response shows."""
    examples = response["content"]["application/problem+json"]["examples"].values()
    return {example["value"]["type"].partition("#")[2] for example in examples}
