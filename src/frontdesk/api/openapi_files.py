"""What the OpenAPI document says of eligibility files: their endpoints and their schemas."""

from collections.abc import Mapping
from typing import Any

from frontdesk.api import openapi_file_examples as examples
from frontdesk.api.openapi_headers import HEADERS, OF_LIMITED_CLIENTS, header_refs
from frontdesk.api.openapi_operations import Operation
from frontdesk.api.openapi_schemas import ref
from frontdesk.files.codes import FILE_PROBLEMS, REPORT_CODES
from frontdesk.files.model import COUNTS, FileMode, FileState, FileStep, Format
from frontdesk.files.report import COLUMNS

Json = dict[str, Any]

FILES = "/v2/plans/{plan_id}/eligibility-files"

_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_BINARY: Json = {"type": "string", "format": "binary"}


def file_operations(base_url: str) -> dict[tuple[str, str], Operation]:
    """The endpoints of files, by method and path."""
    return {
        ("POST", FILES): _upload(base_url),
        ("GET", FILES + "/{file_id}"): _show(base_url),
        ("GET", FILES + "/{file_id}/report"): _report(),
        ("POST", FILES + "/{file_id}/approve"): _approve(base_url),
        ("POST", FILES + "/{file_id}/cancel"): _cancel(base_url),
        ("POST", FILES + "/{file_id}/undo"): _undo(base_url),
    }


def _upload(base_url: str) -> Operation:
    content = {media: {"schema": _BINARY} | _examples(shown) for media, shown in examples.uploads().items()}
    taken = _taken("The file is stored and waits for a worker.", examples.received(base_url), base_url)
    return Operation(
        "uploadEligibilityFile",
        "Eligibility",
        "Hand in a file of members, to be loaded under a plan",
        {"202": taken},
        description="The body is the file itself, as it is or compressed by gzip. Its rows are applied one by one by the "
        "rules of a POST: a refused row does not stop its neighbours. Ask for the file until its `state` is `done`, "
        "`held` or `failed`. A repeated upload is another file, whose rows change nothing. Names that are not the "
        "interface's own are read by the account's mapping, which the service's operators set.",
        parameters=("file_format", "file_mode", "file_dry_run", "file_encoding"),
        body={"required": True, "content": content},
        problems=("not_found", "timeout", "too_large", "unsupported_media_type"),
        faults=("not_allowed", "repeated", "unknown_parameter"),
    )


def _approve(base_url: str) -> Operation:
    return Operation(
        "approveEligibilityFile",
        "Eligibility",
        "Let a held file end the members that it does not name",
        {"200": _file("The file waits for a worker, which goes on with it.", examples.approved(base_url))},
        description="For a person to say, who has looked at `members_missing`.",
        parameters=("file_id",),
        problems=("not_found",),
        faults=("wrong_state",),
    )


def _cancel(base_url: str) -> Operation:
    return Operation(
        "cancelEligibilityFile",
        "Eligibility",
        "Give up a file that waits or is held",
        {"200": _file("Nobody is ended. What it has applied stays until it is undone.", examples.cancelled(base_url))},
        parameters=("file_id",),
        problems=("not_found",),
        faults=("wrong_state",),
    )  # fmt: skip


def _undo(base_url: str) -> Operation:
    taken = _taken(
        "The undo, a file without content, waits for a worker.", examples.undone(base_url), base_url
    )
    return Operation(
        "undoEligibilityFile",
        "Eligibility",
        "Take back what a file changed",
        {"202": taken},
        description="Records that were changed again since are left and listed. Members that the file created are "
        "withdrawn, and their unsent invitations cancelled. The undo has a report, and can be undone.",
        parameters=("file_id",),
        problems=("not_found",),
        faults=("wrong_state",),
    )


def _show(base_url: str) -> Operation:
    found = _file("The file.", examples.progress(base_url))
    found["links"] = _links("reportEligibilityFile", file_id="$request.path.file_id")
    return Operation(
        "showEligibilityFile",
        "Eligibility",
        "How far a file is, and what its rows became",
        {"200": found},
        parameters=("file_id",),
        problems=("not_found",),
    )


def _report() -> Operation:
    content = {media: {"schema": _TEXT} | _examples(shown) for media, shown in examples.reports().items()}
    told = {
        "description": f"A line per row and outcome, with {_listed(COLUMNS)}. A refused row has a line for each fault, and "
        "each warning is a line of its own (`warned`). While the file is being loaded, these are the rows so far. "
        "Codes are those of a POST, and:\n\n" + _explained(REPORT_CODES),
        "headers": header_refs(("Cache-Control", "Content-Disposition", *OF_LIMITED_CLIENTS)),
        "content": content,
    }
    return Operation(
        "reportEligibilityFile",
        "Eligibility",
        "What became of each row of a file",
        {"200": told},
        parameters=("file_id", "report_format"),
        problems=("not_found",),
        faults=("not_allowed", "repeated"),
    )


