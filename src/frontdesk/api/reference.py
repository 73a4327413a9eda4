"""/openapi.json, the documentation at /docs with its files, /llms.txt, and the list of codes at /problems."""

import asyncio
import gzip
import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from frontdesk.api import site
from frontdesk.api.codes import SECTIONS, codes_content
from frontdesk.api.collection import postman_collection
from frontdesk.api.notation import Schema
from frontdesk.api.openapi import Operation, openapi_document, operation
from frontdesk.app import App
from frontdesk.config import Environment
from frontdesk.errors import NotFound
from frontdesk.web.page import page_template
from frontdesk.web.request import Request
from frontdesk.web.response import GZIPPED, LEVEL, VARIES, Header, Response

_SCRIPT, _STYLE = b"text/javascript; charset=utf-8", b"text/css; charset=utf-8"
_HTML, _JSON = b"text/html; charset=utf-8", b"application/json"
_MARKDOWN, _TEXT = b"text/markdown; charset=utf-8", b"text/plain; charset=utf-8"
ASSETS = {
    "site.css": ("site.css", _STYLE),
    "site.js": ("site.js", _SCRIPT),
    "reference.css": ("reference.css", _STYLE),
    "reference.js": ("reference.js", _SCRIPT),
    "scalar.js": ("scalar/standalone.js", _SCRIPT),
    "favicon.svg": ("favicon.svg", b"image/svg+xml"),
}
_CACHED: Header = (b"cache-control", b"public, max-age=3600")


class SiteFile(NamedTuple):
    content_type: bytes
    content: bytes
    packed: bytes


class Documentation:
    """The endpoints that describe the other operations and themselves: the OpenAPI document and the site."""

    def __init__(self, others: Sequence[Operation]) -> None:
        own = {
            "/docs": self.reference_page,
            "/docs/{asset}": self.reference_file,
            "/llms.txt": self.list_documentation,
            "/problems": self.list_problems,
            "/openapi.json": self.document,
        }
        self.operations = (*others, *(operation("GET", path, handler) for path, handler in own.items()))
        self._described = cache(lambda base_url: openapi_document(base_url, self.operations))
        self._site_file = cache(self._make_file)

    async def document(self, app: App, _request: Request) -> Response:
        """Read this document. Answers the service's OpenAPI document.

        200 object: OpenAPI 3.1.
        """
        file = await self._read(app, "openapi.json")
        return Response(200, file.content, (_CACHED,))

    async def reference_page(self, app: App, request: Request) -> Response:
        """Open the documentation. Guides, and a reference that sends requests. The pages load nothing from other sites.

        200 text/html [Content-Security-Policy Referrer-Policy Cache-Control Vary Content-Encoding]: The page.
        """
        return await self._answer(app, request, site.HOME)

    async def reference_file(self, app: App, request: Request) -> Response:
        """Read a page or file of the documentation. `reference` shows this document, `collection.json` is the same for
        Postman, and a page's name with `.md` is its Markdown.

        200 text/html text/markdown application/json text/javascript text/css image/svg+xml
            [Content-Security-Policy Referrer-Policy Cache-Control Vary Content-Encoding]: The file.
        """
        return await self._answer(app, request, request.path_parameters["asset"])

    async def list_documentation(self, app: App, request: Request) -> Response:
        """List the pages of the documentation for programs. The form is that of llmstxt.org.

        200 text/plain [Content-Security-Policy Referrer-Policy Cache-Control Vary Content-Encoding]: The list.
        """
        return await self._answer(app, request, "llms.txt")

    async def list_problems(self, app: App, request: Request) -> Response:
        """Look up a problem or code. A page with every problem, fault code, warning and reason, and an example of each. The
        `type` of a problem leads here.

        200 text/html [Content-Security-Policy Referrer-Policy Cache-Control Vary Content-Encoding]: The page.
        """
        return await self._answer(app, request, "problems")

    async def _answer(self, app: App, request: Request, name: str) -> Response:
        file = await self._read(app, name)
        headers = (_CACHED, VARIES, *_page_headers(app.config.base_url))
        if request.accepts_gzip():
            return Response(200, file.packed, (*headers, GZIPPED), file.content_type)
        return Response(200, file.content, headers, file.content_type)

    async def _read(self, app: App, name: str) -> SiteFile:
        """The file of this name. It is made once, in a thread: Markdown and gzip take up to 0.5 s. Raises NotFound."""
        is_production = app.config.environment is Environment.PRODUCTION
        return await asyncio.to_thread(self._site_file, name, app.config.base_url, is_production)

    def _make_file(self, name: str, base_url: str, is_production: bool) -> SiteFile:
        content_type, content = _site_file(
            name, self._described(base_url), base_url, is_production=is_production
        )
        return SiteFile(content_type, content, gzip.compress(content, LEVEL))


async def entrance(app: App, _request: Request) -> Response:
    return Response(307, headers=((b"location", f"{app.config.base_url}/docs".encode()),))


def _site_file(name: str, document: Schema, base_url: str, *, is_production: bool) -> tuple[bytes, bytes]:
    """Content type and content. Raises NotFound."""
    pages = site.pages(base_url)
    # In production its changing calls are off until the reader allows them.
    reference = page_template("frontdesk.api", "reference.html")
    made: dict[str, tuple[bytes, Callable[[], bytes]]] = {
        "reference": (_HTML, lambda: reference.render(is_production=is_production).encode()),
        "problems": (_HTML, lambda: site.layout(base_url, "Codes of errors", codes_content(base_url))),
        "search.json": (
            _JSON,
            lambda: site.search_index(base_url, [*_operation_parts(document), *_code_parts()]),
        ),
        "openapi.json": (_JSON, lambda: json.dumps(document, ensure_ascii=False).encode()),
        "collection.json": (_JSON, lambda: json.dumps(postman_collection(document), indent=1).encode()),
        "llms.txt": (_TEXT, lambda: site.llms_text(base_url)),
    }
    if name in made:
        content_type, make = made[name]
        return content_type, make()
    if name in ASSETS:
        path, content_type = ASSETS[name]
        return content_type, files("frontdesk.api").joinpath("assets", path).read_bytes()
    if name in pages:
        page = pages[name]
        return _HTML, site.layout(base_url, page.title, page.content, current=page)
    if name.removesuffix(".md") in pages:
        return _MARKDOWN, pages[name.removesuffix(".md")].markdown.encode()
    raise NotFound("address", "There is nothing at this address.")


def _operation_parts(document: Schema) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"/docs/reference#tag/{each['tags'][0].lower()}/{each['operationId']}",
            "Reference",
            f"{method.upper()} {path}",
            f"{each['summary']}. {each['description']}",
        )
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    ]


def _code_parts() -> list[tuple[str, str, str, str]]:
    return [
        (f"/problems#{section.prefix}{code}", "Codes of errors", code, text)
        for section in SECTIONS
        for code, text in section.codes.items()
    ]


def _page_headers(base_url: str) -> tuple[Header, ...]:
    """The policy allows requests to this service only (docs/decisions/0063)."""
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        f"connect-src 'self' {base_url}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return (b"content-security-policy", policy.encode()), (b"referrer-policy", b"no-referrer")
