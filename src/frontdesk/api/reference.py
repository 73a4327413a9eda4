"""The reference: /openapi.json, the page at /docs with its files, and the list of problems at /problems."""

import json
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files

from frontdesk.api.openapi import Operation, openapi_document, operation
from frontdesk.app import App
from frontdesk.eligibility.model import FAULT_CODES, WARNINGS
from frontdesk.errors import NotFound
from frontdesk.files.model import FILE_PROBLEMS, REPORT_CODES
from frontdesk.invitations.model import NotInvitedReason
from frontdesk.web.problems import INTENT_CODES, PROBLEMS, QUOTA_CODES
from frontdesk.web.request import Request
from frontdesk.web.response import Header, Response

ASSETS = {
    "page.js": ("page.js", b"text/javascript; charset=utf-8"),
    "swagger-ui-bundle.js": ("swagger-ui/swagger-ui-bundle.js", b"text/javascript; charset=utf-8"),
    "swagger-ui.css": ("swagger-ui/swagger-ui.css", b"text/css; charset=utf-8"),
    "favicon-32x32.png": ("swagger-ui/favicon-32x32.png", b"image/png"),
}
_HTML = b"text/html; charset=utf-8"
_CACHED: Header = (b"cache-control", b"public, max-age=3600")


def openapi_operation(others: Sequence[Operation]) -> Operation:
    """`GET /openapi.json`: the document that describes the other operations and itself."""

    @lru_cache(maxsize=8)
    def content(base_url: str) -> bytes:
        return json.dumps(openapi_document(base_url, (*others, itself)), ensure_ascii=False).encode()

    async def document(app: App, _request: Request) -> Response:
        """Read this document. Answers the service's OpenAPI document.

        200 object: OpenAPI 3.1.
        """
        return Response(200, content(app.config.base_url), (_CACHED,))

    itself = operation("GET", "/openapi.json", document)
    return itself


async def entrance(app: App, _request: Request) -> Response:
    """Lead from the service's address to the reference page."""
    return Response(307, headers=((b"location", f"{app.config.base_url}/docs".encode()),))


async def reference_page(app: App, _request: Request) -> Response:
    """Open the reference page. The page shows this document and sends requests. It loads nothing from other sites.

    200 text/html [Content-Security-Policy Referrer-Policy]: The page.
    """
    return Response(200, _file("page.html"), _page_headers(app.config.base_url), _HTML)


async def reference_file(_app: App, request: Request) -> Response:
    """Read a file of the reference page. The scripts, styles and pictures of `/docs`.

    200 text/javascript text/css image/png: The file.
    """
    known = ASSETS.get(request.path_parameters["asset"])
    if known is None:
        raise NotFound("address", "There is nothing at this address.")
    path, content_type = known
    return Response(200, _file(path), (_CACHED,), content_type)


async def list_problems(app: App, _request: Request) -> Response:
    """Look up a problem or code. A page with every problem, fault code, warning and reason. The `type` of a problem leads
    here.

    200 text/html [Content-Security-Policy Referrer-Policy]: The page.
    """
    return Response(200, _problems_page(), _page_headers(app.config.base_url), _HTML)


def _page_headers(base_url: str) -> tuple[Header, ...]:
    """The policy allows requests to this service only (docs/decisions/0063)."""
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        f"connect-src 'self' {base_url}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return (b"content-security-policy", policy.encode()), (b"referrer-policy", b"no-referrer")


@lru_cache(maxsize=8)
def _file(path: str) -> bytes:
    return files("frontdesk.api").joinpath("assets", path).read_bytes()


@lru_cache(maxsize=1)
def _problems_page() -> bytes:
    problems = {kind: f"{each.status}. {each.title}. {each.happens}" for kind, each in PROBLEMS.items()}
    reasons = {str(reason): reason.description for reason in NotInvitedReason}
    sections = (
        ("Problems", problems, ""),
        ("Fault codes, in errors[].code", FAULT_CODES | QUOTA_CODES | INTENT_CODES, ""),
        ("Warnings, in Eligibility-Warnings", WARNINGS, ""),
        ("Why a member is not invited, in Invitation", reasons, ""),
        ("More codes, in the report of a file", REPORT_CODES, "row-"),
        ("Why a file failed or is held, in problem.code", FILE_PROBLEMS, "file-"),
    )
    body = "".join(_section(title, entries, prefix) for title, entries, prefix in sections)
    style = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}dt{font-weight:600}"
    page = f"<!doctype html><html lang=en><meta charset=utf-8><title>Problems</title><style>{style}</style>{body}</html>"
    return page.encode()


def _section(title: str, entries: dict[str, str], prefix: str) -> str:
    """A list of codes, each with its name as anchor. Codes of files have a prefix, because some have the name of another code."""
    rows = "".join(
        f'<dt id="{prefix}{escape(name)}"><code>{escape(name)}</code></dt><dd>{escape(text)}</dd>'
        for name, text in entries.items()
    )
    return f"<h1>{escape(title)}</h1><dl>{rows}</dl>"
