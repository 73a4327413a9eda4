"""The parameters of the customers' endpoints in one table: the handlers check the query by it, the reference describes it.

Only parameters that a request needs have an `example`: the reference page fills it in, and would send the others with
every request that a reader tries.
"""

import re
from collections.abc import Mapping
from typing import Any

from frontdesk.errors import Fault, Invalid
from frontdesk.files.jobs import FILE_NAME_LENGTH
from frontdesk.files.mapping import LONGEST_SHEET_NAME, SEARCHED_ROWS
from frontdesk.files.mappings import MAPPING_NAME
from frontdesk.files.model import COUNTS, FileState, Format

Schema = dict[str, Any]

_NUMBER = re.compile(r"[0-9]{1,18}")


def _query(name: str, description: str, **keywords: object) -> Schema:
    """An optional parameter; it is text unless the keywords have another type."""
    schema = {"type": "string"} | keywords
    return {"name": name, "in": "query", "description": description, "required": False, "schema": schema}


def _header(name: str, description: str) -> Schema:
    return _query(name, description) | {"in": "header"}


def _path(name: str, description: str, example: int | str, **keywords: object) -> Schema:
    type_ = "integer" if isinstance(example, int) else "string"
    return _query(name, description, type=type_, **keywords) | {
        "in": "path",
        "required": True,
        "example": example,
    }


