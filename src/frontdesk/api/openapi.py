"""The OpenAPI 3.1 document, made from the operations of `routes` and the tables of `schemas`.

Examples are in assets/examples.json. Which errors an operation has follows from what it asks and accepts.

Operations are endpoints with what their handlers' docstrings say of them. The first paragraph is the summary and the
description; the second has a line for each of these, which 4 more spaces continue:

`200 Schema [Headers]: text` is a good answer; `Cache-Control` is its header if none is named, and media types may stand instead
of the schema of JSON. `Body`, `Parameters`, `Problems`, `Faults` and `Errors` list words: the schema of the body, keys of
`PARAMETERS`, the kinds of problems that don't follow from the endpoint's form, the codes of its 422, the errors of RFC 6749.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from inspect import cleandoc

from frontdesk import __version__
from frontdesk.access.model import Scope
from frontdesk.api.notation import Schema, explained, filled_in, read_type, ref
from frontdesk.api.oauth import OAUTH_ERRORS
from frontdesk.api.schemas import HEADERS, PARAMETERS, schemas
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import FAULT_CODES
from frontdesk.errors import Fault
from frontdesk.web.endpoint import Endpoint, Handler
from frontdesk.web.problems import INTENT_CODES, PROBLEMS, problem_content

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

# Lines of a handler's docstring.
_ANSWER = re.compile(r"^(\d{3}) ?([^[:\n]*?) ?(?:\[(.*?)\])?: (.*)$", re.MULTILINE)
_LISTED = re.compile(r"^(Body|Parameters|Problems|Faults|Errors): (.*)$", re.MULTILINE)

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
_ACCESS = ("Access", "Access tokens: 2 hours, sent as `Authorization: Bearer …`.")
# The tag of the operations of each module of handlers, with its description.
_TAGS = {
    "plans": ("Plans", "Plans and their queues."),
    "eligibility": ("Eligibility", "Members who are eligible under a plan, one by one."),
    "members": ("Members", "Stored members and their histories."),
    "eligibility_files": ("Files", "Files of members: upload, progress, report, decisions."),
    "mappings": ("Mappings", "How the eligibility files of the account name things."),
    "events": ("Events", "What has happened, for programs that keep a copy."),
    "webhooks": ("Webhooks", "Programs of the account that are sent its events."),
    "me": _ACCESS,
    "oauth": _ACCESS,
    "reference": ("Reference", "This reference."),
    "health": ("Operation", "For operators of the service."),
}
_SCOPES = {
    Scope.CUSTOMER.value: "The whole of /v2, but for reading members, events and webhooks.",
    Scope.PLANS_READ.value: "Read plans.",
    Scope.PLANS_WRITE.value: "Change plans.",
    Scope.ELIGIBILITY_READ.value: "Read members and their histories; a client has it only if it is given it by name.",
    Scope.ELIGIBILITY_WRITE.value: "Create and update eligible members, one by one and by file.",
    Scope.EVENTS_READ.value: "Read events; a client has it only if it is given it by name.",
    Scope.WEBHOOKS_MANAGE.value: "Manage webhook endpoints; a client has it only if it is given it by name.",
    Scope.SANDBOX_RESET.value: "Reset an account of a sandbox; a client has it only if it is given it by name.",
    Scope.OPERATOR.value: "Operate the service; customers don't get it.",
}

_SECURITY: Schema = {
    "token": {"type": "http", "scheme": "bearer", "description": "An access token."},
    "client": {"type": "oauth2", "description": "A token that the client gets for itself."},
    "basic": {"type": "http", "scheme": "basic", "description": "`client_id` and `client_secret`."},
}

# Keys of HEADERS.
_ON_EVERY_ANSWER = "X-Request-Id X-Content-Type-Options"
_OF_UNKNOWN_PARAMETERS = "Ignored-Parameters Did-You-Mean"
_OF_LIMITED_CLIENTS = "RateLimit RateLimit-Policy RateLimit-Limit RateLimit-Remaining RateLimit-Reset"
# An error has these where what came before it adds them; those of /oauth are not to be stored.
_ON_ERRORS = f"Cache-Control Pragma {_OF_LIMITED_CLIENTS} Ignored-Fields {_OF_UNKNOWN_PARAMETERS}"
_OF_PROBLEMS = {
    **dict.fromkeys(("unauthorized", "forbidden", "invalid_client"), "WWW-Authenticate"),
    **dict.fromkeys(("timeout", "too_large"), "Connection"),
    **dict.fromkeys(("conflict", "rate_limited", "unavailable"), "Retry-After"),
    "method_not_allowed": "Allow",
}

# The parameters of paths in examples of problems.
_IN_PATHS = {"plan_id": "1", "file_id": "7", "eligibility_id": "1001", "endpoint_id": "1"}
_IN_PATHS |= {"mapping_name": "hr-export", "asset": "page.css"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Endpoint):
    """An endpoint with the docstring of its handler: its first paragraph; of each good answer the status, the schema or media
    types of its content, the names of its headers and its text; and the words of each list."""

    about: str
    answers: Sequence[tuple[str, str, str, str]]
    words: Mapping[str, Sequence[str]]

    @property
    def asks_token(self) -> bool:
        return self.any_scope or self.scope is not None

    @property
    def id(self) -> str:
        """The name of the handler as the document writes it: `listPlans` for `list_plans`."""
        name = _pascal(self.handler.__name__)
        return name[0].lower() + name[1:]


def operation(
    method: str, path: str, handler: Handler, scope: Scope | None = None, **options: bool
) -> Operation:
    """The operation of a route; `options` are its Endpoint's. Those of /v2 name unknown query parameters. With a body they refuse
    them: a misspelt parameter of an upload or a mapping may be a `dry_run` or a `default`. An operation that lists `prefer`
    leaves that to the caller."""
    about, _, notes = re.sub(r"\n {4,}", " ", cleandoc(handler.__doc__ or "")).partition("\n\n")
    answers = _ANSWER.findall(notes)
    words = defaultdict(list, {name: listed.split() for name, listed in _LISTED.findall(notes)})
    if len(answers) + len(words) != len(notes.splitlines()):
        raise ValueError(notes)
    query, strict_query = None, False
    if is_of_v2 := path.startswith("/v2/"):
        sent = [PARAMETERS[key] for key in words["Parameters"]]
        query = {each["name"]: each["schema"] for each in sent if each["in"] == "query"}
        strict_query = bool(query and words["Body"]) and "prefer" not in words["Parameters"]
        words["Parameters"] += [] if strict_query or "prefer" in words["Parameters"] else ["prefer"]
        words["Faults"] += ["unknown_parameter"]
    if takes_key := "idempotency_key" in words["Parameters"]:
        words["Problems"] += ["conflict"]
        words["Faults"] += ["idempotency_key_reused", *({"not_allowed"} - {*words["Faults"]})]
    return Operation(
        method,
        path,
        handler,
        scope,
        takes_json=is_of_v2 and words["Body"] not in ([], ["file"]),
        takes_lines=words["Body"] == ["EligibleMembers"],
        serves_json=not any("/" in content for _, content, *_ in answers),
        query=query,
        strict_query=strict_query,
        takes_key=takes_key,
        about=about.replace("\n", " "),
        answers=answers,
        words=words,
        **options,
    )


def openapi_document(base_url: str, operations: Sequence[Operation]) -> Schema:
    """The whole document for the service at `base_url`, as JSON values."""
    examples = read_examples(base_url)
    shared: dict[str, Schema] = {}
    paths: defaultdict[str, Schema] = defaultdict(dict)
    for operation in operations:
        responses = _answers(operation, examples)
        errors = (*_problems(operation, examples, base_url), *_oauth_errors(operation, examples))
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
            "license": {"name": "All rights reserved", "identifier": "LicenseRef-All-Rights-Reserved"},
        },
        "servers": [{"url": base_url}],
        "tags": [{"name": name, "description": text} for name, text in dict(_TAGS.values()).items()],
        "paths": dict(paths),
        "components": {
            "schemas": schemas(),
            "responses": shared,
            "headers": {
                name: header | {"example": examples["headers"][name]} for name, header in HEADERS.items()
            },
            "parameters": PARAMETERS,
            "securitySchemes": _SECURITY | {"client": _SECURITY["client"] | {"flows": flows}},
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
    # Without a scope an empty requirement stands for none: a client may send its credentials in the body of a request to /oauth.
    security: list[Schema] = [{"basic": []}, {}] if operation.words["Errors"] else []
    if operation.asks_token:
        security = [{"token": []}, {"client": [operation.scope.value] if operation.scope else []}]
    summary, _, description = operation.about.partition(". ")
    names = (*re.findall(r"{(\w+)}", operation.path), *operation.words["Parameters"], "request_id")
    described: Schema = {
        "tags": [_TAGS[operation.handler.__module__.rpartition(".")[2]][0]],
        "operationId": operation.id,
        "summary": summary,
        "description": description,
        "security": security,
        "parameters": [ref(name, "parameters") for name in names],
    }
    for name in operation.words["Body"]:
        types = UPLOAD_TYPES if name == "file" else (JSON if operation.takes_json else FORM,)
        content = _content(types, read_type(name), examples["requests"].get(operation.id, {}))
        described["requestBody"] = {"required": True, "content": content}
    return described


def _answers(operation: Operation, examples: Schema) -> Schema:
    common = _OF_LIMITED_CLIENTS if operation.asks_token or operation.words["Errors"] else ""
    common += "" if operation.query is None else f" {_OF_UNKNOWN_PARAMETERS}"
    common += " Idempotency-Replayed" if operation.takes_key else ""
    shown = examples["answers"].get(operation.id, {})
    answers: Schema = {}
    for status, content, names, text in operation.answers:
        headers = _headers(names or "Cache-Control", common)
        answers[status] = {"description": filled_in(text), "headers": headers}
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
    path = re.sub(r"{(\w+)}", lambda found: _IN_PATHS[found[1]], operation.path)
    invalid = examples["faults"].get(operation.id) or examples["faults"]["others"]
    for kind in _kinds_of_problems(operation):
        status, name = str(PROBLEMS[kind].status), _response_name(kind, operation)
        own = examples["problems"].get(f"{operation.id} {status}")
        texts, values = {}, {}
        for example, detail in (own or examples["problems"][name]).items():
            # An example is of another kind, with the same status, if it is named for that; and has the code that it is named for.
            shown = example if example in PROBLEMS else kind
            texts[shown] = f"{PROBLEMS[shown].title}. {PROBLEMS[shown].happens}"
            values[example] = problem_content(base_url, shown, detail, instance=path, request_id=REQUEST_ID)
            faults = {"invalid": invalid, "wrong_state": [("state", shown, detail)]}.get(shown)
            if faults := [("external_id", example, detail)] if example in INTENT_CODES else faults:
                values[example]["errors"] = [Fault(*fault).serialize() for fault in faults]
        text = "\n\n".join(texts.values())
        if kind == "invalid":
            own = True
            text += explained({code: FAULT_CODES[code] for code in operation.words["Faults"]})
        yield status, "" if own else name, _response(kind, text, "application/problem+json", values)


def _oauth_errors(operation: Operation, examples: Schema) -> Iterator[tuple[str, str, Schema]]:
    """The errors of RFC 6749, as `_problems` gives problems."""
    errors = {code: OAUTH_ERRORS[code] for code in operation.words["Errors"]}
    for status in sorted({status for status, _ in errors.values()}):
        texts = {code: text for code, (its_status, text) in errors.items() if its_status == status}
        values = {
            code: {"error": code, "error_description": examples["oauth_errors"][code]} for code in texts
        }
        name = "" if status == 400 else f"OAuth{_pascal(next(iter(texts)))}"
        yield str(status), name, _response(next(iter(texts)), explained(texts).strip(), JSON, values)


def _kinds_of_problems(operation: Operation) -> list[str]:
    kinds = {"method_not_allowed", "headers_too_large", "internal", *operation.words["Problems"]}
    of_tokens = {"malformed", "unauthorized", "rate_limited", "unavailable"}
    of_tokens |= {"forbidden"} if operation.scope else set()
    of_bodies = {"timeout", "too_large", "unsupported_media_type", "unavailable"}
    kinds |= of_tokens if operation.asks_token else set()
    kinds |= of_bodies if operation.takes_json or operation.words["Errors"] else set()
    kinds |= {"not_found"} if "{" in operation.path and operation.method != "PUT" else set()
    kinds |= {"not_acceptable"} if operation.serves_json else set()
    kinds |= {"invalid"} if operation.words["Faults"] else set()
    return [kind for kind in PROBLEMS if kind in kinds]


def _response(kind: str, text: str, media_type: str, values: Schema) -> Schema:
    content = {
        "schema": ref("OAuthError" if media_type == JSON else "Problem"),
        "examples": {name: {"value": value} for name, value in values.items()},
    }
    headers = _headers(_OF_PROBLEMS.get(kind, ""), _ON_ERRORS)
    return {"description": text, "headers": headers, "content": {media_type: content}}


def _headers(*names: str) -> Schema:
    """References to the named headers and to those of every answer."""
    return {name: ref(name, "headers") for name in " ".join((_ON_EVERY_ANSWER, *names)).split()}


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
