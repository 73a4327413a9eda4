"""What the OpenAPI document says of each endpoint: words, parameters, bodies and good answers, in one table.

Errors follow from the endpoint (`openapi_problems`), examples are in assets/examples.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frontdesk.api.bodies import explained
from frontdesk.eligibility.model import FAULT_CODES
from frontdesk.files.codes import REPORT_CODES
from frontdesk.files.report import COLUMNS

Json = dict[str, Any]

JSON = "application/json"
_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_PLAN = "/v2/plans/{plan_id}"
FILES = f"{_PLAN}/eligibility-files"
_FILE = f"{FILES}/{{file_id}}"

# Media types of eligibility files and reports; the ones of a format have the format's example.
FILE_TYPES = {"text/csv": "csv", "application/x-ndjson": "jsonl", "application/edi-x12": "834"}
UPLOAD_TYPES = (*FILE_TYPES, "application/octet-stream")

_TEXT: Json = {"type": "string"}
_BINARY: Json = {"type": "string", "format": "binary"}
_NO_STORE = ("Cache-Control",)
_READ = ("ETag", "Cache-Control")
_OAUTH = ("Cache-Control", "Pragma")
_MEMBER = ("Eligibility-Outcome", "Invitation", "Cache-Control", "Eligibility-Warnings", "Ignored-Fields")
_OAUTH_PROBLEMS = ("timeout", "too_large", "unsupported_media_type", "unavailable")
_NOT_OF_A_MEMBER = ("read_only", "repeated", "unknown_parameter", "wrong_state")


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer. `content` is the schema of each media type, by name or in full; `links` lead to operations."""

    text: str
    content: Mapping[str, str | Json] = field(default_factory=dict)
    headers: tuple[str, ...] = _NO_STORE
    links: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint. `body` is the schema of each media type. `parameters` are those outside the path, `problems` the kinds
    that don't follow from the endpoint's form, `faults` the codes of its 422, `oauth_errors` the errors of RFC 6749."""

    id: str
    summary: str
    description: str
    answers: Mapping[str, Answer]
    parameters: tuple[str, ...] = ()
    body: Mapping[str, str | Json] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    oauth_errors: tuple[str, ...] = ()


def _link(operation_id: str, **parameters: str) -> Json:
    return {"operationId": operation_id, "parameters": {"plan_id": "$request.path.plan_id"} | parameters}


def _file_links(file_id: str, *operation_ids: str) -> Json:
    return {name: _link(name, file_id=file_id) for name in operation_ids}


def _file(text: str) -> Answer:
    return Answer(text, {JSON: "EligibilityFile"})


def _new_file(text: str) -> Answer:
    """202: a file that a worker will take, and its address."""
    links = _file_links("$response.body#/data/id", "showEligibilityFile", "reportEligibilityFile")
    return Answer(text, {JSON: "EligibilityFile"}, ("Cache-Control", "Location"), links)


def _page(text: str) -> Answer:
    return Answer(text, {"text/html": _TEXT}, ("Content-Security-Policy",))


_NOT_MODIFIED = Answer("Nothing has changed since the `ETag` was sent.", headers=_READ)
_FIRST_PLAN = {"plan_id": "$response.body#/data/0/id"}

_PLANS = {
    ("GET", "/v2/plans"): Operation(
        "listPlans",
        "List the account's plans with their queues",
        "Answers every plan in the order of `id`, or one page of them.",
        {
            "200": Answer(
                "The plans, by id.",
                {JSON: "Plans"},
                _READ,
                {f"{name}OfFirst": _link(name, **_FIRST_PLAN) for name in ("showPlan", "changePlan", "enrolMember")},
            ),
            "304": _NOT_MODIFIED,
        },
        parameters=("external_id", "page_size", "page_after", "if_none_match"),
        faults=("not_allowed", "repeated"),
    ),
    ("GET", _PLAN): Operation(
        "showPlan",
        "Read one plan",
        "Answers the envelope of the list, with one plan.",
        {
            "200": Answer(
                "The plan.",
                {JSON: "Plans"},
                _READ,
                {"changeThisVersion": _link("changePlan", **{"header.If-Match": "$response.header.ETag"})},
            ),
            "304": _NOT_MODIFIED,
        },
        parameters=("if_none_match",),
    ),
    ("PATCH", _PLAN): Operation(
        "changePlan",
        "Change a plan's name, description or external_id",
        "An absent field keeps its value. `If-Match` protects against changes since the plan was read.",
        {
            "200": Answer(
                "The plan as it is now, without `queue_info`.", {JSON: "Plans"}, ("ETag", "Ignored-Fields")
            )
        },
        parameters=("if_match", "prefer"),
        body={JSON: "PlanPatch"},
        problems=("conflict", "precondition_failed"),
        faults=(
            "required",
            "wrong_type",
            "too_long",
            "control_character",
            "not_unique",
            "read_only",
            "unknown_field",
        ),
    ),
}  # fmt: skip

_SEND_AGAIN = {"sendAgain": _link("enrolMember") | {"requestBody": "$response.body"}}

_MEMBERS = {
    ("POST", f"{_PLAN}/eligibility"): Operation(
        "enrolMember",
        "Create or update an eligible member by external_id",
        "All or nothing: with a single fault nothing is written, and every fault is reported. A member of another plan of "
        "the account moves to this one. Sending a request again is safe.",
        {
            "200": Answer(
                "The record with the `external_id` was updated, or had these values already.",
                {JSON: "Eligibility"},
                (*_MEMBER, "Eligibility-Changed"),
                _SEND_AGAIN,
            ),
            "201": Answer(
                "No record had the `external_id`; a new one was created.", {JSON: "Eligibility"}, _MEMBER, _SEND_AGAIN
            ),
        },
        parameters=("prefer",),
        body={JSON: "EligibleMember"},
        faults=tuple(code for code in FAULT_CODES if code not in _NOT_OF_A_MEMBER),
    )
}  # fmt: skip

_ELIGIBILITY_FILES = {
    ("POST", FILES): Operation(
        "uploadEligibilityFile",
        "Load a file of members under a plan",
        "The body is the file itself, plain or compressed by gzip. Each row follows the rules of a POST: a refused row does "
        "not stop its neighbours. Ask for the file until its `state` is `done`, `held` or `failed`. A second upload of the "
        "same file changes nothing. The account's mapping, which operators set, translates names that are not the "
        "interface's own.",
        {"202": _new_file("The file is stored and waits for a worker.")},
        parameters=("file_format", "file_mode", "file_dry_run", "file_encoding"),
        body=dict.fromkeys(UPLOAD_TYPES, _BINARY),
        problems=("timeout", "too_large", "unsupported_media_type"),
        faults=("not_allowed", "repeated", "unknown_parameter"),
    ),
    ("GET", _FILE): Operation(
        "showEligibilityFile",
        "Read the progress of a file",
        "Answers the file's state, and how many of its rows had which outcome.",
        {
            "200": Answer(
                "The file.",
                {JSON: "EligibilityFile"},
                links=_file_links("$request.path.file_id", "reportEligibilityFile"),
            )
        },
    ),
    ("GET", f"{_FILE}/report"): Operation(
        "reportEligibilityFile",
        "Read the outcome of each row of a file",
        "While the file is being loaded, the report has the rows so far.",
        {
            "200": Answer(
                f"A line per row and outcome, with {', '.join(f'`{name}`' for name in COLUMNS)}. A refused row has a line for "
                "each fault, and each warning is a line of its own (`warned`). Codes are those of a POST, and:\n\n"
                + explained(REPORT_CODES),
                {"application/x-ndjson": _TEXT, "text/csv": _TEXT},
                ("Cache-Control", "Content-Disposition"),
            )
        },
        parameters=("report_format",),
        faults=("not_allowed", "repeated"),
    ),
    ("POST", f"{_FILE}/approve"): Operation(
        "approveEligibilityFile",
        "Approve a held file",
        "Lets the file end the members that it omits. Look at `members_missing` first.",
        {"200": _file("The file waits for a worker, which continues it.")},
        faults=("wrong_state",),
    ),
    ("POST", f"{_FILE}/cancel"): Operation(
        "cancelEligibilityFile",
        "Cancel a waiting or held file",
        "The file ends no members. What it has applied stays until it is undone.",
        {"200": _file("The file is cancelled.")},
        faults=("wrong_state",),
    ),
    ("POST", f"{_FILE}/undo"): Operation(
        "undoEligibilityFile",
        "Undo what a file changed",
        "Records that were changed again since stay as they are, and the report lists them. Members that the file created are "
        "withdrawn, and their unsent invitations cancelled. The undo has a report, and can be undone.",
        {"202": _new_file("The undo, a file without content, waits for a worker.")},
        faults=("wrong_state",),
    ),
}  # fmt: skip

_CREDENTIALS = (
    "The client authenticates with HTTP Basic, or with `client_id` and `client_secret` in the body."
)

_ACCESS = {
    ("POST", "/oauth/token"): Operation(
        "issueToken",
        "Get an access token (RFC 6749, client credentials)",
        _CREDENTIALS,
        {"200": Answer("The token.", {JSON: "Token"}, _OAUTH)},
        body={_FORM: "TokenForm", _MULTIPART: "TokenMultipart", JSON: "TokenRequest"},
        problems=_OAUTH_PROBLEMS,
        oauth_errors=(
            "invalid_request",
            "invalid_scope",
            "unsupported_grant_type",
            "invalid_client",
            "rate_limited",
        ),
    ),
    ("POST", "/oauth/revoke"): Operation(
        "revokeToken",
        "Revoke an access token (RFC 7009)",
        f"{_CREDENTIALS} Every process refuses the token within 5 seconds.",
        {"200": Answer("The token is not valid now; the answer is the same for an unknown one.", headers=_OAUTH)},
        body={_FORM: "RevocationForm", _MULTIPART: "RevocationMultipart", JSON: "RevocationRequest"},
        problems=_OAUTH_PROBLEMS,
        oauth_errors=("invalid_request", "invalid_client", "rate_limited"),
    ),
}  # fmt: skip

_REFERENCE = {
    ("GET", "/openapi.json"): Operation(
        "document",
        "Read this document",
        "Answers the service's OpenAPI document.",
        {"200": Answer("OpenAPI 3.1.", {JSON: {"type": "object"}})},
    ),
    ("GET", "/docs"): Operation(
        "referencePage",
        "Open the reference page",
        "The page shows this document and sends requests. It loads nothing from other sites.",
        {"200": _page("The page.")},
    ),
    ("GET", "/docs/{asset}"): Operation(
        "referenceFile",
        "Read a file of the reference page",
        "The scripts, styles and pictures of `/docs`.",
        {"200": Answer("The file.", dict.fromkeys(("text/javascript", "text/css", "image/png"), _TEXT))},
    ),
    ("GET", "/problems"): Operation(
        "listProblems",
        "Look up a problem or code",
        "A page with every problem, fault code, warning and reason. The `type` of a problem leads here.",
        {"200": _page("The page.")},
    ),
}

_OPERATION = {
    ("GET", "/healthz"): Operation(
        "isAlive",
        "Check that the process runs",
        "Answers without asking the database.",
        {"200": Answer("The process runs.", {JSON: "Health"})},
    ),
    ("GET", "/readyz"): Operation(
        "isReady",
        "Check that the service can serve",
        "Asks the database whether it answers and has this version's schema.",
        {"200": Answer("The database answers and is up to date.", {JSON: "Health"})},
        problems=("unavailable",),
    ),
    ("GET", "/metrics"): Operation(
        "metrics",
        "Read the metrics for Prometheus",
        "Counts and durations by route, without personal data.",
        {"200": Answer("Prometheus text.", {"text/plain": _TEXT})},
    ),
}

# Every endpoint's operation by method and path, under the tags of the document.
OPERATIONS: dict[str, dict[tuple[str, str], Operation]] = {
    "Plans": _PLANS,
    "Eligibility": _MEMBERS | _ELIGIBILITY_FILES,
    "Access": _ACCESS,
    "Reference": _REFERENCE,
    "Operation": _OPERATION,
}
