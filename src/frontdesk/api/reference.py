"""/openapi.json, the documentation at /docs with its files, /llms.txt, and the list of codes at
/problems.

What these serve is made at its first request, and imported with that (`site_files`).
"""

import asyncio
import gzip
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.codes import Remedy
from frontdesk.config import Environment
from frontdesk.interface.operations import Answer, Content, Group, Operation
from frontdesk.interface.parameters import (
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_SECURITY_POLICY,
    LOCATION,
    REFERRER_POLICY,
    VARY,
)
from frontdesk.web.problems import RemedyOperation
from frontdesk.web.request import Request
from frontdesk.web.response import GZIPPED, LEVEL, VARIES, Header, Response

GROUP = Group("Reference", "This reference.")
ENTRANCE = Group("Entrance", "The address of the service, as people type it.")

Remedies = Mapping[Remedy, RemedyOperation]

_PAGE = Content(("text/html",))
_CACHED: Header = (b"cache-control", b"public, max-age=3600")
_OF_PAGES = (CONTENT_SECURITY_POLICY, REFERRER_POLICY, CACHE_CONTROL, VARY, CONTENT_ENCODING)
# What /openapi.json describes; the routes set it once, since they import this module.
_described: list[tuple[Sequence[Group], Sequence[Operation], Remedies]] = []


class SiteFile(NamedTuple):
    content_type: bytes
    content: bytes
    packed: bytes


def describe(groups: Sequence[Group], operations: Sequence[Operation], remedies: Remedies) -> None:
    """Name the operations of /openapi.json, which those of this module are a part of."""
    _described[:] = [(groups, operations, remedies)]


@GROUP.get(Path.DOCUMENT, answers={200: Answer("OpenAPI 3.1.", dict[str, Any])})
async def document(app: App, _request: Request) -> Response:
    """Read this document.

    Answers the service's OpenAPI document.
    """
    file = await _read(app, "openapi.json")
    return Response(200, file.content, (_CACHED,))


@GROUP.get(Path.DOCS, answers={200: Answer("The page.", _PAGE, headers=_OF_PAGES)})
async def reference_page(app: App, request: Request) -> Response:
    """Open the documentation.

    Guides, and a reference that sends requests. The pages load nothing from other sites.
    """
    return await _answer(app, request, "start")


@GROUP.get(
    Path.DOCS_FILE,
    answers={
        200: Answer(
            "The file.",
            Content(
                (
                    "text/html",
                    "text/markdown",
                    "application/json",
                    "text/javascript",
                    "text/css",
                    "image/png",
                    "image/svg+xml",
                    "application/octet-stream",
                )
            ),
            headers=_OF_PAGES,
        )
    },
)
async def reference_file(app: App, request: Request) -> Response:
    """Read a page or file of the documentation.

    `reference` shows this document, `collection.json` is the same for Postman, and a page's
    name with `.md` is its Markdown. The page `clients` names the packages for pip and npm.
    """
    return await _answer(app, request, request.path_parameters["asset"])


@GROUP.get(
    Path.LLMS, answers={200: Answer("The list.", Content(("text/plain",)), headers=_OF_PAGES)}
)
async def list_documentation(app: App, request: Request) -> Response:
    """List the pages of the documentation for programs.

    The form is that of llmstxt.org.
    """
    return await _answer(app, request, "llms.txt")


@GROUP.get(Path.PROBLEMS, answers={200: Answer("The page.", _PAGE, headers=_OF_PAGES)})
async def list_problems(app: App, request: Request) -> Response:
    """Look up a problem or code.

    A page with every problem, fault code, warning and reason, and an example of each. The
    `type` of a problem leads here.
    """
    return await _answer(app, request, "problems")


@ENTRANCE.get(
    "/", ignores_accept=True, answers={307: Answer("The documentation.", headers=[LOCATION])}
)
async def entrance(app: App, _request: Request) -> Response:
    """Go to the documentation."""
    return Response(307, headers=((b"location", f"{app.config.base_url}/docs".encode()),))


async def _answer(app: App, request: Request, name: str) -> Response:
    file = await _read(app, name)
    headers = (_CACHED, VARIES, *_page_headers(app.config.base_url))
    if request.accepts_gzip():
        return Response(200, file.packed, (*headers, GZIPPED), file.content_type)
    return Response(200, file.content, headers, file.content_type)


async def _read(app: App, name: str) -> SiteFile:
    """The file of this name. It is made once, in a thread: Markdown and gzip take up to 0.5 s.
    Raises NotFound.
    """
    is_production = app.config.environment is Environment.PRODUCTION
    return await asyncio.to_thread(_made_file, name, app.config.base_url, is_production)


@cache
def _made_file(name: str, base_url: str, is_production: bool) -> SiteFile:
    from frontdesk.api.site_files import site_file  # most processes never show the documentation

    document = _document(base_url)
    content_type, content = site_file(name, document, base_url, is_production=is_production)
    return SiteFile(content_type, content, gzip.compress(content, LEVEL))


@cache
def _document(base_url: str) -> dict[str, Any]:
    from frontdesk.interface.document import openapi_document

    [(groups, operations, remedies)] = _described
    return openapi_document(base_url, groups, operations, remedies)


def _page_headers(base_url: str) -> tuple[Header, ...]:
    """The policy allows requests to this service only (docs/decisions/0063)."""
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        f"connect-src 'self' {base_url}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return (b"content-security-policy", policy.encode()), (b"referrer-policy", b"no-referrer")