PARAMETERS: dict[str, Schema] = {
    "plan_id": _path("plan_id", "`id` of the plan.", 1),
    "asset": _path("asset", "Name of the file.", "page.js"),
    "file_id": _path("file_id", "`id` of the file.", 1),
    "file_format": _query(
        "format",
        "Format of the file. Without it `Content-Type` decides, then the content. With it `Content-Type` does not count.",
        enum=[*map(str, Format)],
    ),
    "file_mode": _query(
        "mode",
        "`full` ends the members that the file omits, `change` none. It goes before what an 834 says of itself.",
        enum=["change", "full"],
    ),
    "file_dry_run": _query("dry_run", "`true`: the report and the counts, without a change.", type="boolean"),
    "file_encoding": _query(
        "encoding",
        "Encoding of the text; without it the `charset` of `Content-Type`, else utf-8. A byte order mark goes before it.",
        pattern="^[A-Za-z0-9._-]{1,32}$",
    ),
    "file_sheet": _query(
        "sheet",
        "Name of the sheet of a workbook; without it the mapping's, else the first one.",
        minLength=1,
        maxLength=LONGEST_SHEET_NAME,
    ),
    "file_file_name": _query(
        "file_name",
        "The file's name, for people; without it that of `Content-Disposition`. It must not name a member.",
        minLength=1,
        maxLength=FILE_NAME_LENGTH,
    ),
    "file_header_row": _query(
        "header_row",
        "Number of the row with the names of the columns; without it the mapping's, else it is found.",
        type="integer",
        minimum=1,
        maximum=SEARCHED_ROWS,
    ),
    "file_mapping": _query(
        "mapping",
        "Name of a mapping of the account, or a mapping itself: a JSON object, percent-encoded. Without it the account's "
        "default mapping counts; `{}` is none.",
    ),
    "file_suggest_mapping": _query(
        "suggest_mapping",
        "`true`: the answer is a mapping that would read the file. Its first 1,000 rows are looked at, and nothing is loaded "
        "or stored.",
        type="boolean",
    ),
    "mapping_name": _path(
        "mapping_name",
        "Name of the mapping: letters, digits, `.`, `_` or `-`.",
        "hr-export",
        pattern=f"^{MAPPING_NAME.pattern}$",
    ),
    "mapping_default": _query(
        "default",
        "`true`: the files that come without a mapping are read by this one. Without it nothing changes about that.",
        type="boolean",
    ),
    "mapping_keep": _query(
        "keep",
        "`false`: the mapping is for this file only; else it becomes the account's default.",
        type="boolean",
    ),
    "report_format": _query("format", "Format of the report; jsonl by default.", enum=["csv", "jsonl"]),
    "report_outcome": _query("outcome", "Only lines with this outcome.", enum=list(COUNTS)),
    "report_code": _query("code", "Only lines with this code.", pattern="^[a-z_]{1,64}$"),
    "report_external_id": _query(
        "external_id",
        "Only the rows of the member with exactly this `external_id`.",
        minLength=1,
        maxLength=255,
    ),
    "report_page_size": _query(
        "page[size]",
        "Lines per page; without it and `page[after]` the answer holds every line.",
        type="integer",
        minimum=1,
        maximum=10_000,
    ),
    "report_page_after": _query(
        "page[after]",
        "Where the page starts; the `Link` of the page before has it.",
        pattern="^[0-9]{1,9}[.][0-9]{1,9}$",
    ),
    "file_state": _query("state", "Only files in this state.", enum=[*map(str, FileState)]),
    "file_sha256": _query("sha256", "Only files with this SHA-256 of the body.", pattern="^[0-9a-f]{64}$"),
    "file_page_size": _query(
        "page[size]", "Files per page; 100 by default.", type="integer", minimum=1, maximum=1000
    ),
    "file_page_after": _query(
        "page[after]",
        "The `id` below which the page starts; `links.next` has it.",
        type="integer",
        minimum=0,
        maximum=10**18 - 1,
    ),
    "accept_encoding": _header("Accept-Encoding", "`gzip` for a compressed report."),
    "idempotency_key": _header(
        "Idempotency-Key",
        "Your name for this upload: 1 to 255 visible ASCII characters. A retry with the same key, file and parameters "
        "answers the file of the first; with others it is refused.",
    ),
    "queue_interval": _query(
        "queue_interval",
        "`true`: each plan has a `queue_interval` beside its `queue_info`.",
        type="boolean",
    ),
    "external_id": _query("external_id", "Only the plan with exactly this `external_id`."),
    "page_size": _query(
        "page[size]",
        "Plans per page; without it the answer holds every plan.",
        type="integer",
        minimum=1,
        maximum=1000,
    ),
    "page_after": _query(
        "page[after]",
        "The `id` after which the page starts; `links.next` has it.",
        type="integer",
        minimum=0,
        maximum=10**18 - 1,
    ),
    "if_none_match": _header(
        "If-None-Match",
        'The `ETag` of an earlier read, such as `"8c6c1d7f0a3b2e19"`: 304 if nothing has changed since.',
    ),
    "if_match": _header(
        "If-Match",
        'The `ETag` of a read of the one plan, by `id` or by `external_id`, such as `"v3.8c6c1d7f0a3b2e19"`: the answer is '
        "412 if the plan has changed since. `*` is any version. The `ETag` of another list names no version.",
    ),
    "prefer": _header("Prefer", "`handling=strict` makes unknown fields and query parameters a fault."),
    "request_id": _header(
        "X-Request-Id", "An identifier for the log: 1 to 64 letters, digits, `.`, `_` or `-`."
    ),
}


def check_query(query: Mapping[str, str], *parameters: str) -> None:
    """Raises Invalid with a fault for every value that is not as the table has it."""
    if not query:
        return
    schemas = {PARAMETERS[key]["name"]: PARAMETERS[key]["schema"] for key in parameters}
    rules = {name: _broken_rule(query[name], schema) for name, schema in schemas.items() if name in query}
    faults = [Fault(name, "not_allowed", rule) for name, rule in rules.items() if rule]
    if faults:
        raise Invalid(faults)


def _broken_rule(text: str, schema: Schema) -> str | None:
    match schema:
        case {"type": "boolean"} if text not in ("true", "false"):
            return "must be true or false"
        case {"enum": choices} if text not in choices:
            return "must be one of " + ", ".join(choices)
        case {"minimum": least, "maximum": most} if not (
            _NUMBER.fullmatch(text) and least <= int(text) <= most
        ):
            return f"must be a whole number up to {most}"
        case {"maxLength": most} if not 0 < len(text) <= most:
            return f"must have 1 to {most} characters"
        case {"pattern": pattern} if not re.fullmatch(pattern, text):
            return f"must have the form {pattern}"
    return None
