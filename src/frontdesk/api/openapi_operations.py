"""What the OpenAPI document says of each operation beside its handler's docstring: parameters, bodies and good answers.

Errors follow from the endpoint (`openapi_problems`), examples are in assets/examples.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from frontdesk.api.notation import explained
from frontdesk.api.oauth_form import OAUTH_ERRORS
from frontdesk.api.parameters import PARAMETERS
from frontdesk.eligibility.model import FAULT_CODES
from frontdesk.files.model import REPORT_CODES
from frontdesk.files.report import COLUMNS
from frontdesk.web.endpoint import Endpoint

Json = dict[str, Any]
Content = str | Mapping[str, str | Json]

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
# Media types of eligibility files and reports, with the format of their example. Generated clients send the first one, or
# application/json wherever it stands in the list and then everything as JSON: so it is missing here, and taken all the same.
FILE_TYPES = {
    "application/octet-stream": "json",
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/edi-x12": "834",
}
UPLOAD_TYPES = (*FILE_TYPES, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")

_TEXT: Json = {"type": "string"}
_READ = ("ETag", "Cache-Control")
_OAUTH = ("Cache-Control", "Pragma")
_MEMBER = ("Eligibility-Outcome", "Invitation", "Cache-Control", "Eligibility-Warnings", "Ignored-Fields")
_OAUTH_PROBLEMS = ("timeout", "too_large", "unsupported_media_type", "unavailable")
_NOT_OF_A_MEMBER = (
    *("read_only", "repeated", "unknown_parameter", "empty", "unknown_encoding", "idempotency_key_reused"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer. `content` is the name of the schema of JSON, or the schema of each media type, by name or in full.
    `links` lead to operations."""

    text: str
    content: Content = field(default_factory=dict)
    headers: tuple[str, ...] = ("Cache-Control",)
    links: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
    """Good answers by status, parameters outside the path, and the body's schema for each media type.

    `problems` are the kinds that don't follow from the endpoint's form, `faults` the codes of its 422, `oauth_errors` the
    errors of RFC 6749.
    """

    answers: Mapping[str, Answer]
    parameters: tuple[str, ...] = ()
    body: Content = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    oauth_errors: tuple[str, ...] = ()


def operation_id(endpoint: Endpoint) -> str:
    """The name of the endpoint's handler as the document writes it: `listPlans` for `list_plans`."""
    first, *others = endpoint.handler.__name__.split("_")
    return first + "".join(map(str.capitalize, others))


def operation_of(endpoint: Endpoint) -> Operation:
    """What is said of the endpoint, with what is true of every one that looks at unknown parameters."""
    operation = OPERATIONS[operation_id(endpoint)]
    if endpoint.query is None:
        return operation
    parameters = operation.parameters if endpoint.strict_query else (*operation.parameters, "prefer")
    return replace(operation, parameters=parameters, faults=(*operation.faults, "unknown_parameter"))


def query_names(endpoint: Endpoint) -> frozenset[str]:
    """The names of the endpoint's query parameters."""
    parameters = [PARAMETERS[key] for key in OPERATIONS[operation_id(endpoint)].parameters]
    return frozenset(parameter["name"] for parameter in parameters if parameter["in"] == "query")


def _link(target: str, **parameters: str) -> Json:
    return {"operationId": target, "parameters": {"plan_id": "$request.path.plan_id"} | parameters}


def _file_links(file_id: str, *targets: str) -> Json:
    return {target: _link(target, file_id=file_id) for target in targets}


def _new_file(text: str) -> dict[str, Answer]:
    """202: a file that a worker will take, and its address."""
    links = _file_links("$response.body#/data/id", "showEligibilityFile", "reportEligibilityFile")
    return {"202": Answer(text, "EligibilityFile", ("Cache-Control", "Location"), links)}


def _oauth(schema: str, answer: Answer, *oauth_errors: str) -> Operation:
    """A request of a client. Its media type is the one of RFC 6749: of several, generators of clients send none right."""
    return Operation(
        {"200": answer}, body={FORM: schema}, problems=_OAUTH_PROBLEMS, oauth_errors=oauth_errors
    )


_NOT_MODIFIED = Answer("Nothing has changed since the `ETag` was sent.", headers=_READ)
_OF_FIRST_PLAN = {
    f"{name}OfFirst": _link(name, plan_id="$response.body#/data/0/id")
    for name in ("showPlan", "changePlan", "enrolMember")
}
_OF_THIS_VERSION = {"changeThisVersion": _link("changePlan", **{"header.If-Match": "$response.header.ETag"})}
_SEND_AGAIN = {"sendAgain": _link("enrolMember") | {"requestBody": "$response.body"}}
_PAGE = Operation(
    {"200": Answer("The page.", {"text/html": _TEXT}, ("Content-Security-Policy", "Referrer-Policy"))}
)
_REPORT = (
    f"A line per row and outcome, with {', '.join(f'`{name}`' for name in COLUMNS)}. A refused row has a line for each "
    f"fault, and each warning is a line of its own (`warned`). Codes are those of a POST, and:\n\n{explained(REPORT_CODES)}"
)

_FILES = Operation(
    {"200": Answer("The files, the newest first.", "EligibilityFiles")},
    parameters=("file_state", "file_sha256", "file_page_size", "file_page_after"),
    faults=("not_allowed", "repeated"),
)

