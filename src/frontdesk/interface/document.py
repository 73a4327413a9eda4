"""The OpenAPI 3.1 document, made from the operations and the types of the interface.

What follows from an operation's form is added to what it declares: the errors of what it asks and
accepts, their headers and codes. Examples are in assets/examples.json.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from inspect import cleandoc
from typing import Any

from frontdesk import __version__, codes
from frontdesk.access.model import Scope
from frontdesk.codes import Code, Kind, Remedy, Where
from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault
from frontdesk.interface import parameters
from frontdesk.interface.bodies import schemas
from frontdesk.interface.operations import FILE_TYPES, Content, Group, Operation
from frontdesk.interface.parameters import HEADERS, PARAMETERS, Header, Parameter
from frontdesk.interface.schema import Schema, explained, ref, schema_of
from frontdesk.web.problems import PROBLEMS, RemedyOperation, problem_content, status_of

JSON = "application/json"

REQUEST_ID = "5f0c1a2b00000001"

_ABOUT = """\
List plans with a live picture of each queue, change a plan, and say which members are eligible.

- Every path that answers GET answers HEAD too. Any other method is refused with 405, any other path with 404.
- Errors are problem details (RFC 9457), those of /oauth are errors of RFC 6749. [/problems](/problems) \
explains every problem, fault code, warning and reason.
- Unknown fields of a body, and unknown query parameters of /v2, are ignored, and named in \
`Ignored-Fields` and `Ignored-Parameters`; `Did-You-Mean` has the known names that are near. \
/v2 changes only by addition.
- The server answers what is not HTTP with an empty 400.
"""
_SCOPES = {
    Scope.CUSTOMER.value: "The whole of /v2, but for reading members, events and webhooks.",
    Scope.PLANS_READ.value: "Read plans.",
    Scope.PLANS_WRITE.value: "Change plans.",
    Scope.ELIGIBILITY_READ.value: "Read members and their histories; "
    "a client has it only if it is given it by name.",
    Scope.ELIGIBILITY_WRITE.value: "Create and update eligible members, one by one and by file.",
    Scope.EVENTS_READ.value: "Read events; a client has it only if it is given it by name.",
    Scope.WEBHOOKS_MANAGE.value: "Manage webhook endpoints; a client has it only if it is given it by name.",
    Scope.SANDBOX_RESET.value: "Reset an account of a sandbox; "
    "a client has it only if it is given it by name.",
    Scope.OPERATOR.value: "Operate the service; customers don't get it.",
}

_SECURITY: Schema = {
    "token": {"type": "http", "scheme": "bearer", "description": "An access token."},
    "client": {"type": "oauth2", "description": "A token that the client gets for itself."},
    "basic": {"type": "http", "scheme": "basic", "description": "`client_id` and `client_secret`."},
}

_ON_EVERY_ANSWER = (parameters.X_REQUEST_ID, parameters.X_CONTENT_TYPE_OPTIONS)
_OF_UNKNOWN_PARAMETERS = (parameters.IGNORED_PARAMETERS, parameters.DID_YOU_MEAN)
_OF_LIMITED_CLIENTS = (
    parameters.RATELIMIT,
    parameters.RATELIMIT_POLICY,
    parameters.RATELIMIT_LIMIT,
    parameters.RATELIMIT_REMAINING,
    parameters.RATELIMIT_RESET,
)
# An error has these where what came before it adds them; those of /oauth are not to be stored.
_ON_ERRORS = (
    *(parameters.CACHE_CONTROL, parameters.PRAGMA),
    *_OF_LIMITED_CLIENTS,
    *(parameters.IGNORED_FIELDS, *_OF_UNKNOWN_PARAMETERS),
)
# By the kind of a problem or the word of an error of /oauth. A 403 that may be
# `second_person_needed` may be `forbidden`, too.
_WITH_CHALLENGE = ("unauthorized", "forbidden", "second_person_needed", "invalid_client")
_OF_PROBLEMS: dict[str, Header] = {
    **dict.fromkeys(_WITH_CHALLENGE, parameters.WWW_AUTHENTICATE),
    **dict.fromkeys(("timeout", "too_large"), parameters.CONNECTION),
    **dict.fromkeys(("conflict", "rate_limited", "unavailable"), parameters.RETRY_AFTER),
    "method_not_allowed": parameters.ALLOW,
}

# The parameters of paths in examples of problems.
_IN_PATHS = {"plan_id": "1", "file_id": "7", "eligibility_id": "1001", "endpoint_id": "1"}
_IN_PATHS |= {"mapping_name": "hr-export", "asset": "page.css"}


def openapi_document(
    base_url: str,
    groups: Sequence[Group],
    operations: Sequence[Operation],
    remedies: Mapping[Remedy, RemedyOperation],
) -> Schema:
    """The whole document for the service at `base_url`, as JSON values. `remedies` are shown in the
    examples of problems.
    """
    examples = read_examples(base_url)
    shared: dict[str, Schema] = {}
    paths: defaultdict[str, Schema] = defaultdict(dict)
    for operation in operations:
        responses = _answers(operation, examples)
        errors = (
            *_problems(operation, examples, base_url, remedies),
            *_oauth_errors(operation, examples),
        )
        for status, name, response in errors:
            responses[status] = ref(name, "responses") if name else response
            if name:
                shared.setdefault(name, response)
        described = _operation(operation, examples) | {"responses": dict(sorted(responses.items()))}
        paths[operation.path][operation.method.lower()] = described
    flows = {"clientCredentials": {"tokenUrl": f"{base_url}/oauth/token", "scopes": _SCOPES}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Plans and member eligibility",
            "version": __version__,
            "description": _ABOUT,
            "contact": {"name": "The operators of this installation", "url": f"{base_url}/docs"},
            "license": {
                "name": "All rights reserved",
                "identifier": "LicenseRef-All-Rights-Reserved",
            },
        },
        "servers": [{"url": base_url}],
        "tags": [{"name": group.name, "description": group.text} for group in groups],
        "paths": dict(paths),
        "components": {
            "schemas": schemas(),
            "responses": shared,
            "headers": {
                name: header.component() | {"example": examples["headers"][name]}
                for name, header in HEADERS.items()
            },
            "parameters": {key: each.component() for key, each in PARAMETERS.items()},
            "securitySchemes": _SECURITY | {"client": _SECURITY["client"] | {"flows": flows}},
        },
    }


def read_examples(base_url: str) -> Schema:
    """The examples of assets/examples.json for the service at `base_url`; the new member's is the
    field table's.
    """
    text = files("frontdesk.api").joinpath("assets/examples.json").read_text(encoding="utf-8")
    examples: Schema = json.loads(text.replace("{base_url}", base_url))
    member = {field.name: field.example for field in FIELDS.values()}
    new = {"new_member": {"summary": "A new member, with every field", "value": member}}
    examples["requests"]["enrolMember"] = new | examples["requests"]["enrolMember"]
    return examples


def _operation(operation: Operation, examples: Schema) -> Schema:
    """The operation without its answers."""
    # Without a scope an empty requirement stands for none: a client may send its credentials in the
    # body of a request to /oauth.
    security: list[Schema] = [{"basic": []}, {}] if _is_of_oauth(operation) else []
    if operation.asks_token:
        security = [{"token": []}, {"client": [operation.scope.value] if operation.scope else []}]
    summary, _, description = cleandoc(operation.handler.__doc__ or "").partition("\n\n")
    described: Schema = {
        "tags": [operation.group],
        "operationId": operation.id,
        "summary": summary.removesuffix("."),
        "description": description.replace("\n", " "),
        "security": security,
        "parameters": [ref(each.key, "parameters") for each in parameters_of(operation)],
    }
    if "body" in operation.contract:
        shown = examples["requests"].get(operation.id, {})
        content = _content(operation.contract["body"], shown)
        described["requestBody"] = {"required": True, "content": content}
    return described


def parameters_of(operation: Operation) -> list[Parameter]:
    """The parameters that the operation takes: of its path, declared ones, those of every one."""
    found = [PARAMETERS[name] for name in re.findall(r"{(\w+)}", operation.path)]
    found += operation.contract.get("parameters", ())
    if operation.is_of_v2 and not operation.strict_query and parameters.PREFER not in found:
        found.append(parameters.PREFER)
    return [*found, parameters.REQUEST_ID]


def _answers(operation: Operation, examples: Schema) -> Schema:
    common: list[Header] = []
    if operation.asks_token or _is_of_oauth(operation):
        common += _OF_LIMITED_CLIENTS
    if operation.query is not None:
        common += _OF_UNKNOWN_PARAMETERS
    if operation.takes_key:
        common.append(parameters.IDEMPOTENCY_REPLAYED)
    shown = examples["answers"].get(operation.id, {})
    answers: Schema = {}
    for number, answer in operation.contract["answers"].items():
        status = str(number)
        headers = _headers(*answer.headers, *common)
        answers[status] = {"description": answer.text, "headers": headers}
        if answer.content is not None:
            answers[status]["content"] = _content(answer.content, shown.get(status, {}))
    return answers


def _content(declared: Any, shown: Schema) -> Schema:
    """Schema and examples of each media type; examples of files belong to the media type of their
    format.
    """
    content = declared if isinstance(declared, Content) else Content((JSON,), declared)
    schema = schema_of(content.type)
    described: Schema = {}
    for media_type in content.media_types:
        format_ = FILE_TYPES.get(media_type)
        examples = {
            name: shown[name]
            for name in shown
            if name == format_ or name not in FILE_TYPES.values()
        }
        described[media_type] = {"schema": schema} | ({"examples": examples} if examples else {})
    return described


def _problems(
    operation: Operation,
    examples: Schema,
    base_url: str,
    remedies: Mapping[Remedy, RemedyOperation],
) -> Iterator[tuple[str, str, Schema]]:
    """The problems of the operation: the status, the name under which operations share the response
    or "", and the response.

    The words are in `examples` by the response's name, or by operation and status where they are
    the operation's own.
    """
    path = re.sub(r"{(\w+)}", lambda found: _IN_PATHS[found[1]], operation.path)
    place = "page[after]" if operation.method == "GET" else "event_id"  # of the feed of events
    invalid = examples["faults"].get(operation.id) or examples["faults"]["others"]
    for kind in problem_kinds(operation):
        status = str(PROBLEMS[kind].status)
        name = _response_name(kind, operation)
        own = examples["problems"].get(f"{operation.id} {status}")
        texts = {}
        values = {}
        for example, detail in (own or examples["problems"][name]).items():
            # An example is of another kind, with the same status, if it is named for that; and has
            # the code that it is named for.
            shown = Kind(example) if example in PROBLEMS else kind
            texts[shown] = f"{PROBLEMS[shown].title}. {PROBLEMS[shown].sentence}"
            values[example] = problem_content(
                base_url, shown, detail, instance=path, request_id=REQUEST_ID
            )
            faults = {
                Kind.INVALID: invalid,
                Kind.WRONG_STATE: [("state", shown, detail)],
                Kind.SECOND_PERSON_NEEDED: [("approver", shown, detail)],
                Kind.GONE: [(place, example, detail)],
            }.get(shown)
            remedy = None
            if example in codes.faults.INTENT:
                faults = [("external_id", example, detail)]
                remedy = codes.CODES[Where.FAULT, example].remedy
            if remedy is not None:
                values[example]["remedy"] = remedies[remedy].shown(remedy, {"plan_id": 1})
            if faults:
                values[example]["errors"] = [
                    dict(zip(Fault._fields, fault, strict=True)) for fault in faults
                ]
        text = "\n\n".join(texts.values())
        if kind == "invalid":
            own = True
            text += explained({str(code): code.sentence for code in fault_codes(operation)})
        yield status, "" if own else name, _response(kind, text, "application/problem+json", values)


def _oauth_errors(operation: Operation, examples: Schema) -> Iterator[tuple[str, str, Schema]]:
    """The errors of RFC 6749, as `_problems` gives problems."""
    by_status: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for code in operation.contract.get("oauth_errors", ()):
        by_status[status_of(code)][str(code)] = code.sentence
    for status, texts in sorted(by_status.items()):
        first = next(iter(texts))
        values = {
            code: {"error": code, "error_description": examples["oauth_errors"][code]}
            for code in texts
        }
        name = "" if status == 400 else f"OAuth{_pascal(first)}"
        response = _response(first, explained(texts).strip(), JSON, values)
        yield str(status), name, response


def problem_kinds(operation: Operation) -> list[Kind]:
    """The kinds of problems that the operation answers, in the order of their statuses."""
    kinds = {Kind.METHOD_NOT_ALLOWED, Kind.HEADERS_TOO_LARGE, Kind.INTERNAL}
    kinds.update(operation.contract.get("problems", ()))
    if operation.asks_token:
        kinds |= {Kind.MALFORMED, Kind.UNAUTHORIZED, Kind.RATE_LIMITED, Kind.UNAVAILABLE}
    if operation.scope is not None:
        kinds.add(Kind.FORBIDDEN)
    if operation.takes_json or _is_of_oauth(operation):
        kinds |= {Kind.TIMEOUT, Kind.TOO_LARGE, Kind.UNSUPPORTED_MEDIA_TYPE, Kind.UNAVAILABLE}
    if "{" in operation.path and operation.method != "PUT":
        kinds.add(Kind.NOT_FOUND)
    if operation.serves_json:
        kinds.add(Kind.NOT_ACCEPTABLE)
    if fault_codes(operation):
        kinds.add(Kind.INVALID)
    if operation.takes_key:
        kinds.add(Kind.CONFLICT)
    return [kind for kind in Kind if kind in kinds]


def fault_codes(operation: Operation) -> list[Code]:
    """The codes that the operation's 422 may have."""
    found = [*operation.contract.get("faults", ())]
    if operation.is_of_v2:
        found.append(codes.faults.UNKNOWN_PARAMETER)
    if operation.takes_key:
        found.append(codes.faults.IDEMPOTENCY_KEY_REUSED)
        if codes.faults.NOT_ALLOWED not in found:
            found.append(codes.faults.NOT_ALLOWED)
    return found


def _is_of_oauth(operation: Operation) -> bool:
    return "oauth_errors" in operation.contract


def _response(kind: str, text: str, media_type: str, values: Schema) -> Schema:
    content = {
        "schema": ref("OAuthError" if media_type == JSON else "Problem"),
        "examples": {name: {"value": value} for name, value in values.items()},
    }
    own = [_OF_PROBLEMS[kind]] if kind in _OF_PROBLEMS else []
    headers = _headers(*own, *_ON_ERRORS)
    return {"description": text, "headers": headers, "content": {media_type: content}}


def _headers(*headers: Header) -> Schema:
    """References to these headers and to those of every answer."""
    return {each.name: ref(each.name, "headers") for each in (*_ON_EVERY_ANSWER, *headers)}


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
