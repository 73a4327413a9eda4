"""The parameters of the OpenAPI document, by the name under which operations point at them."""

from typing import Any

from frontdesk.api.plans import LARGEST_ID, LARGEST_PAGE

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}


def _parameter(name: str, place: str, description: str, schema: Schema, example: object) -> Schema:
    return {
        "name": name,
        "in": place,
        "description": description,
        "required": place == "path",
        "schema": schema,
        "example": example,
    }


PARAMETERS: dict[str, Schema] = {
    "plan_id": _parameter("plan_id", "path", "The plan's `id`.", {"type": "integer"}, 1),
    "asset": _parameter("asset", "path", "The file's name.", _TEXT, "page.js"),
    "external_id": _parameter(
        "external_id", "query", "Only the plan with exactly this `external_id`.", _TEXT, "gold-2027"
    ),
    "page_size": _parameter(
        "page[size]",
        "query",
        "Plans per page; without it everything is returned.",
        {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE},
        100,
    ),
    "page_after": _parameter(
        "page[after]",
        "query",
        "The `id` after which the page starts.",
        {"type": "integer", "minimum": 0, "maximum": LARGEST_ID},
        0,
    ),
    "if_none_match": _parameter(
        "If-None-Match", "header", "The `ETag` of an earlier read: 304 if nothing has changed since.", _TEXT,
        '"8c6c1d7f0a3b2e19"',
    ),
    "if_match": _parameter(
        "If-Match", "header", "The `ETag` of a read: change this version of the plan only, else 412. `*` is any version.",
        _TEXT, "*",
    ),
    "prefer": _parameter(
        "Prefer", "header", "`handling=strict` makes unknown fields a fault instead of ignoring them.", _TEXT,
        "handling=strict",
    ),
    "request_id": _parameter(
        "X-Request-Id", "header", "A name for the request, to find it by: letters, digits, `.`, `_`, `-`, 64 at most.",
        _TEXT, "import-7.42",
    ),
}  # fmt: skip
