"""The OpenAPI 3.1 document, made from the route table and from what is said of each route."""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from importlib.resources import files
from inspect import cleandoc
from typing import Any

from frontdesk import __version__
from frontdesk.api.notation import ref
from frontdesk.api.openapi_components import (
    HEADERS,
    OF_LIMITED_CLIENTS,
    OF_UNKNOWN_PARAMETERS,
    header_refs,
    security_schemes,
)
from frontdesk.api.openapi_operations import FILE_TYPES, JSON, Content, Operation, operation_id, operation_of
from frontdesk.api.openapi_problems import ErrorResponses
from frontdesk.api.parameters import PARAMETERS
from frontdesk.api.schemas import schemas
from frontdesk.eligibility.fields import FIELDS
from frontdesk.web.endpoint import Endpoint

Json = dict[str, Any]

_ABOUT = """\
List plans with a live picture of each queue, change a plan, and say which members are eligible.

- Every path that answers GET answers HEAD too. Any other method is refused with 405, any other path with 404.
- Errors are problem details (RFC 9457), those of /oauth are errors of RFC 6749. [/problems](/problems) explains every \
problem, fault code, warning and reason.
- Unknown fields of a body, and unknown query parameters of /v2, are ignored, and named in `Ignored-Fields` and \
`Ignored-Parameters`; `Did-You-Mean` has the known names that are near. /v2 changes only by addition.
- The server answers what is not HTTP with an empty 400.
"""

# The tag of the operations of each module of handlers, with its description.
_TAGS = {
    "plans": ("Plans", "Plans and their queues."),
    "eligibility": ("Eligibility", "Members who are eligible under a plan, one by one."),
    "eligibility_files": ("Files", "Files of members: upload, progress, report, decisions."),
    "file_lists": ("Files", "Files of members: upload, progress, report, decisions."),
    "file_reports": ("Files", "Files of members: upload, progress, report, decisions."),
    "mappings": ("Mappings", "How the eligibility files of the account name things."),
    "oauth": ("Access", "Access tokens: 2 hours, sent as `Authorization: Bearer …`."),
    "reference": ("Reference", "This reference."),
    "health": ("Operation", "For operators of the service."),
}


def openapi_document(base_url: str, endpoints: Sequence[Endpoint]) -> Json:
    """The whole document for the service at `base_url`, as JSON values."""
    examples = read_examples(base_url)
    errors = ErrorResponses(examples, base_url)
    paths: defaultdict[str, Json] = defaultdict(dict)
    for endpoint in endpoints:
        operation = operation_of(endpoint)
        responses = _answers(endpoint, operation, examples) | errors.of(endpoint, operation)
        described = _operation(endpoint, operation, examples) | {"responses": dict(sorted(responses.items()))}
        paths[endpoint.path][endpoint.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Plans and member eligibility",
            "version": __version__,
            "description": _ABOUT,
            "contact": {"name": "The operators of this installation", "url": f"{base_url}/docs"},
            "license": {"name": "All rights reserved", "identifier": "LicenseRef-All-Rights-Reserved"},
        },
        "servers": [{"url": base_url}],
        "tags": [{"name": name, "description": text} for name, text in dict.fromkeys(_TAGS.values())],
        "paths": dict(paths),
        "components": {
            "schemas": schemas(),
            "responses": errors.shared,
            "headers": HEADERS,
            "parameters": PARAMETERS,
            "securitySchemes": security_schemes(base_url),
        },
    }


def read_examples(base_url: str) -> Json:
    """The examples of assets/examples.json for the service at `base_url`; the new member's is the field table's."""
    text = files("frontdesk.api").joinpath("assets/examples.json").read_text(encoding="utf-8")
    examples: Json = json.loads(text.replace("{base_url}", base_url))
    member = {field.name: field.example for field in FIELDS.values()}
    new = {"new_member": {"summary": "A new member, with every field", "value": member}}
    examples["requests"]["enrolMember"] = new | examples["requests"]["enrolMember"]
    return examples


def _operation(endpoint: Endpoint, operation: Operation, examples: Json) -> Json:
    """The operation without its answers. The first sentence of the handler's docstring is the summary."""
    summary, _, description = cleandoc(endpoint.handler.__doc__ or "").replace("\n", " ").partition(". ")
    names = (*re.findall(r"{(\w+)}", endpoint.path), *operation.parameters, "request_id")
    described: Json = {
        "tags": [_TAGS[endpoint.handler.__module__.rpartition(".")[2]][0]],
        "operationId": operation_id(endpoint),
        "summary": summary,
        "description": description,
        "security": _security(endpoint),
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in names],
    }
    if operation.body:
        content = _content(operation.body, examples["requests"].get(operation_id(endpoint), {}))
        described["requestBody"] = {"required": True, "content": content}
    return described


def _answers(endpoint: Endpoint, operation: Operation, examples: Json) -> Json:
    """The good answers by status."""
    common: tuple[str, ...] = (
        OF_LIMITED_CLIENTS if endpoint.scope or endpoint.path.startswith("/oauth/") else ()
    )
    common += () if endpoint.query is None else OF_UNKNOWN_PARAMETERS
    shown = examples["answers"].get(operation_id(endpoint), {})
    answers: Json = {}
    for status, answer in operation.answers.items():
        described = {
            "description": answer.text,
            "headers": header_refs((*answer.headers, *common)),
            "content": _content(answer.content, shown.get(status, {})),
            "links": answer.links,
        }
        answers[status] = {name: value for name, value in described.items() if value}
    return answers


def _content(content: Content, shown: Json) -> Json:
    """Schema and examples of each media type; examples of files belong to the media type of their format."""
    described: Json = {}
    for media_type, schema in ({JSON: content} if isinstance(content, str) else content).items():
        format_ = FILE_TYPES.get(media_type)
        examples = {name: shown[name] for name in shown if name == format_ or name not in FILE_TYPES.values()}
        described[media_type] = {"schema": ref(schema) if isinstance(schema, str) else schema}
        if examples:
            described[media_type]["examples"] = examples
    return described


def _security(endpoint: Endpoint) -> list[Json]:
    """An empty requirement stands for none: a client may send its credentials in the body of a request to /oauth."""
    if endpoint.scope is not None:
        return [{"token": []}, {"client": [endpoint.scope.value]}]
    return [{"basic": []}, {}] if endpoint.path.startswith("/oauth/") else []
