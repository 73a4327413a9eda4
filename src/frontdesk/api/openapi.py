"""The OpenAPI 3.1 document, made from the operations of `routes` and the tables of `schemas` and `parameters`.

Examples are in assets/examples.json. Which errors an operation has follows from what it asks and accepts.

Operations are endpoints with what their handlers' docstrings say of them. The first paragraph is the summary and the
description; the second has a line for each of these, which 4 more spaces continue:

`200 Schema [Headers]: text` is a good answer; `Cache-Control` is its header if none is named, and media types may stand instead
of the schema of JSON. `Body`, `Parameters`, `Problems`, `Faults` and `Errors` list words: the schema of the body, keys of
`parameters`, the kinds of problems that don't follow from the endpoint's form, the codes of its 422, the errors of RFC 6749.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from inspect import cleandoc
from typing import Any

from frontdesk import __version__
from frontdesk.access.model import Scope
from frontdesk.api.oauth import OAUTH_ERRORS
from frontdesk.api.parameters import HEADERS, PARAMETERS
from frontdesk.api.schemas import Schema, explained, filled_in, read_type, ref, schemas
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import FAULT_CODES
from frontdesk.errors import Fault
from frontdesk.web.endpoint import Endpoint, Handler
from frontdesk.web.problems import PROBLEMS

JSON = "application/json"
# Media types of eligibility files and reports, with the format of their example. Generated clients send the first one, or
# application/json wherever it stands in the list and then everything as JSON: so it is missing here, and taken all the same.
FILE_TYPES = {
    "application/octet-stream": "json",
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/edi-x12": "834",
}
UPLOAD_TYPES = (*FILE_TYPES, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")
# The media type of RFC 6749: of several, generators of clients send none right.
FORM = "application/x-www-form-urlencoded"

_LISTS = ("Body", "Parameters", "Problems", "Faults", "Errors")
_ANSWER = re.compile(r"(\d{3}) ?([^[:]*?) ?(?:\[(.*?)\])?: (.*)")

REQUEST_ID = "5f0c1a2b00000001"

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
    "mappings": ("Mappings", "How the eligibility files of the account name things."),
    "oauth": ("Access", "Access tokens: 2 hours, sent as `Authorization: Bearer …`."),
    "reference": ("Reference", "This reference."),
    "health": ("Operation", "For operators of the service."),
}
_SCOPES = {
    Scope.CUSTOMER.value: "The whole of /v2.",
    Scope.PLANS_READ.value: "Read plans.",
    Scope.PLANS_WRITE.value: "Change plans.",
    Scope.ELIGIBILITY_WRITE.value: "Create and update eligible members, one by one and by file.",
    Scope.OPERATOR.value: "Operate the service; customers don't get it.",
}

_ON_EVERY_ANSWER = ("X-Request-Id", "X-Content-Type-Options")
_OF_UNKNOWN_PARAMETERS = ("Ignored-Parameters", "Did-You-Mean")
_OF_LIMITED_CLIENTS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
# An error has these where what came before it adds them; those of /oauth are not to be stored.
_ON_ERRORS = ("Cache-Control", "Pragma", *_OF_LIMITED_CLIENTS, "Ignored-Fields", *_OF_UNKNOWN_PARAMETERS)
_OF_PROBLEMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("unauthorized", "forbidden", "invalid_client"), ("WWW-Authenticate",)),
    **dict.fromkeys(("timeout", "too_large"), ("Connection",)),
    **dict.fromkeys(("rate_limited", "unavailable"), ("Retry-After",)),
    "method_not_allowed": ("Allow",),
}

_OF_EVERY_ENDPOINT = {"method_not_allowed", "headers_too_large", "internal"}
_OF_TOKENS = {"malformed", "unauthorized", "forbidden", "rate_limited", "unavailable"}
_OF_BODIES = {"malformed", "timeout", "too_large", "unsupported_media_type", "unavailable"}
# The parameters of paths in examples of problems.
_IN_PATHS = {"plan_id": "1", "file_id": "7", "mapping_name": "hr-export", "asset": "page.css"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Endpoint):
    """An endpoint as the document describes it. A good answer is its status, the schema or media types of its content, the names
    of its headers and its text, as the docstring has them."""

    summary: str
    description: str
    answers: tuple[Sequence[str], ...]
    words: dict[str, tuple[str, ...]]  # by each of _LISTS

    @property
    def id(self) -> str:
        """The name of the handler as the document writes it: `listPlans` for `list_plans`."""
        name = _pascal(self.handler.__name__)
        return name[0].lower() + name[1:]

    @property
    def is_oauth(self) -> bool:
        """Whether it is one of /oauth, where clients send their credentials."""
        return self.path.startswith("/oauth/")


def operation(
    method: str,
    path: str,
    handler: Handler,
    scope: Scope | None = None,
    *,
    strict_query: bool = False,
    **options: Any,
) -> Operation:
    """The operation of a route. Those of /v2 name unknown query parameters, or refuse them if `strict_query`."""
    told, _, notes = cleandoc(handler.__doc__ or "").partition("\n\n")
    summary, _, description = told.replace("\n", " ").partition(". ")
    answers: list[Sequence[str]] = []
    listed: dict[str, tuple[str, ...]] = dict.fromkeys(_LISTS, ())
    for line in re.sub(r"\n {4,}", " ", notes).splitlines():
        name, _, words = line.partition(": ")
        if match := _ANSWER.fullmatch(line):
            answers.append(match.groups(""))
        elif name in listed:
            listed[name] = (*words.split(),)
        else:
            raise ValueError(line)
    query = None
    if path.startswith("/v2/"):
        sent = [PARAMETERS[key] for key in listed["Parameters"]]
        query = {each["name"]: each["schema"] for each in sent if each["in"] == "query"}
        listed["Parameters"] += () if strict_query else ("prefer",)
        listed["Faults"] += ("unknown_parameter",)
    return Operation(
        method=method,
        path=path,
        handler=handler,
        scope=scope,
        takes_json=path.startswith("/v2/") and listed["Body"] not in ((), ("file",)),
        serves_json=not any("/" in content for _, content, *_ in answers),
        query=query,
        strict_query=strict_query,
        summary=summary,
        description=description,
        answers=tuple(answers),
        words=listed,
        **options,
    )


def openapi_document(base_url: str, operations: Sequence[Operation]) -> Schema:
    """The whole document for the service at `base_url`, as JSON values."""
    examples = read_examples(base_url)
    shared: dict[str, Schema] = {}
    paths: defaultdict[str, Schema] = defaultdict(dict)
    for operation in operations:
        responses = _answers(operation, examples)
        for status, name, response in (
            *_problems(operation, examples, base_url),
            *_oauth_errors(operation, examples),
        ):
            responses[status] = ref(name, "responses") if name else response
            if name:
                shared.setdefault(name, response)
        described = _operation(operation, examples) | {"responses": dict(sorted(responses.items()))}
        paths[operation.path][operation.method.lower()] = described
    token = {"tokenUrl": f"{base_url}/oauth/token", "scopes": _SCOPES}
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
        "tags": [{"name": name, "description": text} for name, text in _TAGS.values()],
        "paths": dict(paths),
        "components": {
            "schemas": schemas(),
            "responses": shared,
            "headers": {
                name: header | {"example": examples["headers"][name]} for name, header in HEADERS.items()
            },
            "parameters": PARAMETERS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "An access token."},
                "client": {
                    "type": "oauth2",
                    "description": "A token that the client gets for itself.",
                    "flows": {"clientCredentials": token},
                },
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "`client_id` and `client_secret`.",
                },
            },
        },
    }


def read_examples(base_url: str) -> Schema:
    """The examples of assets/examples.json for the service at `base_url`; the new member's is the field table's."""
    text = files("frontdesk.api").joinpath("assets/examples.json").read_text(encoding="utf-8")
    examples: Schema = json.loads(text.replace("{base_url}", base_url))
    member = {field.name: field.example for field in FIELDS.values()}
    new = {"new_member": {"summary": "A new member, with every field", "value": member}}
    examples["requests"]["enrolMember"] = new | examples["requests"]["enrolMember"]
    return examples


def _operation(operation: Operation, examples: Schema) -> Schema:
    """The operation without its answers."""
    names = (*re.findall(r"{(\w+)}", operation.path), *operation.words["Parameters"], "request_id")
    # Without a scope an empty requirement stands for none: a client may send its credentials in the body of a request to /oauth.
    no_token: list[Schema] = [{"basic": []}, {}] if operation.is_oauth else []
    described: Schema = {
        "tags": [_TAGS[operation.handler.__module__.rpartition(".")[2]][0]],
        "operationId": operation.id,
        "summary": operation.summary,
        "description": operation.description,
        "security": [{"token": []}, {"client": [operation.scope.value]}] if operation.scope else no_token,
        "parameters": [ref(name, "parameters") for name in names],
    }
    for name in operation.words["Body"]:
        types = UPLOAD_TYPES if name == "file" else (FORM if operation.is_oauth else JSON,)
        content = _content(types, read_type(name), examples["requests"].get(operation.id, {}))
        described["requestBody"] = {"required": True, "content": content}
    return described


def _answers(operation: Operation, examples: Schema) -> Schema:
    """The good answers by status."""
    common: tuple[str, ...] = _OF_LIMITED_CLIENTS if operation.scope or operation.is_oauth else ()
    common += () if operation.query is None else _OF_UNKNOWN_PARAMETERS
    shown = examples["answers"].get(operation.id, {})
    answers: Schema = {}
    for status, content, headers, text in operation.answers:
        names = (*(headers or "Cache-Control").split(), *common)
        answers[status] = {"description": filled_in(text), "headers": _headers(names)}
        if content:
            types, type_ = ((JSON,), content) if operation.serves_json else (content.split(), "string")
            answers[status]["content"] = _content(types, read_type(type_), shown.get(status, {}))
    return answers


def _content(media_types: Iterable[str], schema: Schema, shown: Schema) -> Schema:
    """Schema and examples of each media type; examples of files belong to the media type of their format."""
    described: Schema = {}
    for media_type in media_types:
        format_ = FILE_TYPES.get(media_type)
        examples = {name: shown[name] for name in shown if name == format_ or name not in FILE_TYPES.values()}
        described[media_type] = {"schema": schema} | ({"examples": examples} if examples else {})
    return described


def _problems(operation: Operation, examples: Schema, base_url: str) -> Iterator[tuple[str, str, Schema]]:
    """The problems of the operation: the status, the name under which operations share the response or "", and the response.

    The words are in `examples` by the response's name, or by operation and status where they are the operation's own.
    """
    for kind in _kinds_of_problems(operation):
        status, name, more = str(PROBLEMS[kind].status), _response_name(kind, operation), {}
        own = examples["problems"].get(f"{operation.id} {status}")
        details = own or examples["problems"][name]
        # An example that is named for another kind, with the same status, is of that kind.
        kinds = {example: example if example in PROBLEMS else kind for example in details}
        text = "\n\n".join(
            f"{PROBLEMS[each].title}. {PROBLEMS[each].happens}" for each in dict.fromkeys(kinds.values())
        )
        if kind == "invalid":
            faults = examples["faults"].get(operation.id) or examples["faults"]["others"]
            more["errors"] = [Fault(*fault).serialize() for fault in faults]
            text += explained({code: FAULT_CODES[code] for code in operation.words["Faults"]})
        values = {each: _example(kinds[each], details[each], operation, base_url) | more for each in details}
        response = _response(kind, text, "application/problem+json", values)
        yield status, "" if own or more else name, response


def _kinds_of_problems(operation: Operation) -> list[str]:
    kinds = {*_OF_EVERY_ENDPOINT, *operation.words["Problems"]}
    for applies, more in (
        (operation.scope, _OF_TOKENS),
        (operation.takes_json, _OF_BODIES),
        (operation.is_oauth, _OF_BODIES - {"malformed"}),
        ("{" in operation.path and operation.method != "PUT", {"not_found"}),
        (operation.serves_json, {"not_acceptable"}),
        (operation.words["Faults"], {"invalid"}),
    ):
        kinds |= more if applies else set()
    return [kind for kind in PROBLEMS if kind in kinds]


def _example(kind: str, detail: str, operation: Operation, base_url: str) -> Schema:
    """The problem in these words; those of a wrong state are a fault too."""
    example: Schema = {
        "type": f"{base_url}/problems#{kind}",
        "title": PROBLEMS[kind].title,
        "status": PROBLEMS[kind].status,
        "instance": re.sub(r"{(\w+)}", lambda found: _IN_PATHS[found[1]], operation.path),
        "request_id": REQUEST_ID,
        "detail": detail,
    }
    return example | ({"errors": [Fault("state", kind, detail).serialize()]} if kind == "wrong_state" else {})


def _oauth_errors(operation: Operation, examples: Schema) -> Iterator[tuple[str, str, Schema]]:
    """The errors of RFC 6749, as `_problems` gives problems."""
    for status in sorted({OAUTH_ERRORS[code][0] for code in operation.words["Errors"]}):
        codes = [code for code in operation.words["Errors"] if OAUTH_ERRORS[code][0] == status]
        values = {
            each: {"error": each, "error_description": examples["oauth_errors"][each]} for each in codes
        }
        text = explained({code: OAUTH_ERRORS[code][1] for code in codes}).strip()
        name = "" if status == 400 else f"OAuth{_pascal(codes[0])}"
        yield str(status), name, _response(codes[0], text, JSON, values)


def _response(kind: str, text: str, media_type: str, values: Schema) -> Schema:
    """An error response with its examples."""
    content = {
        "schema": ref("OAuthError" if media_type == JSON else "Problem"),
        "examples": {name: {"value": value} for name, value in values.items()},
    }
    headers = _headers((*_OF_PROBLEMS.get(kind, ()), *_ON_ERRORS))
    return {"description": text, "headers": headers, "content": {media_type: content}}


def _headers(names: Iterable[str]) -> Schema:
    """References to the named headers and to those of every answer."""
    return {name: ref(name, "headers") for name in (*_ON_EVERY_ANSWER, *names)}


def _response_name(kind: str, operation: Operation) -> str:
    """The response's name. Operations have the same name where they answer alike."""
    if kind == "not_found":
        return f"NoSuch{_pascal(re.findall('{([a-z]+)', operation.path)[-1])}"
    if kind == "forbidden":
        return f"Lacks{_pascal(operation.scope or '')}"
    if kind == "malformed" and not operation.takes_json:
        return "TwoTokens"
    return _pascal(kind)


def _pascal(name: str) -> str:
    return "".join(map(str.capitalize, re.split("[_:]", name)))