def file_schemas() -> Json:
    """The schemas that only files use."""
    file = {"type": "object", "required": list(_fields()), "properties": _fields()}
    links = {"self": _TEXT, "report": _TEXT}
    return {
        "EligibilityFile": {
            "type": "object",
            "required": ["links", "data"],
            "properties": {
                "links": {"type": "object", "required": list(links), "properties": links},
                "data": file,
            },
        }
    }


def _fields() -> Json:
    time = {"type": "string", "format": "date-time"}
    return {
        "id": _said("Primary identifier.", {"type": "integer"}),
        "type": {"const": "eligibility_files"},
        "plan_id": _said("The plan that its members are put under.", {"type": "integer"}),
        "undoes_id": _or_null("The file that this one takes back.", {"type": "integer"}),
        "state": _said("`held`: a person has to approve it.", {"enum": [str(state) for state in FileState]}),
        "step": _said(
            "What is done now or was done last: read it through, apply its rows, end whom a full file does not name.",
            {"enum": [str(step) for step in FileStep]},
        ),
        "mode": _said(
            "An 834 says its own. `compare`: differences are reported, nothing is written.",
            {"enum": [str(purpose) for purpose in FileMode]},
        ),
        "dry_run": _said("Whether nothing is written.", {"type": "boolean"}),
        "format": {
            "enum": [*(str(item) for item in Format), None],
            "description": "null until it is known.",
        },
        "file_date": _or_null(
            "The date that the file says, else the day it came.", {"type": "string", "format": "date"}
        ),
        "size_bytes": _said("Of the body as it was sent.", _COUNT),
        "sha256": _or_null("Of the body as it was sent.", {"type": "string", "pattern": "^[0-9a-f]{64}$"}),
        "rows_total": _or_null("null until it was read through.", _COUNT),
        "rows_done": _COUNT,
        "counts": _counts(),
        "members_before": _or_null("Of a full file: the plan's members with access before it.", _COUNT),
        "members_missing": _or_null("Of a full file: those whom it does not name.", _COUNT),
        "ignored_columns": _said(
            "Columns (CSV) and keys (JSON lines) that are no field, percent-encoded; 20 at most.",
            {"type": "array", "items": _TEXT},
        ),
        "problem": _problem(),
        "created_at": time,
        "started_at": _or_null("null until a worker has begun with its rows.", time),
        "finished_at": _or_null("null until it has ended.", time),
    }


def _counts() -> Json:
    return {
        "type": "object",
        "description": "Rows by outcome, where there are any. `warned` counts rows among the others.",
        "properties": dict.fromkeys(COUNTS, _COUNT),
        "additionalProperties": False,
    }


def _problem() -> Json:
    properties = {
        "code": {"enum": list(FILE_PROBLEMS), "description": _explained(FILE_PROBLEMS)},
        "message": _said("In words; it never repeats what the file says.", _TEXT),
        "place": _or_null("The row (834: segment) at fault, the first being 1.", {"type": "integer"}),
    }
    return {
        "type": ["object", "null"],
        "description": "Why it failed or is held.",
        "required": list(properties),
        "properties": properties,
    }


def _file(description: str, named: Json) -> Json:
    return {
        "description": description,
        "headers": header_refs(("Cache-Control", *OF_LIMITED_CLIENTS)),
        "content": {"application/json": {"schema": ref("EligibilityFile"), "examples": named}},
    }


def _taken(description: str, named: Json, base_url: str) -> Json:
    """A new file, and where it is."""
    taken = _file(description, named)
    taken["headers"] |= {"Location": HEADERS["Location"] | {"example": examples.file_address(base_url)}}
    taken["links"] = _links("showEligibilityFile", "reportEligibilityFile", file_id="$response.body#/data/id")
    return taken


def _links(*operation_ids: str, file_id: str) -> Json:
    parameters = {"plan_id": "$request.path.plan_id", "file_id": file_id}
    return {name: {"operationId": name, "parameters": parameters} for name in operation_ids}


def _examples(named: Json) -> Json:
    return {"examples": named} if named else {}


def _said(description: str, schema: Json) -> Json:
    return schema | {"description": description}


def _or_null(description: str, schema: Json) -> Json:
    return schema | {"type": [schema["type"], "null"], "description": description}


def _explained(codes: Mapping[str, str]) -> str:
    return "\n".join(f"- `{code}`: {text}" for code, text in codes.items())


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
