"""The parameters and headers of the customers' endpoints in two tables, in the notation of `schemas`."""

import re

from frontdesk.api.schemas import NotedField, Schema, read_fields

# Only parameters that a request needs have an example: the reference page fills it in, and would send the others with
# every request that a reader tries.
_EXAMPLES = {"plan_id": 1, "asset": "page.js", "file_id": 1, "mapping_name": "hr-export"}
# By key. A parameter that is required is of the path, one with a capital is a header. In the query the key is the name behind
# the thing (`file_mode` is `mode`), and `page_size` is `page[size]`.
_PARAMETERS = r"""
plan_id: integer — `id` of the plan.
asset: string — Name of the file.
file_id: integer — `id` of the file.
file_format?: Format — Format of the file, whatever `Content-Type` says. Without it `Content-Type` decides, then the content.
file_mode?: "change"|"full" — `full` ends the members that the file omits, `change` none, whatever an 834 says of itself.
file_dry_run?: boolean — `true`: the report and the counts, without a change.
file_encoding?: string {"pattern": "^[A-Za-z0-9._-]{1,32}$"} — Encoding of a text without a byte order mark; without it the
        `charset` of `Content-Type`, else utf-8.
file_sheet?: sheet — Name of the sheet of a workbook; without it the mapping's, else the first one.
file_file_name?: string {"minLength": 1, "maxLength": FILE_NAME_LENGTH} — The file's name, for people; without it that of
        `Content-Disposition`. It must not name a member.
file_header_row?: header_row — Number of the row with the names of the columns; without it the mapping's, else it is found.
file_mapping?: string — Name of a mapping of the account, or a mapping itself: a JSON object, percent-encoded. Without it the
        account's default mapping counts; `{}` is none.
file_suggest_mapping?: boolean — `true`: the answer is a mapping that would read the file. Its first 1,000 rows are looked at,
        and nothing is loaded or stored.
mapping_name: MAPPING_NAME — Name of the mapping: letters, digits, `.`, `_` or `-`.
mapping_default?: boolean — `true`: files that come without a mapping are read by this one. Without it that stays as it is.
mapping_keep?: boolean — `false`: the mapping is for this file only; else it becomes the account's default.
report_format?: "csv"|"jsonl" — Format of the report; jsonl by default.
report_outcome?: COUNTS — Only lines with this outcome.
report_code?: string {"pattern": "^[a-z_]{1,64}$"} — Only lines with this code.
report_external_id?: string {"minLength": 1, "maxLength": 255} — Only rows of the member with exactly this `external_id`.
report_page_size?: integer {"minimum": 1, "maximum": 10000} — Lines per page; without it and `page[after]` all lines.
report_page_after?: string {"pattern": "^[0-9]{1,9}[.][0-9]{1,9}$"} — Where the page starts, from `Link` of the page before.
file_state?: FileState — Only files in this state.
file_sha256?: sha256 — Only files with this SHA-256 of the body.
file_page_size?: integer {"minimum": 1, "maximum": 1000} — Files per page; 100 by default.
file_page_after?: page_start — The `id` below which the page starts; `links.next` has it.
Accept-Encoding?: string — `gzip` for a compressed report.
Idempotency-Key?: string — Your name for this upload: 1 to 255 visible ASCII characters. A retry with the same key, file and
        parameters answers the file of the first; with others it is refused.
queue_interval?: boolean — `true`: each plan has a `queue_interval` beside its `queue_info`.
external_id?: string — Only the plan with exactly this `external_id`.
page_size?: integer {"minimum": 1, "maximum": 1000} — Plans per page; without it the answer holds every plan.
page_after?: page_start — The `id` after which the page starts; `links.next` has it.
If-None-Match?: string — The `ETag` of an earlier read, such as `"8c6c1d7f0a3b2e19"`: 304 if nothing has changed since.
If-Match?: string — The `ETag` of a read of the one plan, such as `"v3.8c6c1d7f0a3b2e19"`: 412 if the plan has changed since.
        `*` is any version.
Prefer?: string — `handling=strict` makes unknown fields and query parameters a fault.
X-Request-Id?: string — An identifier for the log: 1 to 64 letters, digits, `.`, `_` or `-`.
"""

