"""The part of the OpenAPI document that is about eligibility files."""

from typing import Any

from frontdesk.api.openapi_headers import OF_LIMITED_CLIENTS, header_refs
from frontdesk.api.openapi_operations import Operation
from frontdesk.api.openapi_schemas import ref
from frontdesk.files import FileState
from frontdesk.files.shown import ORDER

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_BINARY: Json = {"schema": {"type": "string", "format": "binary"}}
_FORMATS = ("text/csv", "application/x-ndjson", "application/edi-x12", "application/octet-stream")
_LIMITED = ("Cache-Control", *OF_LIMITED_CLIENTS)

_EXAMPLE: Json = {
    "id": 7,
    "type": "eligibility_files",
    "plan_id": 1,
    "undoes_id": None,
    "state": "done",
    "step": "end",
    "mode": "change",
    "dry_run": False,
    "format": "csv",
    "file_date": "2026-11-21",
    "size_bytes": 181_423,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "rows_total": 1200,
    "rows_done": 1200,
    "counts": {"created": 1190, "unchanged": 8, "refused": 2, "warned": 3},
    "members_before": None,
    "members_missing": None,
    "ignored_columns": [],
    "problem": None,
    "created_at": "2026-11-21T09:00:00Z",
    "started_at": "2026-11-21T09:00:01Z",
    "finished_at": "2026-11-21T09:00:02Z",
}


def file_operations() -> dict[tuple[str, str], Operation]:
    """The endpoints of files, by method and path."""
    path = "/v2/plans/{plan_id}/eligibility-files"
    report = {"application/x-ndjson": {"schema": _TEXT}, "text/csv": {"schema": _TEXT}}
    return {
        ("POST", path): Operation(
            "uploadEligibilityFile",
            "Eligibility",
            "Hand in a file of members, to be loaded under a plan",
            {"202": _file("It was received.", "Cache-Control", "Location")},
            description="The body is the file itself; gzip is recognised. A worker loads it: ask for the file until its "
            "`state` is `done`, `held` or `failed`.",
            parameters=("file_format", "file_mode", "file_dry_run", "file_encoding"),
            body={"required": True, "content": dict.fromkeys(_FORMATS, _BINARY)},
            problems=("not_found", "timeout", "too_large"),
            faults=("not_allowed", "repeated"),
        ),
        ("GET", path + "/{file_id}"): Operation(
            "showEligibilityFile",
            "Eligibility",
            "How far a file is, and what its rows became",
            {"200": _file("The file.", "Cache-Control")},
            parameters=("file_id",),
            problems=("not_found",),
        ),
        ("GET", path + "/{file_id}/report"): Operation(
            "reportEligibilityFile",
            "Eligibility",
            "What became of each row: row, external_id, outcome, code, field, hint",
            {
                "200": {
                    "description": "A line per row and outcome.",
                    "headers": header_refs(_LIMITED),
                    "content": report,
                }
            },
            parameters=("file_id", "report_format"),
            problems=("not_found",),
            faults=("not_allowed", "repeated"),
        ),
    }


def file_schemas() -> Json:
    """The schemas that only files use."""
    text, number = {"type": "string"}, {"type": "integer"}
    maybe_text, maybe_number = {"type": ["string", "null"]}, {"type": ["integer", "null"]}
    numbers = {"id", "plan_id", "size_bytes", "rows_done"}
    maybe_numbers = {"undoes_id", "rows_total", "members_before", "members_missing"}
    texts = {"type", "step", "mode", "created_at"}
    fields: Json = {
        name: number
        if name in numbers
        else maybe_number
        if name in maybe_numbers
        else text
        if name in texts
        else maybe_text
        for name in _EXAMPLE
    }
    fields |= {
        "state": {"type": "string", "enum": [str(state) for state in FileState]},
        "dry_run": {"type": "boolean"},
        "counts": {
            "type": "object",
            "properties": dict.fromkeys(ORDER, number),
            "additionalProperties": False,
        },
        "ignored_columns": {"type": "array", "items": text},
        "problem": {
            "type": ["object", "null"],
            "properties": {"code": text, "message": text, "place": maybe_number},
        },
    }
    file = {"type": "object", "required": list(_EXAMPLE), "properties": fields}
    links = {"type": "object", "required": ["self", "report"], "properties": {"self": text, "report": text}}
    return {
        "EligibilityFile": {
            "type": "object",
            "required": ["links", "data"],
            "properties": {"links": links, "data": file},
        }
    }


def _file(description: str, *headers: str) -> Json:
    address = "https://api.example.com/v2/plans/1/eligibility-files/7"
    example = {"links": {"self": address, "report": address + "/report"}, "data": _EXAMPLE}
    return {
        "description": description,
        "headers": header_refs((*headers, *OF_LIMITED_CLIENTS)),
        "content": {"application/json": {"schema": ref("EligibilityFile"), "example": example}},
    }
