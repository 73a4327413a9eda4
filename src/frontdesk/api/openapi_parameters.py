"""The parameters of the OpenAPI document, by the name under which operations point at them.

Only those that a request can't do without have an `example`: the reference page fills it in, and would send the others
with every request that a reader tries.
"""

from typing import Any

from frontdesk.api.plans import LARGEST_ID, LARGEST_PAGE
from frontdesk.files.model import Format

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_ENCODING: Schema = {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,32}$"}


def _path(name: str, description: str, schema: Schema, example: object) -> Schema:
    return _parameter(name, "path", description, schema) | {"required": True, "example": example}


def _query(name: str, description: str, schema: Schema) -> Schema:
    return _parameter(name, "query", description, schema)


def _header(name: str, description: str) -> Schema:
    return _parameter(name, "header", description, _TEXT)


def _parameter(name: str, place: str, description: str, schema: Schema) -> Schema:
    return {"name": name, "in": place, "description": description, "required": False, "schema": schema}


PARAMETERS: dict[str, Schema] = {
    "plan_id": _path("plan_id", "The plan's `id`.", {"type": "integer"}, 1),
    "asset": _path("asset", "The file's name.", _TEXT, "page.js"),
    "file_id": _path("file_id", "The file's `id`.", {"type": "integer"}, 1),
    "file_format": _query(
        "format", "Else `Content-Type` tells, else the file.", {"enum": [str(item) for item in Format]}
    ),
    "file_mode": _query("mode", "`full` ends the members that it does not name.", {"enum": ["change", "full"]}),
    "file_dry_run": _query("dry_run", "Report and counts without a change.", {"enum": ["true", "false"]}),
    "file_encoding": _query("encoding", "The encoding of its text; utf-8 if absent.", _ENCODING),
    "report_format": _query("format", "jsonl if absent.", {"enum": ["csv", "jsonl"]}),
    "external_id": _query("external_id", "Only the plan with exactly this `external_id`.", _TEXT),
    "page_size": _query(
        "page[size]",
        "Plans per page; without it everything is returned.",
        {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE},
    ),
    "page_after": _query(
        "page[after]",
        "The `id` after which the page starts; `links.next` has it.",
        {"type": "integer", "minimum": 0, "maximum": LARGEST_ID},
    ),
    "if_none_match": _header(
        "If-None-Match", 'The `ETag` of an earlier read, such as `"8c6c1d7f0a3b2e19"`: 304 if nothing has changed since.'
    ),
    "if_match": _header(
        "If-Match",
        'The `ETag` of a read of the one plan, by `id` or by `external_id`, such as `"v3.8c6c1d7f0a3b2e19"`: change this '
        "version of the plan only, else 412. `*` is any version. The `ETag` of another list names no version.",
    ),
    "prefer": _header("Prefer", "`handling=strict` makes unknown fields a fault instead of ignoring them."),
    "request_id": _header(
        "X-Request-Id", "A name to find the request by: 1 to 64 letters, digits, `.`, `_` or `-`."
    ),
}  # fmt: skip
