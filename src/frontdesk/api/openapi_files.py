"""The part of the OpenAPI document that is about eligibility files."""

from collections.abc import Callable
from typing import Any

from frontdesk.access.scopes import Scope
from frontdesk.api.openapi_schemas import ref
from frontdesk.files import FileState, Format
from frontdesk.files.shown import ORDER

Json = dict[str, Any]

_SECURITY: list[Json] = [{"token": []}, {"client": [Scope.ELIGIBILITY_WRITE.value]}]
_HEADERS: Json = {
    name: {"description": text, "schema": {"type": "string"}}
    for name, text in {
        "X-Request-Id": "The caller's own, if it sent a sane one; it finds the request in the log.",
        "Cache-Control": "no-store",
    }.items()
}
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


def file_paths(problems: Callable[[tuple[int, ...]], Json]) -> Json:
    """The paths; `problems(statuses)` are the problem answers of an endpoint that needs a token."""
    plan = _parameter("plan_id", "path", {"type": "integer"}, "The plan.")
    file = _parameter("file_id", "path", {"type": "integer"}, "The file.")
    path = "/v2/plans/{plan_id}/eligibility-files"
    return {
        path: {"parameters": [plan], "post": _post(problems)},
        path + "/{file_id}": {"parameters": [plan, file], "get": _show(problems)},
        path + "/{file_id}/report": {"parameters": [plan, file], "get": _report(problems)},
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


def _parameter(name: str, place: str, schema: Json, description: str) -> Json:
    required = {"required": True, "example": 1} if place == "path" else {}
    return {"name": name, "in": place, "schema": schema, "description": description} | required


def _content() -> Json:
    address = "https://api.example.com/v2/plans/1/eligibility-files/7"
    example = {"links": {"self": address, "report": address + "/report"}, "data": _EXAMPLE}
    return {"application/json": {"schema": ref("EligibilityFile"), "example": example}}


def _post(problems: Callable[[tuple[int, ...]], Json]) -> Json:
    binary = {"schema": {"type": "string", "format": "binary"}}
    formats = ("text/csv", "application/x-ndjson", "application/edi-x12", "application/octet-stream")
    location = {"Location": {"description": "Where the file is seen.", "schema": {"type": "string"}}}
    return {
        "operationId": "uploadEligibilityFile",
        "summary": "Hand in a file of members, to be loaded under a plan",
        "description": "The body is the file itself; gzip is recognised. A worker loads it: ask for the file until its "
        "state is done, held or failed.",
        "security": _SECURITY,
        "parameters": [
            _parameter(
                "format",
                "query",
                {"enum": [str(item) for item in Format]},
                "Else Content-Type tells, else the file.",
            ),
            _parameter(
                "mode", "query", {"enum": ["change", "full"]}, "full ends the members that it does not name."
            ),
            _parameter(
                "dry_run", "query", {"enum": ["true", "false"]}, "Report and counts without a change."
            ),
            _parameter("encoding", "query", {"type": "string"}, "The encoding of its text; utf-8 if absent."),
        ],
        "requestBody": {"required": True, "content": dict.fromkeys(formats, binary)},
        "responses": {
            "202": {"description": "Received.", "headers": _HEADERS | location, "content": _content()},
            **problems((404, 408, 413, 422)),
        },
    }


def _show(problems: Callable[[tuple[int, ...]], Json]) -> Json:
    return {
        "operationId": "showEligibilityFile",
        "summary": "How far a file is, and what its rows became",
        "security": _SECURITY,
        "responses": {
            "200": {"description": "The file.", "headers": _HEADERS, "content": _content()},
            **problems((404,)),
        },
    }


def _report(problems: Callable[[tuple[int, ...]], Json]) -> Json:
    text = {"schema": {"type": "string"}}
    return {
        "operationId": "reportEligibilityFile",
        "summary": "What became of each row: row, external_id, outcome, code, field, hint",
        "security": _SECURITY,
        "parameters": [_parameter("format", "query", {"enum": ["csv", "jsonl"]}, "jsonl if absent.")],
        "responses": {
            "200": {
                "description": "A line per row and outcome.",
                "headers": _HEADERS,
                "content": {"application/x-ndjson": text, "text/csv": text},
            },
            **problems((404, 422)),
        },
    }