# Every operation by its id.
OPERATIONS: dict[str, Operation] = {
    "listPlans": Operation(
        {"200": Answer("The plans, by id.", "Plans", _READ, _OF_FIRST_PLAN), "304": _NOT_MODIFIED},
        parameters=("external_id", "page_size", "page_after", "queue_interval", "if_none_match"),
        faults=("not_allowed", "repeated"),
    ),
    "showPlan": Operation(
        {"200": Answer("The plan.", "Plans", _READ, _OF_THIS_VERSION), "304": _NOT_MODIFIED},
        parameters=("if_none_match",),
    ),
    "changePlan": Operation(
        {"200": Answer("The plan as it is now, without `queue_info`.", "Plans", ("ETag", "Ignored-Fields"))},
        parameters=("if_match",),
        body="PlanPatch",
        problems=("conflict", "precondition_failed"),
        faults=(
            *("required", "wrong_type", "too_long", "control_character"),
            *("not_unique", "read_only", "unknown_field"),
        ),
    ),
    "enrolMember": Operation(
        {
            "200": Answer(
                "The record with the `external_id` was updated, or had these values already.",
                "Eligibility",
                (*_MEMBER, "Eligibility-Changed", "Eligibility-Left-Plan"),
                _SEND_AGAIN,
            ),
            "201": Answer(
                "No record had the `external_id`; a new one was created.", "Eligibility", _MEMBER, _SEND_AGAIN
            ),
        },
        body="EligibleMember",
        faults=tuple(code for code in FAULT_CODES if code not in _NOT_OF_A_MEMBER),
    ),
    "uploadEligibilityFile": Operation(
        {
            "200": Answer(
                "A mapping that would read the file (`suggest_mapping`).", "EligibilityMappingSuggestion"
            )
        }
        | _new_file("The file is stored and waits for a worker."),
        parameters=(
            *("file_format", "file_mode", "file_dry_run", "file_encoding"),
            *("file_mapping", "file_sheet", "file_header_row", "file_file_name", "file_suggest_mapping"),
            "idempotency_key",
        ),
        body=dict.fromkeys(UPLOAD_TYPES, _TEXT | {"format": "binary"}),
        problems=("timeout", "too_large", "unsupported_media_type"),
        faults=(
            "not_allowed",
            "repeated",
            "empty",
            "unknown_encoding",
            "idempotency_key_reused",
        ),
    ),
    "listEligibilityFiles": _FILES,
    "listEligibilityFilesOfPlan": _FILES,
    "showEligibilityFile": Operation(
        {
            "200": Answer(
                "The file.",
                "EligibilityFile",
                links=_file_links("$request.path.file_id", "reportEligibilityFile"),
            )
        }
    ),
    "reportEligibilityFile": Operation(
        {
            "200": Answer(
                _REPORT,
                {"application/x-ndjson": _TEXT, "text/csv": _TEXT},
                ("Cache-Control", "Content-Disposition", "Vary", "Content-Encoding", "Link"),
            )
        },
        parameters=(
            *("report_format", "report_outcome", "report_code", "report_external_id"),
            *("report_page_size", "report_page_after"),
            "accept_encoding",
        ),
        faults=("not_allowed", "repeated"),
    ),
    "approveEligibilityFile": Operation(
        {"200": Answer("The file waits for a worker, which continues it.", "EligibilityFile")},
        problems=("wrong_state",),
    ),
    "acceptEligibilityFileMapping": Operation(
        {"200": Answer("The file waits for a worker, which reads it by the mapping.", "EligibilityFile")},
        parameters=("mapping_keep",),
        body="Mapping",
        problems=("wrong_state",),
        faults=(
            "required",
            "wrong_type",
            "not_a_date",
            "not_allowed",
            "repeated",
            "unknown_field",
        ),
    ),
    "cancelEligibilityFile": Operation(
        {"200": Answer("The file is cancelled.", "EligibilityFile")}, problems=("wrong_state",)
    ),
    "undoEligibilityFile": Operation(
        _new_file("The undo, a file without content, waits for a worker."), problems=("wrong_state",)
    ),
    "listEligibilityMappings": Operation({"200": Answer("The mappings, by name.", "EligibilityMappings")}),
    "showEligibilityMapping": Operation({"200": Answer("The mapping.", "EligibilityMapping")}),
    "saveEligibilityMapping": Operation(
        {
            "200": Answer("The mapping of this name was replaced.", "EligibilityMapping"),
            "201": Answer("A mapping of this name is new.", "EligibilityMapping"),
        },
        parameters=("mapping_default",),
        body="Mapping",
        faults=(
            "required",
            "wrong_type",
            "not_a_date",
            "not_allowed",
            "repeated",
            "unknown_field",
        ),
    ),
    "deleteEligibilityMapping": Operation({"204": Answer("The mapping is gone.")}),
    "issueToken": _oauth("TokenRequest", Answer("The token.", "Token", _OAUTH), *OAUTH_ERRORS),
    "revokeToken": _oauth(
        "RevocationRequest",
        Answer("The token is not valid now; the answer is the same for an unknown one.", headers=_OAUTH),
        *("invalid_request", "invalid_client", "rate_limited"),
    ),
    "document": Operation({"200": Answer("OpenAPI 3.1.", {JSON: {"type": "object"}})}),
    "referencePage": _PAGE,
    "referenceFile": Operation(
        {"200": Answer("The file.", dict.fromkeys(("text/javascript", "text/css", "image/png"), _TEXT))}
    ),
    "listProblems": _PAGE,
    "isAlive": Operation({"200": Answer("The process runs.", "Health")}),
    "isReady": Operation(
        {"200": Answer("The database answers and is up to date.", "Health")}, problems=("unavailable",)
    ),
    "metrics": Operation({"200": Answer("Prometheus text.", {"text/plain": _TEXT})}),
}