# Headers of answers. One without `?` is in each answer that lists it.
_HEADERS = r"""
X-Request-Id: string {"pattern": "^[A-Za-z0-9._-]{1,64}$"} — Identifies the request in the log: the caller's, else a new one.
X-Content-Type-Options: "nosniff" — Browsers must not guess another content type.
Referrer-Policy: "no-referrer" — No page that is opened from here learns this address.
Content-Security-Policy: string — The page loads from this service only, and sends requests to it only.
Cache-Control?: string — Whether, and how long, the answer may be kept.
Pragma?: "no-cache" — `Cache-Control` for HTTP/1.0 (RFC 6749).
Connection: "close" — The server does not read the rest of the body.
Location: string — Address of the new file.
Vary: string — The answer depends on this header of the request.
Content-Encoding?: "gzip" — `gzip` if the request accepts it.
Link?: string — Address of the next page, if there is one (RFC 8288).
Content-Disposition: string — Name to save the file by.
ETag: string {"pattern": "^\"[^\"]+\"$"} — Version of what was read, for `If-None-Match`; of one plan for `If-Match` too.
Allow: string — Methods of this path.
WWW-Authenticate?: string — How to authenticate, and what was wrong.
Retry-After: integer {"minimum": 1} — Seconds to wait before the next request.
RateLimit-Limit?: count — Requests per minute of this client. The three RateLimit headers come with each answer to a client
        with a limit of its own, to others when less than a tenth is left.
RateLimit-Remaining?: count — Requests left in this minute.
RateLimit-Reset?: count — Seconds until the minute ends.
Ignored-Fields?: string — Unknown fields of the body, which were ignored: percent-encoded, 40 characters of each, 20 names at
        most; `+3` at the end stands for 3 more. A refusal names them too.
Ignored-Parameters?: string — Unknown parameters of the query, which were ignored, written as `Ignored-Fields` are.
Did-You-Mean?: string {"pattern": "^[^=,]+=[a-z_\\[\\]]+(?:,[^=,]+=[a-z_\\[\\]]+)*$"} — Unknown fields and parameters, each
        with the known name near to it.
Eligibility-Outcome: Outcome — What the request did. `moved`: the record was under another plan of the account.
Eligibility-Changed?: string {"pattern": "^[a-z_]+(?:,[a-z_]+)*$"} — The fields that an update changed, if any.
Eligibility-Left-Plan?: string — `external_id`, percent-encoded, of the plan that a moved record was under.
Eligibility-Warnings?: string {"pattern": "^[a-z_]+(?:;member=[0-9]+)?(?:,[a-z_]+(?:;member=[0-9]+)?)*$"} — Likely mistakes
        that are no faults; the record is written. {WARNINGS}
Invitation: string {"pattern": "^(?:immediate|queued|none; reason=[a-z_]+)$"} — Whether the member is invited by e-mail: at
        once, in the account's batches (`queued`), or not, with the reason. {REASONS}
"""


def _parameter(noted: NotedField) -> tuple[str, Schema]:
    """The parameter as OpenAPI describes it, by its key."""
    key = name = noted.name
    place = "query" if noted.is_optional else "path"
    if key[0].isupper():
        key, place = key.lower().replace("-", "_").removeprefix("x_"), "header"
    elif place == "query":
        name = re.sub("^(?:file|mapping|report)_", "", key)
        name = re.sub("^page_(.*)", r"page[\1]", name)
    parameter: Schema = {"name": name, "in": place, "description": noted.text}
    parameter |= {"required": place == "path", "schema": noted.schema}
    return key, parameter | ({"example": _EXAMPLES[key]} if key in _EXAMPLES else {})


PARAMETERS: dict[str, Schema] = dict(map(_parameter, read_fields(_PARAMETERS)))
HEADERS: dict[str, Schema] = {
    header.name: {"description": header.text, "required": not header.is_optional, "schema": header.schema}
    for header in read_fields(_HEADERS)
}
